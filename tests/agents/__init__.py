"""Agents that work together: limits, messages, the runner, supervision."""
