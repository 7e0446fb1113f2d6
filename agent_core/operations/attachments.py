"""Files attached to a message, named in it as @FILE or by an option: text is fenced under its name, pictures go along.

An @name that is not a file stays as typed; if it reads like a file name, the user gets a note. Only text typed at a
prompt is searched for such names: text from a pipe, or pasted, may come from someone else and must not choose files on
this machine, nor be a command. In pasted text, each sign that does so is replaced by a stand-in until the text is sent:
it stays what it is however the line is edited, cut, put aside and recalled.
"""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import PurePath

from agent_core.base.errors import UsageError
from agent_core.base.pictures import (
    HEAD_BYTES,
    MAX_BYTES,
    PictureFile,
    UnusablePicture,
    is_picture,
    read_picture,
)
from agent_core.base.plain_files import read_beginning, read_named_text
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line, shorten
from agent_core.base.user_folders import expand_home
from agent_core.views.styled_lines import counted
from sandbox.wire.lines import bare_lines

MOST_CHARS = 100_000
"""The maximum number of characters of one file in a message; a longer file is cut in the middle and marked as cut."""
_NAMED = re.compile(r'(?<![^\s(\[,;])@(?:"([^"\n]+)"|([^\s"]+))')
_ASIDE = "I ran this in the shell"
_NOTHING = "It printed nothing."
_LIKE_A_FILE = re.compile(r"[^()<>]*[^()<>./]\.(?:[A-Za-z][A-Za-z0-9]{0,4}|parquet)")
_AFTER = ".,;:!?)]}'\""
_SIGNS = "@!/=?"
_STAND_INS = "".join(
    chr(0xFDD0 + at) for at in range(len(_SIGNS))
)  # no characters, so that no text has them
_TO_STAND_INS, _TO_SIGNS = str.maketrans(_SIGNS, _STAND_INS), str.maketrans(_STAND_INS, _SIGNS)
_PASTED_AT = _STAND_INS[0]
_LINE_STARTS = re.compile(r"^ *[!/=?]", re.MULTILINE)
_MOST_PASTED = 20  # names in pasted text that are looked up, for a note
_LONGEST_NAME = 255
_TYPING = re.compile(r'(?<![^\s(\[,;])@("?)([^\s"]*)$')


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file attached to a message: its text, or its `picture`; `problem` is the reason that it is not sent, if any."""

    name: str
    text: str = ""
    problem: str = ""
    picture: PictureFile | None = None
    caption: str = ""

    @property
    def note(self) -> str:
        """A sentence about how much of the file is sent."""
        if self.problem:
            return f"{one_line(self.name, 200)} is not sent: {self.problem}"
        if self.picture is not None:
            return f"with {self.caption}"
        count = counted(len(bare_lines(self.text)), "line")
        cut = (
            f", shortened to {MOST_CHARS:,} of {len(self.text):,} characters"
            if len(self.text) > MOST_CHARS
            else ""
        )
        return f"with {one_line(self.name, 200)}: {count}{cut}"

    @property
    def block(self) -> str:
        """The text under its name, in a fence that the text cannot close. A long text is cut and marked as cut."""
        text = fence(shorten(self.text.rstrip("\n"), MOST_CHARS))
        return f"`{one_line(self.name, 400)}`:\n{text}"


def fence(text: str) -> str:
    """Return a text in a fence that it cannot close."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}\n{text}\n{ticks}"


def pasted(text: str, *, sent_itself: bool = False) -> str:
    """Return a pasted text with stand-ins: no @ in it names a file. If it has several lines, or `sent_itself` before a
    person could look at it, it is no command.
    """
    text = text.replace("@", _PASTED_AT)
    if sent_itself or "\n" in text.removesuffix("\n"):
        text = _LINE_STARTS.sub(lambda start: start[0].translate(_TO_STAND_INS), text)
    return text


def as_sent(text: str) -> str:
    """Return a typed or pasted text without stand-ins."""
    return text.translate(_TO_SIGNS)


def pasted_notes(message: str) -> list[str]:
    """Return sentences about what a message does not do because it was pasted: attach a file, be a command."""
    notes, names = list[str](), dict[str, None]()
    for at in islice((at for at, char in enumerate(message) if char == _PASTED_AT), _MOST_PASTED):
        match = _NAMED.match(as_sent(message[max(at - 1, 0) : at + _LONGEST_NAME]), min(at, 1))
        if match and (name := _path(match)):
            names[one_line(name, 60)] = None
    if names:
        them = "was pasted, so it is" if len(names) == 1 else "were pasted, so they are"
        notes.append(f"{', '.join(names)} {them} not sent: to add a file, type its @ yourself")
    if message.lstrip(" ").startswith((*_STAND_INS[1:],)):
        notes.append(
            "pasted lines are one message, not a command: type a command yourself, or paste its line alone"
        )
    return notes


