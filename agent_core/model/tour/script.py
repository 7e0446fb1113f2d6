"""What the tour says next: the first scene of the script that fits what was typed and what there is.

A pure function of the request: the script has no memory, so a tour can be left and taken up anywhere.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

from sandbox.foreign import LOOSE, read_json, read_toml

from ..wire import IMPORTED_PREFIX, NOTICE_PREFIX

Wire: TypeAlias = Mapping[str, Any]  # Any: a message in the wire's own shape

NAME: Final = "tour"
SERVED: Final = "tour (scripted)"
LABEL: Final = "tour (scripted, not a language model)"
_SHOWN: Final = re.compile(r"Screen (\d+) of")
_REMINDED: Final = "It was not done, as said."
_NEXT: Final = re.compile(r"(next|go on|continue|weiter)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One reply: what it says and calls, what the answer before it must look like, and what is said if it does not."""

    text: str
    call: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    expect: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played when one of `says` was typed, `needs` are there, `absent` are not, and `noticed` was told."""

    screen: int
    steps: tuple[Step, ...]
    says: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    noticed: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Script:
    """The scenes in the order in which they are tried, and what is said where none fits."""

    scenes: tuple[Scene, ...]
    off: str
    astray: str

    @property
    def screens(self) -> int:
        """How many screens there are."""
        return max(scene.screen for scene in self.scenes)


@dataclass(frozen=True, slots=True)
class Line:
    """One reply of the tour, ready to be sent."""

    text: str
    call: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a request shows of where the tour is."""

    said: str
    screen: int
    notices: str
    answers: tuple[str, ...]
    made: frozenset[str]
    deleted: frozenset[str]
    has_replied: bool = False

    @classmethod
    def read(cls, messages: Sequence[Wire]) -> "Situation":
        """From the messages of a request: what was typed last, and everything around it."""
        typed = [(place, text) for place, each in enumerate(messages) if (text := _typed(each))]
        place, said = typed[-1] if typed else (0, "")
        before = [str(each.get("content") or "") for each in messages[:place] if each["role"] == "assistant"]
        shown = [int(number) for text in before for number in _SHOWN.findall(text)]
        notices = "\n".join(str(each.get("content")) for each in messages if each["role"] == "user")
        answers = tuple(str(each["content"]) for each in messages[place:] if each["role"] == "tool")
        made, deleted = (_targets(messages[place:], deed) for deed in ("create_function", "delete_function"))
        replied = any(each["role"] == "assistant" and not each.get("tool_calls") for each in messages[place:])
        return cls(said, shown[-1] if shown else 0, notices, answers, made, deleted, replied)


def play(messages: Sequence[Wire], functions: frozenset[str]) -> Line:
    """The next reply. `functions` are those that the request shows."""
    situation, told = Situation.read(messages), script()
    found = _scene(situation, functions, told)
    if found is None:
        return Line(_headed(told.off, situation.screen, told))
    scene, words = found
    number = min(len(situation.answers), len(scene.steps) - 1)
    step = scene.steps[number]
    answer = situation.answers[-1] if situation.answers else ""
    is_awaited = re.search(step.expect, answer) is not None
    if not is_awaited and step.otherwise:
        said = _headed(step.otherwise.strip(), scene.screen, told)
        return Line(_REMINDED if situation.has_replied else said)  # a refusal left alone is asked about once more
    if len(situation.answers) >= len(scene.steps) or not is_awaited:
        return Line(_headed(_filled(told.astray, {"answer": answer}), situation.screen, told))
    text = _filled(step.text, {**words, "answer": answer})
    if step.call:
        return Line(text, step.call, {name: _filled(value, words) for name, value in step.arguments.items()})
    return Line(_headed(text, scene.screen, told))


@cache
def script() -> Script:
    """The script of this package."""
    data = read_toml(resources.files(__package__).joinpath("script.toml").read_text(encoding="utf-8"))
    return Script(tuple(map(_read, data["scenes"])), data["off"].strip(), data["astray"].strip())


def _scene(situation: Situation, functions: frozenset[str], told: Script) -> tuple[Scene, dict[str, str]] | None:
    # As it was when it was typed: what this turn made or deleted must not change its scene.
    there = (functions - situation.made) | situation.deleted
    goes_on = _NEXT.fullmatch(situation.said.strip()) is not None
    for scene in told.scenes:
        if not scene.needs <= there or scene.absent & there or not re.search(scene.noticed, situation.notices):
            continue
        if goes_on and scene.screen == situation.screen + 1:
            return scene, dict(scene.defaults)
        for pattern in scene.says:
            if match := re.search(pattern, situation.said, re.IGNORECASE):
                given = {name: value for name, value in match.groupdict().items() if value}
                return scene, {**scene.defaults, **given}
    return None


def _typed(message: Wire) -> str:
    """What a human typed in this message; notices of the program stand beside it and are left out."""
    if message["role"] != "user":
        return ""
    parts = str(message.get("content") or "").split("\n\n")
    return "\n\n".join(part for part in parts if not part.startswith((NOTICE_PREFIX, IMPORTED_PREFIX))).strip()


def _targets(messages: Sequence[Wire], deed: str) -> frozenset[str]:
    called = [call["function"] for each in messages for call in each.get("tool_calls") or ()]
    given = [read_json(function["arguments"], LOOSE) for function in called if function["name"] == deed]
    return frozenset(str(arguments.get("function_name")) for arguments in given)


def _headed(text: str, screen: int, told: Script) -> str:
    where = f"Screen {screen} of {told.screens} · " if screen else ""
    return f"**{where}{LABEL}**\n\n{text}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _read(entry: dict[str, Any]) -> Scene:  # Any: data of this package
    steps = tuple(Step(**{**step, "text": step["text"].strip()}) for step in entry.pop("steps"))
    needs, absent = (frozenset(entry.pop(key, ())) for key in ("needs", "absent"))
    return Scene(steps=steps, says=tuple(entry.pop("says", ())), needs=needs, absent=absent, **entry)
