"""Values, errors, settings and small tools that every room may import."""
