"""What leaves the sandbox, and by which approval: grants, secrets, the broker, packages."""
