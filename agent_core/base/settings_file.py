"""Changes to single values in `knapper.toml` that preserve everything else: comments, order, layout.

The new text is parsed before it is written: unless it contains exactly the intended values, nothing is written.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import OF_A_FILE, Malformed, read_toml

from .errors import SettingsError
from .plain_files import read_plain, replace_text
from .settings import FILE_NAME, MOST_BYTES

Value: TypeAlias = str | int | float | bool
Values: TypeAlias = Mapping[str, Value]


def write_values(root: Path, values: Values) -> Path:
    """Set these values (`section.key`) in the workspace's settings file; return its path.

    Raises:
        SettingsError: it cannot be changed safely; the message has the lines to add manually.
    """
    path = root / FILE_NAME
    if path.is_symlink():
        raise _by_hand(f"{path} is a link, and links are not written through.", values)
    try:
        text = read_plain(path, MOST_BYTES).decode("utf-8") if path.exists() else ""
        changed = with_values(text, values)
        if changed != text:
            replace_text(path, changed)
    except (OSError, UnicodeDecodeError) as error:
        raise _by_hand(f"{path} cannot be changed: {error}.", values) from error
    return path


def with_values(text: str, values: Values) -> str:
    """Return the text with these values set.

    Raises:
        SettingsError: the text is formatted in a way that cannot be changed safely.
    """
    intended = _parse(text)
    if intended is None:
        raise _by_hand(f"{FILE_NAME} is not valid TOML.", values)
    lines = bare_lines(text)
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        lines = _with_value(lines, section, name, value)
        target = intended.setdefault(section, {}) if section else intended
        if isinstance(target, dict):
            target[name] = value
    changed = "".join(f"{line}\n" for line in lines)
    if _parse(changed) != intended:
        raise _by_hand(f"{FILE_NAME} is formatted in a way that cannot be changed safely.", values)
    return changed


def _with_value(lines: list[str], section: str, name: str, value: Value) -> list[str]:
    first, end = _section(lines, section)
    new = f"{name} = {_toml(value)}"
    for at in range(first, end):
        line = lines[at]
        if re.match(rf"\s*{re.escape(name)}\s*=", line):
            signs = (match.start() for match in re.finditer(r"\s*#", line))
            comment = next((line[sign:] for sign in signs if _parse(line[:sign]) is not None), "")
            return [*lines[:at], new + comment, *lines[at + 1 :]]
    if first > len(lines):
        gap = [""] if lines and lines[-1].strip() else []
        return [*lines, *gap, f"[{section}]", new]
    while end > first and not lines[end - 1].strip():
        end -= 1
    return [*lines[:end], new, *lines[end:]]


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """Return the first line of a section and the line after its end; both past the end if it does not exist."""
    headers = [at for at, line in enumerate(lines) if re.match(r"\s*\[", line)]
    if not section:
        return 0, headers[0] if headers else len(lines)
    for at in headers:
        if re.match(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?$", lines[at]):
            return at + 1, next((header for header in headers if header > at), len(lines))
    return len(lines) + 1, len(lines) + 1


def _parse(text: str) -> dict[str, Any] | None:  # Any: TOML
    try:
        return read_toml(text, values=OF_A_FILE)
    except Malformed:
        return None


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    escaped = (sign if ord(sign) >= 32 and sign not in '"\\\x7f' else f"\\u{ord(sign):04x}" for sign in value)
    return f'"{"".join(escaped)}"'


def _by_hand(message: str, values: Values) -> SettingsError:
    lines = []
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        lines.append(f"[{section}] {name} = {_toml(value)}" if section else f"{name} = {_toml(value)}")
    return SettingsError(message, fix="Add it manually:\n" + "\n".join(lines))
