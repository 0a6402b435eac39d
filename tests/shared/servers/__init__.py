"""Real servers for tests, on loopback, that can be told to misbehave."""
