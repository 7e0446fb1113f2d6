"""The server, which provides a workspace over HTTP to programs, browsers and other machines.

Like the other interfaces, it consumes the events of turns and calls the services, and contains no logic itself.
"""
