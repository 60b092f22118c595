namespace spel::config {}
