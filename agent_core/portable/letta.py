"""Letta's agent files (.af) → agents: one agent a file, or agents beside what they share."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..storage.whole import WholeAgent, WholeBlock
from .caps import MOST_AGENTS, MOST_BLOCKS, MOST_LINKS, Room, at_most
from .contents import content_of
from .errors import AgentFileError
from .foreign import Json, agent_name, asked_of, block_of, objects_at, text_at, whole_characters
from .inward import Words
from .letta_files import Files
from .memgpt import system_section
from .messages import Told, Turns
from .packed import stamp_time
from .report import Report

_LEFT = (
    ("llm_config", "model", "the workspace's settings say which model answers"),
    ("embedding_config", "embedding", "texts are embedded anew, as the workspace's settings say"),
    ("tool_rules", "tool rules", "there are none here"),
    ("tool_exec_environment_variables", "environment variables", "functions get secrets: toolwright secrets set NAME"),
    ("multi_agent_group", "group of agents", "agents stand alone here"),
    ("group_ids", "groups of agents", "agents stand alone here"),
    ("identity_ids", "identities", "there are none here"),
    ("tags", "tags", "agents have none here"),
)
_LABEL = 64
_CUSTOM = "its source is in the file; look at it and give it to toolwright functions create"
_BUILT_IN = "they are Letta's own; this program's functions stand in their place"


@dataclass(frozen=True, slots=True)
class Beside:
    """What the agents of a newer file have beside them, by id, and how their parts are named and timed."""

    blocks: Mapping[str, tuple[str, Json]]
    tools: Mapping[str, tuple[str, Json]]
    files: Files
    room: Room
    now: float


def is_letta(raw: Json) -> bool:
    """Whether the document is one of Letta's."""
    return isinstance(raw.get("agents"), list) or {"core_memory", "messages", "agent_type"} <= raw.keys()


def agents_of_letta(raw: Json, size: int, ids: str, now: float, words: Words) -> Iterator[tuple[WholeAgent, Report]]:
    """The agents of a file of a size, each with what became of what; `ids` begins the names of their parts.

    Raises:
        AgentFileError: something is not as it must be.
    """
    room = Room.of(size)
    files = Files(_by_id(raw, "files"), words, room)
    beside = Beside(_by_id(raw, "blocks"), _by_id(raw, "tools"), files, room, now)
    if "agents" not in raw:
        yield _agent("", raw, beside, ids)
        return
    agents = list(objects_at(raw, "agents"))
    at_most("agents", MOST_AGENTS, len(agents))
    yield from (_agent(where, one, beside, f"{ids}-{at}") for at, (where, one) in enumerate(agents, 1))


def _agent(where: str, found: Json, beside: Beside, ids: str) -> tuple[WholeAgent, Report]:
    report = Report("letta", agent_name(text_at(found, "name", where)))
    turns = _conversation(found, where, beside, report)
    blocks = tuple(_apart(_blocks(found, where, beside, ids, turns.last), report))
    passages, documents = beside.files.of_agent(found, where, f"{ids}-p", report, turns.last)
    _leave(found, where, beside, report)
    whole = WholeAgent(
        name=report.name,
        settings={"preset": "memgpt" if text_at(found, "agent_type", where).startswith("memgpt") else "direct"},
        turns=turns.whole(ids),
        blocks=blocks,
        sections=system_section(text_at(found, "system", where), report, turns.last),
        passages=tuple(passages),
        documents=tuple(documents),
    )
    return whole, report


def _conversation(found: Json, where: str, beside: Beside, report: Report) -> Turns:
    messages = list(objects_at(found, "messages", where))
    times = [at for _, message in messages if (at := stamp_time(message.get("created_at")))]
    turns = Turns(report, min(times, default=beside.now))
    seen, shown_from = _first_in_context(found, messages), 0
    for at, (place, message) in enumerate(messages):
        for told in _told(message, place, report):
            turns.add(told)
        if at == seen and seen:
            shown_from = turns.count - 1  # the turn that it is in is shown whole
    turns.shorten(max(shown_from, 0))
    return turns


