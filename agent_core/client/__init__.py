"""The client of a workspace, in this process or over HTTP."""
