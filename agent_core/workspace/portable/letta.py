"""Conversion of Letta's agent files (.af), with messages, blocks and attached files, to agents.

A file may hold several agents that share blocks and files. Parts of a message that have no counterpart here are
reported.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_core.base.untrusted import whole_characters
from agent_core.memory.sources.cutting import cut
from agent_core.memory.sources.prose import plain
from agent_core.storage import DocumentRow, PassageRow, WholeAgent, WholeBlock, content_hash

from .document import MOST_AGENTS, MOST_BLOCKS, MOST_LINKS, Room, Words, at_most
from .memgpt import system_section
from .messages import ImportedMessage, Json, Turns, agent_name, asked_of, block_of, objects_at, text_at
from .report import AgentFileError, AgentReport
from .text import stamp_time


@dataclass(frozen=True, slots=True)
class Files:
    """The files in an agent file by id, each with its position."""

    files: Mapping[str, tuple[str, Json]]
    words: Words
    room: Room

    def of_agent(
        self, agent: Json, where: str, ids: str, report: AgentReport, at: float
    ) -> tuple[list[PassageRow], list[DocumentRow]]:
        """Return an agent's files as passages and documents."""
        passages: list[PassageRow] = []
        documents: dict[str, DocumentRow] = {}
        links = {text_at(link, "file_id", place): place for place, link in objects_at(agent, "files_agents", where)}
        at_most(f"{where}.files_agents", MOST_LINKS, len(links))
        for id, place in links.items():
            file_place, file = self.files.get(id, (place, {}))
            text = whole_characters(text_at(file, "content", file_place))
            name = text_at(file, "file_name", file_place)[:300] or "file"
            if not text.strip():
                report.leaves(f"file `{name[:60]}`", "its text is not in the file")
            elif (hash := content_hash(text)) not in documents:
                self.room.take(place, len(text))
                rows = [
                    PassageRow(
                        id=f"{ids}{len(documents)}-{n}",
                        agent=report.name,
                        text=chunk.text,
                        words=self.words(chunk.text, None, ()),
                        at=at,
                        source=name,
                        place=chunk.place[:1000],
                        document=hash,
                        n=n,
                    )
                    for n, chunk in enumerate(cut(plain(text)))
                ]
                documents[hash] = DocumentRow(hash, report.name, name, "text", at, len(rows), len(rows), True)
                passages += rows
                report.took("files", "documents")
        report.took("text of files", "passages", len(passages))
        return passages, list(documents.values())


_THOUGHTS = ("reasoning", "summarized_reasoning")
_HIDDEN = ("omitted_reasoning", "redacted_reasoning")


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The text of a message, and the reasoning before it."""

    text: str
    thought: str = ""


def content_of(message: Json, where: str, report: AgentReport) -> MessageContent:
    """Return a message's content, which may be a text, pieces of several kinds, or missing."""
    content: Any = message.get("content")  # Any: unvalidated JSON
    if not isinstance(content, list):
        return MessageContent(text_at(message, "content", where))
    texts, thoughts = [], []
    for at, piece in enumerate(content):
        place, kind, text = f"{where}.content[{at}]", "unknown", ""
        if isinstance(piece, str):
            kind, text = "text", whole_characters(piece)
        elif isinstance(piece, dict):
            kind = text_at(piece, "type", place)
            text = text_at(piece, "reasoning" if kind == "reasoning" else "text", place)
        if kind == "text":
            texts.append(text)
        elif kind in _THOUGHTS:
            thoughts.append(text)
        elif kind not in _HIDDEN:
            report.leaves(f"pieces of the kind `{kind[:40]}`", "messages are text here")
    return MessageContent("\n".join(texts), "\n".join(thoughts))


_LEFT = (
    ("llm_config", "model", "the workspace's settings say which model answers"),
    ("embedding_config", "embedding", "texts are embedded anew, as the workspace's settings say"),
    ("tool_rules", "tool rules", "there are none here"),
    ("tool_exec_environment_variables", "environment variables", "functions get secrets: knapper secrets set NAME"),
    ("multi_agent_group", "group of agents", "agents stand alone here"),
    ("group_ids", "groups of agents", "agents stand alone here"),
    ("identity_ids", "identities", "there are none here"),
    ("tags", "tags", "agents have none here"),
)
_LABEL = 64
_CUSTOM = "its source is in the file; look at it and give it to knapper functions create"
_BUILT_IN = "they are Letta's own; this program's functions stand in their place"


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The shared parts of a newer file, by id, with the current time and the remaining room."""

    blocks: Mapping[str, tuple[str, Json]]
    tools: Mapping[str, tuple[str, Json]]
    files: Files
    room: Room
    now: float


def is_letta(raw: Json) -> bool:
    """Check whether the document is one of Letta's."""
    return isinstance(raw.get("agents"), list) or {"core_memory", "messages", "agent_type"} <= raw.keys()


def agents_of_letta(
    raw: Json, size: int, ids: str, now: float, words: Words
) -> Iterator[tuple[WholeAgent, AgentReport]]:
    """Yield the agents in a file, each with the report of its import; `ids` is the prefix of their parts' ids.

    Raises:
        AgentFileError: the file is invalid.
    """
    room = Room.of(size)
    files = Files(_by_id(raw, "files"), words, room)
    shared = SharedParts(_by_id(raw, "blocks"), _by_id(raw, "tools"), files, room, now)
    if "agents" not in raw:
        yield _agent("", raw, shared, ids)
        return
    agents = list(objects_at(raw, "agents"))
    at_most("agents", MOST_AGENTS, len(agents))
    yield from (_agent(where, agent, shared, f"{ids}-{at}") for at, (where, agent) in enumerate(agents, 1))


