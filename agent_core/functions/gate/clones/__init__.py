"""Clone detection: normal forms of what functions compute, and the index that finds similar ones."""
