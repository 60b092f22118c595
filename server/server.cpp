namespace spel::server {}
