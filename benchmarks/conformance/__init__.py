"""Real clients of the server's chat completions and responses, each in an environment of its own."""
