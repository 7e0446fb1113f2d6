"""The author of a line in a summary or in its material: set by the program, never read from a text.

Words of others keep what they say; what in them would pass for the program's word on who speaks stands in quotes.
"""

import re
from typing import Final

from agent_core.base.untrusted import visible

USER: Final = "user"
"""Whose the user's sentences are; a function's are of its name with `()`, the assistant's of nobody."""
ASKED: Final = "The user's message that is being worked on"

_SPEAKERS: Final = "user|human|assistant|system|developer|program|tool|function"
_AS_A_SPEAKER: Final = re.compile(
    rf"^((?:[^\w\n]|_)*+)((?:the\s+)?(?:{_SPEAKERS})(?:[^\w\n]|_)*?[:：])", re.IGNORECASE | re.MULTILINE
)
_AS_ASKED: Final = re.compile(r"the\s+user\W{0,3}s\s+message\s+that\s+is\s+being\s+worked\s+on", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\W\d]\w{0,63}")


def label_of(by: str) -> str:
    """Return the label before a sentence of this author."""
    if by == USER:
        return "user: "
    return f"{by} said: " if by else ""


def of_function(name: str) -> str:
    """Return the author label for a function's answer; no function name is the user's."""
    return f"{name}()" if _NAME.fullmatch(name) else "a function"


def harmless(text: str) -> str:
    """Return text of anyone but the user in which no line starts like another author's and nothing controls a
    terminal.
    """
    return _AS_ASKED.sub(r"“\g<0>”", _AS_A_SPEAKER.sub(r"\1“\2”", visible(text)))
