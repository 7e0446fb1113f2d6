"""Hostile input of every kind, and the longest time that it blocks the event loop."""
