"""The operations by method and path, for the server and for the client in this process. Nothing here is HTTP."""
