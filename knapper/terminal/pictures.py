"""Pictures on the terminal: by kitty's or iTerm2's protocol where it has one, else the path of the file.

Both take the bytes of a file as they are; nothing is decoded here.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from agent_core.base.own_environment import environment
from agent_core.base.pictures import Picture
from agent_core.storage.picture_files import PictureFiles
from agent_core.views.styled_lines import Line, line

Protocol: TypeAlias = Literal["kitty", "iterm2", ""]
_ITERM_PROGRAMS: Final = ("iTerm.app", "iTerm2", "WezTerm", "mintty", "vscode")
_KITTY_TERMS: Final = ("xterm-kitty", "xterm-ghostty")
_CHUNK_CHARS: Final = 4_096
_ROW_PIXELS: Final = 20
_MAX_ROWS: Final = 20
_ESCAPE: Final = "\x1b"


def protocol_of(variables: Mapping[str, str]) -> Protocol:
    """Return the protocol by which the terminal shows pictures, as its variables say, or "" if it has none.

    In tmux and screen it is none: they pass nothing on unless they are told to.
    """
    if "TMUX" in variables or variables.get("TERM", "").startswith("screen"):
        return ""
    if "KITTY_WINDOW_ID" in variables or variables.get("TERM") in _KITTY_TERMS:
        return "kitty"
    program = variables.get("LC_TERMINAL") or variables.get("TERM_PROGRAM", "")
    if program in _ITERM_PROGRAMS:
        return "iterm2"
    return ""


def drawn_picture(picture: Picture, files: PictureFiles, protocol: Protocol) -> str:
    """Return what draws a picture on the terminal; empty if it cannot."""
    is_known = protocol == "iterm2" or (protocol == "kitty" and picture.media_type == "image/png")
    if not is_known or (data := files.content(picture.digest)) is None:
        return ""
    rows = min(-(-picture.height // _ROW_PIXELS), _MAX_ROWS)
    text = b64encode(data).decode()
    if protocol == "iterm2":
        facts = f"inline=1;size={len(data)};height={rows};preserveAspectRatio=1"
        return f"{_ESCAPE}]1337;File={facts}:{text}\a\n"
    return "".join(_kitty_parts(text, rows)) + "\n"


def _kitty_parts(text: str, rows: int) -> Iterator[str]:
    """Yield the commands that send a PNG in parts and show it in so many rows."""
    for start in range(0, len(text), _CHUNK_CHARS):
        more = int(start + _CHUNK_CHARS < len(text))
        head = f"m={more}" if start else f"a=T,f=100,q=2,r={rows},m={more}"
        yield f"{_ESCAPE}_G{head};{text[start : start + _CHUNK_CHARS]}{_ESCAPE}\\"


def shown_pictures(
    pictures: Sequence[Picture], files: PictureFiles | None, *, is_terminal: bool
) -> Iterator[str | Line]:
    """Yield for each picture what draws it, or a line with the path of its file, or its caption alone."""
    protocol: Protocol = ""
    if is_terminal:
        protocol = protocol_of(environment())
    for picture in pictures:
        if files is None:
            yield line(("dim", f"  {picture.caption}"))
        elif drawing := drawn_picture(picture, files, protocol):
            yield drawing
        else:
            yield line(("dim", f"  {picture.caption}: {files.folder / picture.digest}"))
