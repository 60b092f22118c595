namespace spel::engine {}
