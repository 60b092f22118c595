namespace spel::proto {}
