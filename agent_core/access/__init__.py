"""The ways out of the sandbox and their approval: grants, secrets, the broker, packages."""