def _first_in_context(found: Json, messages: list[tuple[str, Json]]) -> int:
    """The first message, after the system's, that was in the context; 0 if all were, or nothing tells."""
    shown = found.get("in_context_message_indices")
    if not isinstance(shown, list):
        wanted = found.get("in_context_message_ids")
        ids = {id for id in wanted if isinstance(id, str)} if isinstance(wanted, list) else set()
        shown = [at for at, (_, message) in enumerate(messages) if str(message.get("id")) in ids]
    said = [at for at in shown if isinstance(at, int) and 0 <= at < len(messages)]
    return min((at for at in said if messages[at][1].get("role") != "system"), default=0)


def _told(message: Json, where: str, report: Report) -> Iterator[Told]:
    role, at = text_at(message, "role", where), stamp_time(message.get("created_at"))
    calls = tuple(asked_of(call, place) for place, call in objects_at(message, "tool_calls", where))
    if role == "approval" and not calls:
        report.leaves("approvals", "what came of the calls is in their answers")
        return
    content = content_of(message, where, report)
    one = Told("assistant" if role == "approval" else role, content.text, at, content.thought, calls)
    one = replace(
        one, call_id=text_at(message, "tool_call_id", where)[:200], name=text_at(message, "name", where)[:200]
    )
    answers = list(_answers(message, where, one)) if role == "tool" else []
    yield from answers or [one]


def _answers(message: Json, where: str, one: Told) -> Iterator[Told]:
    """A message that answers several calls at once, as so many."""
    for place, answer in objects_at(message, "tool_returns", where):
        if answer.get("tool_call_id") and answer.get("func_response"):
            text = whole_characters(text_at(answer, "func_response", place))
            yield replace(one, text=text, call_id=text_at(answer, "tool_call_id", place)[:200])


def _blocks(found: Json, where: str, beside: Beside, ids: str, at: float) -> Iterator[WholeBlock]:
    own = [*objects_at(found, "core_memory", where), *objects_at(found, "memory_blocks", where)]
    wanted = found.get("block_ids")
    named = dict.fromkeys(map(str, wanted)) if isinstance(wanted, list) else {}
    at_most(f"{where}.block_ids", MOST_LINKS, len(named))
    for id in named:
        if id not in beside.blocks:
            raise AgentFileError(f"{where}.block_ids", "expected the id of a block of the file")
        own.append(beside.blocks[id])
        beside.room.take(f"{where}.block_ids", len(text_at(beside.blocks[id][1], "value", beside.blocks[id][0])))
    for number, (place, block) in enumerate(own, 1):
        whole = block_of(f"{ids}-b{number}", block, place, at)
        yield replace(whole, row=replace(whole.row, position=number - 1))


def _apart(blocks: Iterator[WholeBlock], report: Report) -> Iterator[WholeBlock]:
    """The blocks, no two of one label."""
    labels: set[str] = set()
    counts: Counter[str] = Counter()
    for block in blocks:
        label = block.row.label
        while label in labels:
            stem = block.row.label[: _LABEL - len(str(MOST_BLOCKS)) - 1]
            counts[stem] += 1
            label = f"{stem}_{counts[stem] + 1}"
        labels.add(label)
        report.took("memory", "blocks")
        yield replace(block, row=replace(block.row, label=label))


def _leave(found: Json, where: str, beside: Beside, report: Report) -> None:
    for key, what, why in _LEFT:
        value = found.get(key)
        counted = isinstance(value, list | dict) and not key.endswith("_config")
        report.leaves(what, why, len(value or ()) if counted else bool(value))
    ids = found.get("tool_ids")
    own = [tool for _, tool in objects_at(found, "tools", where)]
    own += [
        beside.tools[id][1]
        for id in (ids if isinstance(ids, list) else ())
        if isinstance(id, str) and id in beside.tools
    ]
    for tool in own:
        name = text_at(tool, "name", where)[:60]
        report.leaves(*((f"function `{name}`", _CUSTOM) if tool.get("source_code") else ("functions", _BUILT_IN)))


def _by_id(raw: Json, key: str) -> dict[str, tuple[str, Json]]:
    return {str(one.get("id")): (where, one) for where, one in objects_at(raw, key)}
