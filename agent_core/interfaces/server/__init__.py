"""The server: the workspace over HTTP, for programs, browsers and other machines.

A door like the others: it consumes the events of turns and calls the services, and has no logic of its own.
"""
