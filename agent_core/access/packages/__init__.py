"""The workspace's own packages: resolved and shown for approval, pinned with hashes, installed by pip."""

from .environment import Environment
from .failures import PackagesError
from .resolution import Pin, Resolution

__all__ = ["Environment", "PackagesError", "Pin", "Resolution"]
