"""Lists what this program keeps on this machine, and the commands that would remove it. It changes nothing.

Nobody registers a workspace, so they are searched for below the home folder and below folders that the user names.
"""

import os
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from agent_core.access.packages.environment import size_of
from agent_core.base import own_installation
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.base.user_folders import NoHome, cache_folder, config_folder, data_folder, home
from agent_core.base.workspace_folder import STATE, is_workspace

_MOST_FOLDERS: Final = 300_000
_LONGEST_PATH: Final = 4_000  # characters
_SYSTEM_UNITS: Final = Path("/etc/systemd/system")
_FOLDERS: Final[tuple[tuple[Callable[[], Path], str], ...]] = (
    (data_folder, "the key of your approvals, and local models"),
    (config_folder, "secrets"),
    (cache_folder, "what can be made again"),
)


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """One file or folder: what it holds, its size in bytes, and the commands that remove it."""

    path: str
    holds: str
    size: int
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """All places that were found, the command that removes the program, and what could not be looked at."""

    places: tuple[KeptPlace, ...]
    program: str
    searched: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def commands(self) -> list[str]:
        """The commands that remove everything; the program goes last, because the others may still need it."""
        return [
            *(command for place in self.places for command in place.remove),
            *filter(None, [self.program]),
        ]


def footprint(root: Path, more: Iterable[Path] = ()) -> Footprint:
    """Return what this program keeps, in the workspace `root`, too, and in those below home and `more` folders."""
    places, problems = list[KeptPlace](), list[str]()
    for folder_of, holds in _FOLDERS:
        try:
            folder = folder_of()
        except NoHome as error:
            problems.append(f"{error.message} {error.fix}")
            continue
        places += _kept(folder, holds)
        if folder_of is config_folder:
            places += _services(folder.parent)
    own = home()
    tops = list(
        dict.fromkeys(Path(os.path.realpath(folder)) for folder in (*([own] if own else []), *more))
    )
    states = {os.path.realpath(here): here} if (here := root.absolute() / STATE).is_dir() else {}
    for top in tops:
        search = _Search(top)
        for state in search.states():
            states[os.path.realpath(state)] = state
        if not search.is_whole:
            problems.append(
                f"{top} has more than {_MOST_FOLDERS:,} folders, of which only so many were searched for workspaces. "
                "Name the folders of the others: knapper uninstall FOLDER…"
            )
    for state in states.values():
        holds = "the state of a workspace: conversations, memory, versions, packages"
        if (
            state.is_symlink()
        ):  # perhaps a stranger's, to a folder that is none of ours: everything else refuses it
            places.append(_place(state, "a link, and no state of a workspace", 0, [str(state)]))
            continue
        places += _kept(
            state, holds if is_workspace(state.parent) else f"{holds} (its functions are gone)"
        )
    return Footprint(
        tuple(places), own_installation.uninstall_program(), tuple(map(str, tops)), tuple(problems)
    )


def _kept(path: Path, holds: str) -> Iterator[KeptPlace]:
    """Yield a place of this user's if it is there; a link is removed with what it leads to."""
    if path.exists():
        real = os.path.realpath(path)
        names = [str(path), real] if path.is_symlink() else [str(path)]
        size = size_of(Path(real)) if path.is_dir() else path.stat().st_size
        yield _place(path, holds, size, names)


def _place(path: Path, holds: str, size: int, names: Sequence[str]) -> KeptPlace:
    """Return a place with the command that removes these paths; a command of several rows would be several commands."""
    if "".join(names).isprintable():
        return KeptPlace(str(path), holds, size, (_removal(*names),))
    holds = f"{holds} (remove it by hand: its path cannot be shown as one row)"
    return KeptPlace(one_line(str(path), _LONGEST_PATH), holds, size, ())


def _services(config: Path) -> Iterator[KeptPlace]:
    """Yield the units of systemd that were copied from `deploy/`, and the file that gives them keys."""
    for folder, prefix in (
        (config / "systemd" / "user", "systemctl --user"),
        (_SYSTEM_UNITS, "sudo systemctl"),
    ):
        for unit in sorted(folder.glob("knapper*.service")):
            name = shlex.quote(unit.stem + "*" if unit.stem.endswith("@") else unit.stem)
            removal = ("sudo " if "sudo" in prefix else "") + _removal(str(unit))
            stop = f"{prefix} disable --now {name}"
            yield KeptPlace(
                str(unit), "a service of systemd", unit.lstat().st_size, (stop, removal)
            )
    yield from _kept(config / "knapper.env", "the keys of that service")


class _Search:
    """A search for the state folders of this program below a folder; `is_whole` once it has looked everywhere."""

    def __init__(self, top: Path) -> None:
        self._waiting = deque([top])

    @property
    def is_whole(self) -> bool:
        return not self._waiting

    def states(self) -> Iterator[Path]:
        """Yield the folders, near ones first."""
        for _ in range(_MOST_FOLDERS):
            if not self._waiting:
                return
            folder = self._waiting.popleft()
            try:
                with os.scandir(folder) as entries:
                    below = [
                        Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)
                    ]
            except OSError:  # it is someone else's, or was removed meanwhile
                continue
            for path in below:
                if path.name == STATE and (is_workspace(folder) or (path / "state.db").is_file()):
                    yield path
                else:
                    self._waiting.append(path)


def _removal(*paths: str) -> str:
    if os.name == "nt":
        quoted = ", ".join("'{}'".format(path.replace("'", "''")) for path in paths)
        return f"Remove-Item -Recurse -Force -LiteralPath {quoted}"
    return f"rm -r -- {shlex.join(paths)}"
