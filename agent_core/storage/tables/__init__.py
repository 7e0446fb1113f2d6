"""The SQL that the subjects of the store share, which SQLite and PostgreSQL both read."""
