"""The error for a source that cannot be read."""

from agent_core.base.errors import ToolwrightError


class Unreadable(ToolwrightError):
    """Error raised when a source is missing, is not text, is too large, or cannot be read as what it claims to be."""

    code = "unreadable-source"