def named_in(message: str) -> list[Attachment]:
    """Return the files that a message names as @FILE or @"FILE NAME", each once, including missing files."""
    files = []
    for match in _NAMED.finditer(message):
        name = match[1] or match[2].rstrip(_AFTER)
        if path := _path(match):
            files.append(_read(path))
        elif match[1] or _LIKE_A_FILE.fullmatch(name):  # unlike a person or a decorator
            files.append(Attachment(name, problem="there is no such file"))
    return [*{file.name: file for file in files}.values()]


def first_named(message: str) -> str:
    """Return the first existing file that a message names this way, or "" if there is none."""
    return next(filter(None, map(_path, _NAMED.finditer(message))), "")


def command_block(command: str, failed: str, output: str) -> str:
    """Return the output of a shell command as a block to attach to a message."""
    shown = fence(output) if output else _NOTHING
    return f"{_ASIDE}{f' ({failed})' if failed else ''}: `{command}`\n{shown}"


def headline(message: str) -> str:
    """Return the typed words of a message on one line, without the attached files and outputs."""
    return " ".join(typed_part(message).split())


def typed_part(message: str) -> str:
    """Return the beginning of a message that was typed: all but the attached files and outputs at its end."""
    lines = bare_lines(message)
    begin = at = (
        2  # of the attachments at the end, and of the next one: two line breaks precede each
    )
    while at < len(lines):
        end = _end_of_block(lines, at)
        if end == at:
            begin = at + 1
        at = end + 1
    return "\n".join(lines[: begin - 1]) if at > len(lines) else message


def _end_of_block(lines: list[str], at: int) -> int:
    """Return the line after the attachment that begins at a line; the line itself if none does."""
    head, first = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    is_head = (head.startswith("`") and head.endswith("`:")) or (
        head.startswith(_ASIDE) and head.endswith("`")
    )
    if lines[at - 1] or not is_head:
        return at
    if first == _NOTHING:
        return at + 2
    if len(first) < 3 or first.strip("`") or at + 2 == len(lines):
        return at
    ends = (
        place
        for place in range(at + 2, len(lines))
        if lines[place] == first and not "".join(lines[place + 1 : place + 2])
    )
    return next(ends, len(lines) - 1) + 1


def with_blocks(message: str, blocks: Iterable[str]) -> str:
    """Return a message followed by its attachments."""
    return "\n\n".join([message, *blocks])


def added(message: str, paths: Iterable[str]) -> tuple[str, list[PictureFile]]:
    """Return a message with the files that an option names, and the pictures among them; `-` is standard input.

    Raises:
        UsageError: a file is neither text nor a picture that can be sent.
    """
    files = [_read(path) for path in paths]
    for file in files:
        if file.problem:
            raise UsageError(
                f"{file.name} cannot be sent: {file.problem}.",
                fix="--file takes a file of text, or a picture.",
            )
    return with_blocks(message, blocks_of(files)), pictures_among(files)


def blocks_of(files: Iterable[Attachment]) -> list[str]:
    """Return the blocks of the files of text that are sent."""
    return [file.block for file in files if not file.problem and file.picture is None]


def pictures_among(files: Iterable[Attachment]) -> list[PictureFile]:
    """Return the pictures that are sent."""
    return [file.picture for file in files if file.picture is not None]


def path_being_typed(before_cursor: str) -> str | None:
    """Return the partial path after an @ at the cursor, if there is one."""
    match = _TYPING.search(before_cursor)
    return match[2] if match else None


def _path(match: re.Match[str]) -> str:
    """Return the named file without surrounding punctuation, or "" if there is none."""
    if match[1]:
        return match[1] if _is_there(match[1]) else ""
    name = match[2]
    while name and not _is_there(name):
        name = name[:-1] if name[-1] in _AFTER else ""
    return name


def _is_there(name: str) -> bool:
    """Check for a file or a folder. A folder is not sent, and the user gets a note."""
    try:
        return bool(name) and (
            expand_home(name).is_file()
            or (expand_home(name).is_dir() and not set(name) <= set(_AFTER))
        )
    except (OSError, ValueError, RuntimeError):
        return False


def _read(name: str) -> Attachment:
    shown = "standard input" if name == "-" else name
    try:
        if name != "-" and is_picture(read_beginning(name, HEAD_BYTES)):
            return _read_picture(shown, read_beginning(name, MAX_BYTES + 1))
        text = read_named_text(name)
    except UnicodeDecodeError:
        return Attachment(shown, problem="it is not text in UTF-8")
    except (OSError, ValueError) as error:
        return Attachment(
            shown, problem=one_line(getattr(error, "strerror", None) or str(error), 200)
        )
    return Attachment(shown, problem="it is not text") if "\0" in text else Attachment(shown, text)


def _read_picture(name: str, data: bytes) -> Attachment:
    try:
        picture = read_picture(data, PurePath(name).name)
    except UnusablePicture as error:
        why = error.message.removeprefix(PurePath(name).name).strip().rstrip(".")
        return Attachment(name, problem=f"it {why}. {error.fix.rstrip('.')}")
    return Attachment(name, picture=PictureFile(data, picture.name), caption=picture.caption)
