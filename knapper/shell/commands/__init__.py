"""The commands that only the shell has; those that the prompt and a server have, too, are in `operations/commands`."""
