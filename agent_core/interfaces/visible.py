"""Untrusted text for a terminal: whatever could act on the screen is shown instead of sent.

Models and functions write text that ends in a terminal; an escape sequence in it could retitle the
window, hide lines or type for the user. Every control, format and direction character but newline
and tab becomes its escaped form.
"""

import re

# C0 but tab and newline, DEL and C1; soft hyphen, marks and overrides of direction, invisible operators and
# the byte-order mark; lone surrogates, which no terminal's encoding takes; tags, which hide text. Joiners
# stay: emoji are made of them.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text as it may be printed: lines and tabs kept, everything that acts escaped."""
    return _ACTING.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit_chars: int = 200) -> str:
    """The text on one line, cut at the limit: for lists, calls and answers shown compactly."""
    shown = visible(text.strip()).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= limit_chars else shown[: limit_chars - 1] + "…"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return {0x0D: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
