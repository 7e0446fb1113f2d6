"""Hostile input of every kind, and the longest time for which it holds up the event loop."""
