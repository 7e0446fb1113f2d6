"""A small workspace of an earlier version, as that version wrote it, and the script that had it write."""