def _agent(where: str, agent: Json, shared: SharedParts, ids: str) -> tuple[WholeAgent, AgentReport]:
    report = AgentReport("letta", agent_name(text_at(agent, "name", where)))
    turns = _conversation(agent, where, shared, report)
    blocks = tuple(_apart(_blocks(agent, where, shared, ids, turns.last), report))
    passages, documents = shared.files.of_agent(agent, where, f"{ids}-p", report, turns.last)
    _leave(agent, where, shared, report)
    whole = WholeAgent(
        name=report.name,
        settings={"preset": "memgpt" if text_at(agent, "agent_type", where).startswith("memgpt") else "direct"},
        turns=turns.whole(ids),
        blocks=blocks,
        sections=system_section(text_at(agent, "system", where), report, turns.last),
        passages=tuple(passages),
        documents=tuple(documents),
    )
    return whole, report


def _conversation(agent: Json, where: str, shared: SharedParts, report: AgentReport) -> Turns:
    messages = list(objects_at(agent, "messages", where))
    times = [at for _, message in messages if (at := stamp_time(message.get("created_at")))]
    turns = Turns(report, min(times, default=shared.now))
    shown = agent.get("in_context_message_indices")
    if not isinstance(shown, list):
        listed_ids = agent.get("in_context_message_ids")
        ids = {id for id in listed_ids if isinstance(id, str)} if isinstance(listed_ids, list) else set()
        shown = [at for at, (_, message) in enumerate(messages) if str(message.get("id")) in ids]
    positions = [at for at in shown if isinstance(at, int) and 0 <= at < len(messages)]
    seen, shown_from = min((at for at in positions if messages[at][1].get("role") != "system"), default=0), 0
    for at, (place, message) in enumerate(messages):
        for part in _messages_of(message, place, report):
            turns.add(part)
        if at == seen and seen:
            shown_from = turns.count - 1  # keep its whole turn in the context
    turns.shorten(max(shown_from, 0))
    return turns


def _messages_of(message: Json, where: str, report: AgentReport) -> Iterator[ImportedMessage]:
    role, at = text_at(message, "role", where), stamp_time(message.get("created_at"))
    calls = tuple(asked_of(call, place) for place, call in objects_at(message, "tool_calls", where))
    if role == "approval" and not calls:
        report.leaves("approvals", "what came of the calls is in their answers")
        return
    content = content_of(message, where, report)
    part = ImportedMessage("assistant" if role == "approval" else role, content.text, at, content.thought, calls)
    part = replace(
        part, call_id=text_at(message, "tool_call_id", where)[:200], name=text_at(message, "name", where)[:200]
    )
    answers = []
    for place, answer in objects_at(message, "tool_returns", where) if role == "tool" else ():
        if answer.get("tool_call_id") and answer.get("func_response"):  # one message answers several calls
            text = whole_characters(text_at(answer, "func_response", place))
            answers.append(replace(part, text=text, call_id=text_at(answer, "tool_call_id", place)[:200]))
    yield from answers or [part]


def _blocks(agent: Json, where: str, shared: SharedParts, ids: str, at: float) -> Iterator[WholeBlock]:
    own = [*objects_at(agent, "core_memory", where), *objects_at(agent, "memory_blocks", where)]
    block_ids = agent.get("block_ids")
    named = dict.fromkeys(map(str, block_ids)) if isinstance(block_ids, list) else {}
    at_most(f"{where}.block_ids", MOST_LINKS, len(named))
    for id in named:
        if id not in shared.blocks:
            raise AgentFileError(f"{where}.block_ids", "expected the id of a block of the file")
        own.append(shared.blocks[id])
        shared.room.take(f"{where}.block_ids", len(text_at(shared.blocks[id][1], "value", shared.blocks[id][0])))
    for number, (place, block) in enumerate(own, 1):
        whole = block_of(f"{ids}-b{number}", block, place, at)
        yield replace(whole, row=replace(whole.row, position=number - 1))


def _apart(blocks: Iterator[WholeBlock], report: AgentReport) -> Iterator[WholeBlock]:
    """Yield the blocks, renamed so that labels are unique."""
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


def _leave(agent: Json, where: str, shared: SharedParts, report: AgentReport) -> None:
    for key, label, why in _LEFT:
        value = agent.get(key)
        counted = isinstance(value, list | dict) and not key.endswith("_config")
        report.leaves(label, why, len(value or ()) if counted else bool(value))
    ids = agent.get("tool_ids")
    own = [tool for _, tool in objects_at(agent, "tools", where)]
    own += [
        shared.tools[id][1]
        for id in (ids if isinstance(ids, list) else ())
        if isinstance(id, str) and id in shared.tools
    ]
    for tool in own:
        name = text_at(tool, "name", where)[:60]
        report.leaves(*((f"function `{name}`", _CUSTOM) if tool.get("source_code") else ("functions", _BUILT_IN)))


def _by_id(raw: Json, key: str) -> dict[str, tuple[str, Json]]:
    return {str(entry.get("id")): (where, entry) for where, entry in objects_at(raw, key)}
