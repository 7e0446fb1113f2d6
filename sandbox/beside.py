"""Levels that stand beside this package and are handed in, and the user's yes to one with a single wall.

None is chosen by itself as long as a level of this package holds, nor if it has one wall to which the user has not
agreed.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from .errors import OneWall, SandboxError, SandboxUnavailable
from .processes.ends import PoolChoice
from .processes.startup import CHOICES

_AGREEMENT: Final = "one-wall"  # a file in the level's folder, which is private to this user

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LevelBeside:
    """The result of a start: the pools, the layers around the workers, and the missing layers with reasons."""

    level: str
    pools: PoolChoice
    layers: dict[str, bool]
    missing: tuple[str, ...]
    one_wall: str = ""  # what a user has to know before agreeing, if a single wall holds


# A level's start takes its own folder, the number of workers, the packages that this program offers its functions, and
# a function that is told the progress. It raises SandboxUnavailable if the level cannot be had here.
StartLevel: TypeAlias = Callable[[Path, int, tuple[str, ...], Tell], Awaitable[LevelBeside]]


def _tell_nobody(_text: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class LevelsBeside:
    """The levels beside this package, listed only when one is needed. None has the name of one of its own.

    Each has a folder of its name in `store` for the files that it builds, which may take half a minute; `tell` gets its
    progress.
    """

    offers: Callable[[], Mapping[str, StartLevel]]
    store: Path | None
    tell: Tell = _tell_nobody

    async def start(self, level: str, slots: int, packages: tuple[str, ...]) -> LevelBeside:
        """Start the level that the user chose.

        Raises:
            SandboxError: there is none of this name.
            SandboxUnavailable: it cannot be had here, or says that it is another one.
        """
        start = self._others().get(level)
        if start is None:
            raise SandboxError(f"there is no level `{level}` of the sandbox here")
        if self.store is None:
            raise SandboxError(f"level `{level}` needs a folder for what it builds")
        started = await start(self.store / level, slots, packages, self.tell)
        if started.level != level:
            await started.pools.aclose()
            message = f"Level `{level}` calls itself `{started.level}`, which is another one."
            raise SandboxUnavailable(message, (f"level `{level}` under its own name",))
        return started

    def _others(self) -> dict[str, StartLevel]:
        return {name: start for name, start in self.offers().items() if name not in CHOICES}

    async def start_any(
        self, unavailable: SandboxUnavailable, slots: int, packages: tuple[str, ...]
    ) -> LevelBeside:
        """Start the first level that can be had, after those of this package were `unavailable`.

        Raises:
            SandboxUnavailable: none can be had; with the reasons of all.
            OneWall: it has one wall, and the user has not agreed to it.
        """
        if self.store is None:
            raise unavailable
        for level in self._others():
            try:
                started = await self.start(level, slots, packages)
            except SandboxUnavailable as error:
                reasons = (*unavailable.missing, *error.missing)
                unavailable = SandboxUnavailable(f"{unavailable} {error}", reasons)
                continue
            try:
                started = replace(started, missing=(*unavailable.missing, *started.missing))
                return with_enough_walls(started, self.store / level)
            except BaseException:
                await started.pools.aclose()
                raise
        raise unavailable


NO_OTHERS: Final = LevelsBeside(dict, None)


def agree_to_one_wall(folder: Path, *, agrees: bool) -> None:
    """Store the user's answer in the folder of a level."""
    path = folder / _AGREEMENT
    path.write_text("yes\n" if agrees else "no\n")
    path.chmod(0o600)


def with_enough_walls(level: LevelBeside, folder: Path) -> LevelBeside:
    """Return an automatically chosen level if it has a second wall or the user agreed to one wall.

    Raises:
        OneWall: there is only one wall, and the user has not agreed.
    """
    if not level.one_wall:
        return level
    path = folder / _AGREEMENT
    try:
        answer = path.read_text(errors="replace").strip()
    except OSError:
        answer = ""
    again = f"to be asked again: rm {path}"
    if answer == "yes":
        agreed = f"a second wall: you agreed to one; {again}"
        return replace(level, missing=(*level.missing, agreed))
    asked = "`knapper run` asks you once."
    if answer == "no":
        asked = f"You were asked, and said no; {again}."
    choice = f"To choose it yourself: export KNAPPER_SANDBOX_LEVEL={level.level}"
    missing = f"a second wall around level `{level.level}`. {asked}"
    raise OneWall(
        f"{level.one_wall} {asked} {choice}",
        (*level.missing, missing),
        was_refused=answer == "no",
        folder=folder,
    )
