"""Agents and groups of a workspace as members of teams in other frameworks.

There is one module per framework, imported only by code that uses it; each framework is a separate extra. The program
asks for nothing here, so this adds nothing to it.
"""
