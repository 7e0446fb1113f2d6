"""The process that parses agents' files of all kinds; `moves.py` starts it."""

import gc
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from agent_core.base.events import CallAnswered
from agent_core.base.programs import serve
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line, shorten
from agent_core.memory.classes import POSITIONS
from agent_core.memory.words import indexed
from agent_core.storage import Entry, SectionRow, WholeAgent, text_names
from agent_core.storage.journal import ReplyEntry, RequestEntry, read_as, read_entry

from .document import FORMAT, Item, SettingsPayload, agent_of, document_of, items_of
from .others import MISSING, ForeignFile, agents_of_others, answer_of, known_programs
from .pictures import without_strange_pictures
from .report import AgentFileError, AgentReport, waiting_of
from .text import parse

_MEMORY: Final = 3 << 30


def _answer(order: dict[str, Any], data: bytes) -> Iterator[Item]:  # Any: JSON
    try:
        for whole, report in agents_in(
            data.decode("utf-8", "surrogatepass"), ReadingContext(**order)
        ):
            yield from items_of(whole, report)
    except AgentFileError as error:
        yield "refused", [error.where, error.what]


MOST = 16_000  # characters of a section: more than usual, because MemGPT's instructions are long
_TOLD = 60  # characters for the line that says how much is left out


def fitted(sections: Sequence[SectionRow], report: AgentReport) -> tuple[SectionRow, ...]:
    """Return the sections; rename those with a reserved name, and shorten long ones."""
    names = {section.name for section in sections}
    rows = []
    for section in sections:
        row = section
        if row.name in POSITIONS:
            name = f"own_{row.name}"
            while name in names:
                name = f"{name}_"
            names.add(name)
            report.took(
                f"section `{row.name}`", f"section `{name}`, for the program has one of that name"
            )
            row = replace(row, name=name)
        if len(row.text) > MOST:
            report.leaves(
                f"the middle of section `{row.name}`",
                f"a section of a file has at most {MOST:,} characters",
            )
            row = replace(row, text=shorten(row.text, MOST - _TOLD), limit=MOST)
        rows.append(row)
    return tuple(rows)


IMPORTED = "imported"
"""The state of a turn that was open in a file; it is not resumed."""


@dataclass(frozen=True, slots=True)
class ReadingContext:
    """The context for reading a file: its name, the time, and the presets and memory classes that exist here."""

    file_name: str
    now: float
    presets: Collection[str]
    classes: Collection[str]


def agents_in(text: str, context: ReadingContext) -> Iterator[tuple[WholeAgent, AgentReport]]:
    """Yield the agents of a file of this program, or of another one that an extension knows.

    Raises:
        AgentFileError: the file is invalid; it has the first error and its place.
    """
    for whole, report in _agents(text, context):
        # Drop references to texts that are not in the file: a hash must not fetch a text of the workspace.
        turns = tuple(
            replace(
                turn,
                entries=tuple(
                    _without_others(_with_own_pictures(entry, whole), whole.texts, report)
                    for entry in turn.entries
                ),
            )
            for turn in whole.turns
        )
        closed = _close_turn(replace(whole, turns=turns), report)
        yield replace(closed, sections=fitted(closed.sections, report)), report


def _agents(text: str, context: ReadingContext) -> Iterator[tuple[WholeAgent, AgentReport]]:
    raw = parse(text)
    ids = f"from-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
    if raw.get("format") == FORMAT:
        whole = agent_of(raw, indexed)
        report = AgentReport("knapper", whole.name)
        settings = {
            key: value
            for key, value in (whole.settings or {}).items()
            if key in SettingsPayload.model_fields
        }
        for key in (whole.settings or {}).keys() - settings:
            report.leaves(
                f"setting `{one_line(key, 60)}`", "it is of the workspace that it comes from"
            )
        for key, here in (("memory_class", context.classes), ("preset", context.presets)):
            if settings.get(key, "") not in ("", *here):
                what = key.replace("_", " ")
                report.leaves(
                    f"{what} `{one_line(settings.pop(key), 60)}`",
                    f"no {what} of that name is set up here",
                )
        entries = [entry.kind for turn in whole.turns for entry in turn.entries]
        counts = {
            "turns": len(whole.turns),
            "messages": sum(kind in ("user", "assistant") for kind in entries),
            "blocks": len(whole.blocks),
            "sections": len(whole.sections),
            "passages": len(whole.passages),
            "documents": len(whole.documents),
        }
        report.inbox, report.waiting = waiting_of(whole.inbox), len(whole.inbox)
        for what, count in counts.items():
            report.took(what, what, count)
        report.took(
            "events that wait in the inbox", "the end of the conversation", len(whole.inbox)
        )
        yield replace(whole, settings=whole.settings and settings), report
        return
    file = ForeignFile(raw, context.file_name, len(text), ids, context.now, indexed)
    agents = agents_of_others(file)
    if agents is None:
        others = " or ".join(f"{name}'s" for name in known_programs())
        also = f", or one of {others}" if others else ""
        raise AgentFileError("", f"expected the file of an agent: `format` is {FORMAT}{also}")
    for found in agents:
        yield _check(*found)


def _check(whole: WholeAgent, report: AgentReport) -> tuple[WholeAgent, AgentReport]:
    """Validate a converted agent with the rules for this program's files."""
    return agent_of(document_of(whole), indexed), report


def _close_turn(whole: WholeAgent, report: AgentReport) -> WholeAgent:
    """Close an open turn, so that it is not resumed: a message in a file is not a request of this user."""
    if not whole.turns or whole.turns[-1].state != "open":
        return whole
    turn = whole.turns[-1]
    ended = max([turn.started, *(entry.at for entry in turn.entries)])
    waiting: dict[str, str] = {}
    for entry in turn.entries:
        match read_entry(entry):
            case ReplyEntry(calls=calls):
                waiting = {call.id: call.name for call in calls}
            case CallAnswered(call_id=id):
                waiting.pop(id, None)
            case _:
                pass
    answers = [
        Entry("result", answer_of(id, name, MISSING, "unknown"), at=ended)
        for id, name in waiting.items()
    ]
    report.took("an open turn", "a closed turn, which nothing goes on with")
    report.took("calls without an answer", "calls answered as unknown", len(answers))
    last = replace(turn, state=IMPORTED, ended=ended, entries=(*turn.entries, *answers))
    return replace(whole, turns=(*whole.turns[:-1], last))


def _with_own_pictures(entry: Entry, whole: WholeAgent) -> Entry:
    payload = without_strange_pictures(entry.payload, whole.texts)
    return entry if payload is entry.payload else replace(entry, payload=payload)


def _without_others(entry: Entry, texts: Collection[str], report: AgentReport) -> Entry:
    missing = {name for name in text_names(entry) if name not in texts}
    if not missing:
        return entry
    report.leaves("names of texts", "the texts are not in the file", len(missing))
    request = read_as(RequestEntry, entry)
    if request is not None:
        first = "" if request.instructions in missing else request.instructions
        sections = [name for name in request.sections if name not in missing]
        names = {"instructions": first, "sections": sections}
        return replace(entry, payload=entry.payload | names)
    return replace(
        entry,
        payload={key: said for key, said in entry.payload.items() if key not in ("whole", "chars")},
    )


if __name__ == "__main__":
    gc.disable()  # a parsed file is one large tree without cycles; repeated collections would take minutes
    serve(_answer, _MEMORY)
