"""How functions came to be: wanted, written, rejected, fixed, admitted, used; read from the journals of agents."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.messages import Call
from agent_core.runtime.turn import unwrapped
from agent_core.storage import Entry
from sandbox.wire.foreign import LOOSE, Malformed, read_json

KINDS: Final = ("user", "assistant", "result")
_WRITES: Final = ("create_function", "edit_function", "replace_function", "confirm_function", "add_example")
_NAMES: Final = ("function_name", "name")
_WORDS: Final = 400
Stage: TypeAlias = Literal["wanted", "written", "rejected", "fixed", "admitted", "used"]
Json = dict[str, Any]  # Any: JSON


@dataclass(slots=True)
class Growth:
    """One function as an agent made it: its stages in their order, and how often it was used since."""

    function: str
    agent: str
    stages: list[Json] = field(default_factory=list)
    used: int = 0
    was_rejected: bool = False

    @property
    def at(self) -> float:
        """When something happened to it last."""
        return float(self.stages[-1]["at"])

    def add(self, stage: Stage, entry: Entry, text: str = "") -> None:
        """Note a stage."""
        self.stages.append(
            {"stage": stage, "at": entry.at, "turn": entry.turn, "seq": entry.seq, "text": text[:_WORDS]}
        )

    def to_json(self) -> Json:
        """Return the published shape."""
        return {"function": self.function, "agent": self.agent, "used": self.used, "stages": self.stages}


def growth(agent: str, entries: Iterable[Entry]) -> list[Growth]:
    """Return what an agent grew, in the order in which it began each."""
    grown: dict[str, Growth] = {}
    arguments: dict[str, str] = {}
    wanted: Entry | None = None
    for entry in entries:
        match entry.kind:
            case "user":
                wanted = entry
            case "assistant":
                rows = entry.payload.get("calls", [])
                calls = [unwrapped(Call(row["id"], row["name"], row["arguments"])) for row in rows]
                arguments.update((call.id, call.arguments) for call in calls)
            case _:
                _answered(grown, agent, entry, wanted, arguments.pop(str(entry.payload.get("call_id")), ""))
    return list(grown.values())


def _answered(grown: dict[str, Growth], agent: str, entry: Entry, wanted: Entry | None, arguments: str) -> None:
    called = str(entry.payload.get("name", ""))
    if called in grown:
        _used(grown[called], entry)
    if called not in _WRITES or not (name := _name_in(arguments, entry)):
        return
    row = grown.get(name)
    if row is None:
        row = grown[name] = Growth(name, agent)
        if wanted is not None:
            row.add("wanted", wanted, str(wanted.payload.get("text", "")))
    for stage, text in _stages(row, called, entry):
        row.add(stage, entry, text)


def _used(growth: Growth, entry: Entry) -> None:
    if entry.payload.get("outcome") == "returned":
        growth.used += 1
        if growth.used == 1:
            growth.add("used", entry, str(entry.payload.get("text", "")))


def _stages(growth: Growth, called: str, entry: Entry) -> Iterator[tuple[Stage, str]]:
    """Yield what one answer of the gate was a stage of."""
    verdict = entry.payload.get("detail") or {}
    yield ("fixed" if growth.was_rejected and verdict.get("admitted") else "written"), called
    if verdict.get("admitted"):
        growth.was_rejected = False
        yield "admitted", str(verdict.get("standing", ""))
    else:
        growth.was_rejected = True
        problems = [problem for problem in verdict.get("problems") or [] if problem.get("severity") != "warns"]
        yield "rejected", str(problems[0]["message"]) if problems else str(entry.payload.get("text", ""))


def _name_in(arguments: str, entry: Entry) -> str:
    """Return the name of the function that a call is about; the gate's own word goes first."""
    if name := str((entry.payload.get("detail") or {}).get("name") or ""):
        return name
    try:
        values = read_json(arguments, LOOSE)
    except Malformed:
        return ""
    return next((str(values[key]) for key in _NAMES if values.get(key)), "") if isinstance(values, dict) else ""
