"""The tables of the store, by subject, in SQL that SQLite and PostgreSQL both read."""
