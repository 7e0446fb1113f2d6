"""Agents and groups of a workspace as members of teams of other frameworks.

One module a framework, imported by whoever uses it; the framework is an extra of its own.
"""
