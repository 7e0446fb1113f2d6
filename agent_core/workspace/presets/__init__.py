"""Presets, personas and humans as files: the built-in ones, and those of the workspace.

A preset defines how an agent works: its message style, its instructions, and its built-in functions.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.errors import SettingsError, UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.context import INSTRUCTIONS
from agent_core.model.beside import mode_beside, mode_named
from agent_core.runtime.message_protocol import MessageProtocol, SendMessageProtocol
from sandbox.wire.strict_json import OF_A_FILE, Malformed, read_toml

from ..agent_files import stamps_of

Kind: TypeAlias = Literal["persona", "human"]

_FOLDERS: Final[Mapping[Kind, str]] = {"persona": "personas", "human": "humans"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_AMONG: Final[Mapping[str, tuple[str, ...]]] = {
    "style": ("direct", "memgpt"),
    "compaction": ("summary", "spr"),
}
_STYLES: Final = {"direct": MessageProtocol, "memgpt": SendMessageProtocol}
_MOST_ATTEMPTS: Final = 10  # a preset may be untrusted, and each attempt uses the user's model
_MOST_BYTES: Final = 200_000
_TYPES: Final[Mapping[str, type]] = {
    "about": str,
    "style": str,
    "instructions": str,
    "brief": str,
    "functions": list,
    "verify": bool,
    "attempts": int,
    "persona": str,
    "human": str,
    "compaction": str,
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset of agents. `functions` are the optional built-in functions that it includes."""

    name: str
    about: str
    style: MessageProtocol
    functions: frozenset[str]
    persona: str
    human: str
    compaction: str = ""  # how earlier messages are summarized; empty: as in the settings

    def has(self, function: str) -> bool:
        """Check whether agents of this preset have a built-in function; those outside of groups belong to all."""
        return function in self.functions or function not in _optional()


def preset(root: Path, name: str) -> Preset:
    """Return the preset with that name; those of the workspace take precedence over built-in ones.

    Raises:
        UsageError: there is no such preset.
        SettingsError: its file is invalid.
    """
    definition, folder = _definition(root, name)
    for key, value in definition.items():
        if key not in _TYPES:
            message = f"The preset `{name}` has a key `{one_line(key, 80)}`, which no preset has."
            raise SettingsError(message, fix=f"Known are: {', '.join(_TYPES)}.")
        if type(value) is not _TYPES[key] or value not in _AMONG.get(key, (value,)):
            raise SettingsError(
                f"In the preset `{name}`, `{key}` cannot be {one_line(repr(value), 80)}."
            )
    style = _STYLES[definition.get("style", "direct")](
        name,
        _instructions(
            folder, definition.get("instructions", ""), lambda: INSTRUCTIONS.partition("\n\n")[2]
        ),
        _instructions(folder, definition.get("brief", ""), _for_small_models),
        definition.get("verify", False),
        min(definition.get("attempts", 3), _MOST_ATTEMPTS),
    )
    groups = _shipped_presets()["groups"]
    entries = definition.get("functions", [*_shipped_presets()["presets"]["direct"]["functions"]])
    unknown = [
        function for function in entries if function not in groups and function not in _optional()
    ]
    if unknown:
        fix = f"Known are the groups {', '.join(groups)}, and what is in them."
        raise SettingsError(
            f"The preset `{name}` names `{unknown[0]}`, which is not a function.", fix=fix
        )
    functions = frozenset(function for entry in entries for function in groups.get(entry, [entry]))
    texts = (
        definition.get("persona", "knapper"),
        definition.get("human", ""),
        definition.get("compaction", ""),
    )
    return Preset(name, definition.get("about", ""), style, functions, *texts)


def presets(root: Path) -> list[tuple[str, str]]:
    """Return the names of all presets with their descriptions."""
    return [(name, str(_definition(root, name)[0].get("about", ""))) for name in _names(root)]


