"""The client of a workspace, the same in this process and over HTTP."""

from .client import Client
from .connecting import connect

__all__ = ["Client", "connect"]
