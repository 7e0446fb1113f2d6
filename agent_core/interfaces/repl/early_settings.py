"""The settings that the prompt needs before it is shown, read without the slow imports of the full settings.

What does not fit is left at its default here; the settings themselves are checked behind the prompt, and say so.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agent_core.base.plain_files import read_plain
from agent_core.base.workspace_folder import SETTINGS
from sandbox.wire.foreign import OF_A_FILE, Malformed, read_toml

_TABLE, _PREFIX = "repl", "KNAPPER_REPL_"
_MOST_BYTES = 256 << 10  # as the settings have it
_TRUE = ("1", "true", "yes", "on", "t", "y")
_LIGHT_GROUNDS = ("7", "15")


@dataclass(frozen=True, slots=True)
class Taste:
    """The table `repl` of the settings."""

    keys: str = "emacs"
    theme: str = "auto"
    bell: bool = False
    title: bool = False
    plain: bool = False

    @property
    def is_light(self) -> bool:
        """True if the screen is light, according to the settings, or to the terminal in COLORFGBG."""
        ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
        return self.theme == "light" or (self.theme == "auto" and ground in _LIGHT_GROUNDS)


def taste(root: Path, environment: Mapping[str, str]) -> Taste:
    """Return the settings from the file or the environment."""
    values: dict[str, Any] = _table(root / SETTINGS)  # Any: values of TOML
    for field in fields(Taste):
        value = environment.get(f"{_PREFIX}{field.name.upper()}")
        if value is not None:
            values[field.name] = value.lower() in _TRUE if field.type is bool else value
    fitting = {
        option.name: values[option.name] for option in fields(Taste) if type(values.get(option.name)) is option.type
    }
    return Taste(**fitting)


def _table(path: Path) -> dict[str, Any]:
    try:
        text = read_plain(path, _MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    if _TABLE not in text:
        return {}
    try:
        table = read_toml(text, values=OF_A_FILE).get(_TABLE)
    except Malformed:
        return {}
    return dict(table) if isinstance(table, dict) else {}
