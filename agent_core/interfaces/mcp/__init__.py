"""The workspace as an MCP server, for other assistants; `knapper mcp` and `/mcp` of the server open it.

The package `mcp` is imported by `server.py`, and that when it is needed.
"""