def text_of(root: Path, kind: Kind, name_or_text: str) -> str:
    """Return the text of a persona or a human, given by name or as text.

    Raises:
        UsageError: no file has that name.
    """
    if not _NAME.fullmatch(name_or_text):
        return name_or_text.strip()
    folder = _FOLDERS[kind]
    for place in (_own(root, folder), _SHIPPED / folder):
        file = place / f"{name_or_text}.txt" if place else None
        if file is not None and file.is_file():
            return _text(root, file).strip()
    names = [*named(root, kind)]
    fix = f"Known are: {', '.join(names)}. Your own go into {folder}/NAME.txt."
    raise UsageError(
        f"There is no {kind} `{name_or_text}`.", fix=did_you_mean(name_or_text, names, fix)
    )


def named(root: Path, kind: Kind) -> list[str]:
    """Return the personas or humans that can be chosen by name."""
    places = [
        place
        for place in (_own(root, _FOLDERS[kind]), _SHIPPED / _FOLDERS[kind])
        if place is not None
    ]
    return sorted(
        {
            file.name[:-4]
            for place in places
            for file in place.iterdir()
            if file.name.endswith(".txt")
        }
    )


_SHIPPED: Final[Traversable] = resources.files(__package__)


@cache
def _shipped_presets() -> Mapping[str, Any]:  # Any: TOML
    return read_toml((_SHIPPED / "presets.toml").read_text(encoding="utf-8"))


@cache
def _optional() -> frozenset[str]:
    return frozenset(name for names in _shipped_presets()["groups"].values() for name in names)


def _names(root: Path) -> list[str]:
    own = _own(root, "presets")
    return sorted({*_shipped_presets()["presets"], *(stamps_of(own) if own else ())})


def _definition(root: Path, name: str) -> tuple[Mapping[str, Any], Traversable]:  # Any: TOML
    own = _own(root, "presets")
    if own is not None and _NAME.fullmatch(name) and (file := own / f"{name}.toml").is_file():
        try:
            return read_toml(_text(root, file), values=OF_A_FILE), own
        except Malformed as error:
            raise SettingsError(f"presets/{name}.toml is not valid TOML: {error}.") from error
    if name not in _shipped_presets()["presets"]:
        names = _names(root)
        fix = f"Known are: {', '.join(names)}. Put your own into presets/NAME.toml."
        raise UsageError(f"There is no preset `{name}`.", fix=did_you_mean(name, names, fix))
    return _shipped_presets()["presets"][name], _SHIPPED


def _for_small_models() -> str:
    mode = mode_named(mode_beside())
    return mode.instructions if mode is not None else ""


def _instructions(folder: Traversable, file: str, functions: Callable[[], str]) -> str:
    if not file:
        return ""
    if not re.fullmatch(r"[A-Za-z0-9_-]+\.(txt|md)", file) or not (folder / file).is_file():
        raise SettingsError(f"There is no file of instructions {file!r} next to the preset.")
    root = folder.parent if isinstance(folder, Path) else Path()
    return (
        _text(root, folder / file).replace("\\\n", "").replace("{functions}", functions()).strip()
    )


def _own(root: Path, folder: str) -> Path | None:
    """Return a folder of the workspace, if it exists."""
    place = root / folder
    if place.is_symlink():
        raise SettingsError(
            f"{place} is a link, or behind one, so it is not read.",
            fix="If you made the link, put the folder itself or a copy of it there.",
        )
    return place if place.is_dir() else None


def _text(root: Path, file: Traversable) -> str:
    """Return the text of a file. A workspace may be untrusted, so no link is followed, also not to its own state."""
    try:
        if isinstance(file, Path) and not file.is_relative_to(Path(str(_SHIPPED))):
            if file.resolve() != root.resolve() / file.relative_to(root):
                raise SettingsError(f"{file} is a link, or behind one, so it is not read.")
            return read_plain(file, _MOST_BYTES).decode("utf-8")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}.") from error
