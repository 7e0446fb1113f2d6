"""A placeholder."""
