"""How a source fails that cannot be read."""

from ..errors import ToolwrightError


class Unreadable(ToolwrightError):
    """A source is not there, is not text, is too large, or cannot be read as what it says it is."""

    code = "unreadable-source"
