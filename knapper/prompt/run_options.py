"""The options of one `knapper run`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.base.own_environment import environment
from agent_core.base.pictures import PictureFile
from agent_core.base.plain_files import read_named_text
from agent_core.base.records import dataclass, field

if TYPE_CHECKING:
    from agent_core.registry import answer_shapes
    from agent_core.registry.answer_shapes import AnswerShape
else:  # few replies have a shape
    answer_shapes = LateModule("agent_core.registry.answer_shapes")

TOUR = "tour"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one `knapper run`."""

    root: Path
    agent: str | None = None
    conversation: str = "main"
    model: str | None = None
    maker: str | None = None
    mode: str | None = None
    growth: str | None = None
    base_url: str | None = None
    message: str | None = None
    max_steps: int | None = None
    stream: bool = True
    as_json: bool = False
    preset: str | None = None
    persona: str | None = None
    human: str | None = None
    first: bool = False
    greet: bool = False
    verify: bool = True
    yes: bool = False
    resume: bool = False
    approve: str | None = None
    plain: bool = False
    once: bool = False
    files: tuple[str, ...] = ()
    system: str | None = None
    schema: str | None = None
    pictures: tuple[PictureFile, ...] = field(default=(), repr=False)
    """The pictures among the files."""
    is_typed: bool = False
    """True if messages are lines of standard input, which may be commands."""
    key: str = field(default="", repr=False)
    """A key typed by the user, kept in memory for this run only."""

    @property
    def is_tour(self) -> bool:
        """True if the tour was requested. It has a separate conversation, so that no other one gets its script."""
        return self.model == TOUR

    @property
    def talks_to(self) -> str | None:
        """The name of the requested agent or the tour's agent; None for the default agent."""
        return self.agent or (TOUR if self.is_tour else None)

    @property
    def opening(self) -> str:
        """The first message that is sent at a terminal without waiting for the user, if any."""
        return "start" if self.is_tour else ""

    @property
    def shape(self) -> "AnswerShape | None":
        """The shape that the reply must have.

        Raises:
            UsageError: it is named by neither fields, nor a JSON Schema, nor a file with one of these.
        """
        if self.schema is None:
            return None
        return answer_shapes.AnswerShape.of_text(_shape_text(self.schema))

    def flags(self) -> Mapping[str, Any]:  # Any: values of settings, checked where they are read
        """Return the settings given as flags; None means "not given"."""
        return {
            "model.name": self.model,
            "growth.maker": self.maker,
            "growth.mode": self.growth,
            "turn.mode": self.mode,
            "model.base_url": self.base_url,
            "model.stream": None if self.stream else False,
            "turn.max_steps": self.max_steps,
            "instructions": self.system,
            "memory.preset": self.preset,
            "grants.unattended": "deny" if self.approve == "deny" else None,
            "repl.plain": self.plain or None,
            "memory.persona": _words("persona", self.persona),
            "memory.human": _words("human", self.human),
        }

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables plus the typed key, which other processes cannot see."""
        return {**environment(), "OPENAI_API_KEY": self.key} if self.key else environment()


def _shape_text(schema: str) -> str:
    """Return the text of a shape: that of the file with this name, or else the text itself."""
    try:
        return read_named_text(schema) if Path(schema).is_file() else schema
    except (OSError, UnicodeDecodeError, ValueError) as error:
        fix = "--schema takes fields such as 'name, age int', or a file with a JSON Schema."
        raise UsageError(f"The schema {schema!r} cannot be read: {error}.", fix=fix) from error


def _words(kind: str, name: str | None) -> str | None:
    """Return a name unchanged, or the text of the file that was given instead."""
    if name is None or re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        return name
    try:
        return read_named_text(name).strip()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        fix = f"--{kind} takes the name of one, or a file of text."
        raise UsageError(f"The {kind} {name!r} cannot be read: {error}.", fix=fix) from error
