"""Real clients of the server's chat completions and responses, each in a separate environment."""
