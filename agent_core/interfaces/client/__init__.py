"""The client of a workspace, the same in this process and over HTTP."""

from .client import Client, connect

__all__ = ["Client", "connect"]
