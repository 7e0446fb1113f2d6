"""Measurements: `python -m benchmarks.NAME` prints a table; none of it ships."""
