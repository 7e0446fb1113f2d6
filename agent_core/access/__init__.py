"""The ways out of the sandbox and their approvals: grants, secrets, the broker, packages."""
