"""Agents in files of other programs: MemGPT's `save_to_json_file` output and Letta's agent files (.af).

Their messages (role, content, calls) become turns of a journal. A user's message begins a turn; an event that a
program packed into a message with the user role (a heartbeat, a login) is a notice. Every call gets one answer, even if
the file has none. A file of Letta may hold several agents that share blocks and files. What has no counterpart here is
reported.
"""

import hashlib
import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from agent_core.base.records import dataclass, field, replace
from agent_core.memory.sources.cutting import cut
from agent_core.memory.sources.kinds import plain
from agent_core.storage import (
    BlockChange,
    BlockRow,
    DocumentRow,
    Entry,
    PassageRow,
    SectionRow,
    WholeAgent,
    WholeBlock,
    WholeEvent,
    WholeTurn,
    content_hash,
)
from agent_core.workspace.portable.document import (
    LONGEST,
    MOST_AGENTS,
    MOST_BLOCKS,
    MOST_CALLS,
    MOST_LINKS,
    Room,
    Words,
    at_most,
)
from agent_core.workspace.portable.others import MISSING, ForeignFile, answer_of
from agent_core.workspace.portable.report import AgentFileError, AgentReport, agent_name
from agent_core.workspace.portable.text import failed, stamp_time, unpacked
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import read_toml, whole_characters

Json = dict[str, Any]  # Any: JSON
_SPARE = 2000
_NOBODYS_BY_CHANCE: Final = 60  # characters of a line
_LABELS = ("persona", "human")
_THOUGHTS = ("reasoning", "summarized_reasoning")
_HIDDEN = ("omitted_reasoning", "redacted_reasoning")
_LEFT = (
    ("llm_config", "model", "the workspace's settings say which model answers"),
    ("embedding_config", "embedding", "texts are embedded anew, as the workspace's settings say"),
    ("tool_rules", "tool rules", "there are none here"),
    (
        "tool_exec_environment_variables",
        "environment variables",
        "functions get secrets: knapper secrets set NAME",
    ),
    ("multi_agent_group", "group of agents", "agents stand alone here"),
    ("group_ids", "groups of agents", "agents stand alone here"),
    ("identity_ids", "identities", "there are none here"),
    ("tags", "tags", "agents have none here"),
)
_LABEL = 64
_CUSTOM = "its source is in the file; look at it and give it to knapper functions create"
_BUILT_IN = "they are Letta's own; this program's functions stand in their place"


@dataclass(frozen=True, slots=True)
class ImportedCall:
    """A call by the model."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One parsed message: its text and calls, and the call that it answers."""

    role: str
    text: str
    at: float = 0.0
    thought: str = ""
    calls: tuple[ImportedCall, ...] = ()
    call_id: str = ""
    name: str = ""


@dataclass(slots=True)
class Turns:
    """A builder of turns from messages; `last` is the time for a message without one."""

    report: AgentReport
    last: float
    _turns: list[tuple[WholeEvent, list[Entry]]] = field(default_factory=list)
    _open: dict[str, ImportedCall] = field(default_factory=dict)
    _queues: dict[str, deque[str]] = field(
        default_factory=dict
    )  # keys of calls by name, and under "" all keys
    _calls: int = 0

    @property
    def count(self) -> int:
        """The number of turns so far."""
        return len(self._turns)

    def add(self, message: ImportedMessage) -> None:
        """Add the next message."""
        self.last = max(self.last, message.at)
        match message.role:
            case "user":
                self._user(message.text)
            case "assistant":
                self._settle()
                fresh = [  # with unique ids
                    ImportedCall(f"imported_{number}", call.name, call.arguments)
                    for number, call in enumerate(message.calls, self._calls + 1)
                ]
                self._calls += len(fresh)
                calls = [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in fresh
                ]
                self._put(
                    "assistant", {"text": message.text, "thought": message.thought, "calls": calls}
                )
                for old, new in zip(message.calls, fresh, strict=True):
                    key = new.id if not old.id or old.id in self._open else old.id
                    self._open[key] = new
                    for name in ("", new.name):
                        self._queues.setdefault(name, deque()).append(key)
                self.report.took("replies", "replies")
                self.report.took("calls", "calls", len(calls))
            case "tool" | "function":
                self._answer(message)
            case "system":
                self.report.leaves(
                    "system messages", "the system message is rebuilt for every request"
                )
            case role:
                self.report.leaves(
                    f"messages of the role `{role[:40]}`", "there is no such role here"
                )

    def shorten(self, turns: int) -> None:
        """Remove the first turns from the context, with a summary entry that says how to find them."""
        self._settle()
        dropped = [entry for _, entries in self._turns[:turns] for entry in entries]
        if not dropped:
            return
        covers = sum(entry.kind in ("user", "assistant") for entry in dropped)
        text = f"{covers} earlier messages are not shown here. conversation_search finds them."
        self._put(
            "summary", {"text": text, "covers": covers, "upto": len(dropped), "style": "summary"}
        )
        self.report.took(
            "messages out of the context", "messages out of the context, searchable", covers
        )

    def whole(self, prefix: str) -> tuple[WholeTurn, ...]:
        """Return the turns, with every call answered."""
        self._settle()
        return tuple(
            WholeTurn(f"{prefix}-{at}", "done", event.at, entries[-1].at, (event,), tuple(entries))
            for at, (event, entries) in enumerate(self._turns, 1)
        )

    def _user(self, raw: str) -> None:
        packed = unpacked(raw)
        self.last = max(self.last, packed.at)
        if packed.kind != "user_message":
            self._put("notice", {"text": packed.text, "packed": raw})
            self.report.took(f"events ({packed.kind})", "notices")
            return
        self._settle()
        self._turns.append((WholeEvent("message", {"text": packed.text}, self.last), []))
        self._put("user", {"text": packed.text} | ({"packed": raw} if packed.text != raw else {}))
        self.report.took("messages of the user", "messages of the user")

    def _answer(self, message: ImportedMessage) -> None:
        call: ImportedCall | None = None
        if message.call_id:
            call = self._open.pop(message.call_id, None)
        else:  # old files have only the function's name
            queue = self._queues.get(message.name, deque())
            while queue and call is None:
                call = self._open.pop(queue.popleft(), None)
        if call is None:
            self._put(
                "notice",
                {
                    "text": f"An answer of {message.name or 'a function'}, to no call here: {message.text}"
                },
            )
            self.report.took("answers without their call", "notices")
        else:
            self._result(call, message.text, "raised" if failed(message.text) else "returned")
            self.report.took("answers", "answers")

    def _settle(self) -> None:
        for call in self._open.values():
            self._result(call, MISSING, "unknown")
            self.report.took("calls without an answer", "calls answered as unknown")
        self._open = {}
        self._queues = {}

    def _result(self, call: ImportedCall, text: str, outcome: str) -> None:
        self._put("result", answer_of(call.id, call.name, text, outcome))

    def _put(self, kind: str, payload: Mapping[str, object]) -> None:
        if not self._turns:  # the agent spoke first
            self._turns.append((WholeEvent("boot", {"text": ""}, self.last), []))
        self._turns[-1][1].append(Entry(kind, {**payload}, at=self.last))


def _text_at(holder: Json, key: str, where: str) -> str:
    """Return the text under a key, or "" if it is missing.

    Raises:
        AgentFileError: the value is not text.
    """
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise AgentFileError(
            f"{where}.{key}" if where else key, f"expected a text of at most {LONGEST} characters"
        )
    return whole_characters(value)


def _objects_at(holder: Json, key: str, where: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the objects of a list, each with its position; a missing list is empty.

    Raises:
        AgentFileError: the value is not a list of objects.
    """
    place = f"{where}.{key}" if where else key
    items = holder.get(key)
    if not isinstance(items, list | None):
        raise AgentFileError(place, "expected a list")
    for at, item in enumerate(items or ()):
        if not isinstance(item, dict):
            raise AgentFileError(f"{place}[{at}]", "expected an object")
        yield f"{place}[{at}]", item


def _block_of(id: str, block: Json, where: str, at: float) -> WholeBlock:
    """Return a block from another program's form: label, value, limit, description."""
    label = re.sub(r"[^\w.-]+", "_", _text_at(block, "label", where))[:64].strip("_") or "block"
    value = _text_at(block, "value", where)
    limit = block.get("limit")
    room = (
        limit
        if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < 1 << 31
        else _SPARE
    )
    row = BlockRow(
        id=id,
        label=label,
        value=value,
        limit=max(room, len(value)),
        description=_text_at(block, "description", where),
        read_only=block.get("read_only") is True,
        edited=at,
    )
    return WholeBlock(row, (BlockChange(id, 1, value, "imported", "human", "", "", at),))


def _calls_of(message: Json, where: str) -> list[ImportedCall]:
    calls = [_asked_of(call, place) for place, call in _objects_at(message, "tool_calls", where)]
    at_most(f"{where}.tool_calls", MOST_CALLS, len(calls))
    return calls


def _asked_of(call: Json, where: str) -> ImportedCall:
    """Return a call from `{id, function: {name, arguments}}` or `{name, arguments}`."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    arguments = inner.get("arguments")
    raw = (
        arguments
        if isinstance(arguments, str)
        else json.dumps(arguments if arguments is not None else {})
    )
    name = _text_at(inner, "name", where)[:200] or "unnamed"
    return ImportedCall(_text_at(call, "id", where)[:200], name, whole_characters(raw))


def _system_section(system: str, report: AgentReport, at: float) -> tuple[SectionRow, ...]:
    """Return what the user wrote of a system prompt as a section.

    The lines that MemGPT and Letta come with are left out: they describe functions that are different here.
    """
    own = _without_usual_lines(system)
    if own != system:
        report.leaves("system prompt", "its usual lines: the preset has its own")
    if not own.strip():
        return ()
    report.took("system prompt", "section `system`")
    return (SectionRow("system", 0, own, max(4000, len(own)), at),)


def _without_usual_lines(system: str) -> str:
    lines = bare_lines(system)
    usual = [line for line in lines if _line_hash(line) in _usual_lines()]
    if not any(len(line) >= _NOBODYS_BY_CHANCE for line in usual):
        return system
    known = set(usual)
    kept = "\n".join("" if line in known else line for line in lines)
    return re.sub("\n{3,}", "\n\n", kept).strip()


@cache
def _usual_lines() -> frozenset[str]:
    text = resources.files(__package__).joinpath("usual_prompts.toml").read_text(encoding="utf-8")
    return frozenset(read_toml(text)["lines"].split())


def _line_hash(line: str) -> str:
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "replace")).hexdigest()[:8]


def is_memgpt(raw: Json) -> bool:
    """Check whether the document is one of MemGPT's."""
    return {"messages", "memory", "system"} <= raw.keys() and "agents" not in raw


def agents_of_memgpt(file: ForeignFile) -> Iterator[tuple[WholeAgent, AgentReport]] | None:
    """Return the agent of a file of MemGPT, or None if it is not one."""
    if not is_memgpt(file.raw):
        return None
    return iter([agent_of_memgpt(file.raw, file.name, file.ids, file.now)])


def agent_of_memgpt(raw: Json, name: str, ids: str, now: float) -> tuple[WholeAgent, AgentReport]:
    """Return the agent and the report of its import; `ids` is the prefix of its parts' ids.

    Raises:
        AgentFileError: the file is invalid.
    """
    report = AgentReport("memgpt", agent_name(name))
    messages: list[ImportedMessage] = []
    for where, message in _objects_at(raw, "messages"):
        calls = _calls_of(message, where)
        if isinstance(old := message.get("function_call"), dict):
            calls.append(_asked_of(old, f"{where}.function_call"))
        messages.append(
            ImportedMessage(
                role=_text_at(message, "role", where),
                text=whole_characters(_text_at(message, "content", where)),
                calls=tuple(calls),
                call_id=_text_at(message, "tool_call_id", where)[:200],
                name=_text_at(message, "name", where)[:200],
            )
        )
    times = [
        at for message in messages if message.role == "user" and (at := unpacked(message.text).at)
    ]
    turns = Turns(report, min(times, default=now))
    for part in messages:
        turns.add(part)
    memory = raw["memory"]
    if not isinstance(memory, dict):
        raise AgentFileError("memory", "expected an object")
    blocks = tuple(
        _block_of(
            f"{ids}-{label}",
            {"label": label, "value": memory.get(label)},
            f"memory.{label}",
            turns.last,
        )
        for label in _LABELS
    )
    report.took("memory", "blocks", len(blocks))
    whole = WholeAgent(
        name=report.name,
        settings={"preset": "memgpt"},
        turns=turns.whole(ids),
        blocks=blocks,
        sections=_system_section(_text_at(raw, "system", ""), report, turns.last),
    )
    if raw.get("model"):
        report.leaves("model", "the workspace's settings say which model answers")
    functions = list(_objects_at(raw, "functions"))
    report.leaves(
        "functions",
        "the file has their schemas alone; MemGPT's own functions are here under the same names",
        len(functions),
    )
    total = raw.get("messages_total")
    if (
        isinstance(total, int)
        and not isinstance(total, bool)
        and len(messages) - 1 < total < 1 << 40
    ):
        why = "MemGPT keeps them, and its archival memory, in files next to this one"
        report.leaves("messages before these", why, total - max(len(messages) - 1, 0))
    return whole, report


@dataclass(frozen=True, slots=True)
class _Files:
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
        links = {
            _text_at(link, "file_id", place): place
            for place, link in _objects_at(agent, "files_agents", where)
        }
        at_most(f"{where}.files_agents", MOST_LINKS, len(links))
        for id, place in links.items():
            file_place, file = self.files.get(id, (place, {}))
            text = whole_characters(_text_at(file, "content", file_place))
            name = _text_at(file, "file_name", file_place)[:300] or "file"
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
                documents[hash] = DocumentRow(
                    hash, report.name, name, "text", at, len(rows), len(rows), True
                )
                passages += rows
                report.took("files", "documents")
        report.took("text of files", "passages", len(passages))
        return passages, list(documents.values())


@dataclass(frozen=True, slots=True)
class _MessageContent:
    """The text of a message, and the reasoning before it."""

    text: str
    thought: str = ""


def _content_of(message: Json, where: str, report: AgentReport) -> _MessageContent:
    """Return a message's content, which may be a text, pieces of several kinds, or missing."""
    content: Any = message.get("content")  # Any: unvalidated JSON
    if not isinstance(content, list):
        return _MessageContent(_text_at(message, "content", where))
    texts = []
    thoughts = []
    for at, piece in enumerate(content):
        place = f"{where}.content[{at}]"
        kind = "unknown"
        text = ""
        if isinstance(piece, str):
            kind = "text"
            text = whole_characters(piece)
        elif isinstance(piece, dict):
            kind = _text_at(piece, "type", place)
            text = _text_at(piece, "reasoning" if kind == "reasoning" else "text", place)
        if kind == "text":
            texts.append(text)
        elif kind in _THOUGHTS:
            thoughts.append(text)
        elif kind not in _HIDDEN:
            report.leaves(f"pieces of the kind `{kind[:40]}`", "messages are text here")
    return _MessageContent("\n".join(texts), "\n".join(thoughts))


@dataclass(frozen=True, slots=True)
class _SharedParts:
    """The shared parts of a newer file, by id, with the current time and the remaining room."""

    blocks: Mapping[str, tuple[str, Json]]
    tools: Mapping[str, tuple[str, Json]]
    files: _Files
    room: Room
    now: float


def is_letta(raw: Json) -> bool:
    """Check whether the document is one of Letta's."""
    return (
        isinstance(raw.get("agents"), list)
        or {"core_memory", "messages", "agent_type"} <= raw.keys()
    )


def agents_of_letta(file: ForeignFile) -> Iterator[tuple[WholeAgent, AgentReport]] | None:
    """Return the agents of a file of Letta, or None if it is not one."""
    if not is_letta(file.raw):
        return None
    return _agents_of_letta(file.raw, file.size, file.ids, file.now, file.words)


def _agents_of_letta(
    raw: Json, size: int, ids: str, now: float, words: Words
) -> Iterator[tuple[WholeAgent, AgentReport]]:
    """Yield the agents in a file, each with the report of its import; `ids` is the prefix of their parts' ids.

    Raises:
        AgentFileError: the file is invalid.
    """
    room = Room.of(size)
    files = _Files(_by_id(raw, "files"), words, room)
    shared = _SharedParts(_by_id(raw, "blocks"), _by_id(raw, "tools"), files, room, now)
    if "agents" not in raw:
        yield _agent("", raw, shared, ids)
        return
    agents = list(_objects_at(raw, "agents"))
    at_most("agents", MOST_AGENTS, len(agents))
    yield from (
        _agent(where, agent, shared, f"{ids}-{at}") for at, (where, agent) in enumerate(agents, 1)
    )


def _agent(
    where: str, agent: Json, shared: _SharedParts, ids: str
) -> tuple[WholeAgent, AgentReport]:
    report = AgentReport("letta", agent_name(_text_at(agent, "name", where)))
    turns = _conversation(agent, where, shared, report)
    blocks = tuple(_blocks(agent, where, shared, ids, turns))
    passages, documents = shared.files.of_agent(agent, where, f"{ids}-p", report, turns.last)
    for key, label, why in _LEFT:
        value = agent.get(key)
        counted = isinstance(value, list | dict) and not key.endswith("_config")
        report.leaves(label, why, len(value or ()) if counted else bool(value))
    tool_ids = agent.get("tool_ids")
    listed = [id for id in (tool_ids if isinstance(tool_ids, list) else ()) if isinstance(id, str)]
    own = [tool for _, tool in _objects_at(agent, "tools", where)]
    for tool in [*own, *(shared.tools[id][1] for id in listed if id in shared.tools)]:
        name = _text_at(tool, "name", where)[:60]
        report.leaves(
            *(
                (f"function `{name}`", _CUSTOM)
                if tool.get("source_code")
                else ("functions", _BUILT_IN)
            )
        )
    whole = WholeAgent(
        name=report.name,
        settings={
            "preset": "memgpt"
            if _text_at(agent, "agent_type", where).startswith("memgpt")
            else "direct"
        },
        turns=turns.whole(ids),
        blocks=blocks,
        sections=_system_section(_text_at(agent, "system", where), report, turns.last),
        passages=tuple(passages),
        documents=tuple(documents),
    )
    return whole, report


def _conversation(agent: Json, where: str, shared: _SharedParts, report: AgentReport) -> Turns:
    messages = list(_objects_at(agent, "messages", where))
    times = [at for _, message in messages if (at := stamp_time(message.get("created_at")))]
    turns = Turns(report, min(times, default=shared.now))
    shown = agent.get("in_context_message_indices")
    if not isinstance(shown, list):
        listed_ids = agent.get("in_context_message_ids")
        ids = (
            {id for id in listed_ids if isinstance(id, str)}
            if isinstance(listed_ids, list)
            else set()
        )
        shown = [at for at, (_, message) in enumerate(messages) if str(message.get("id")) in ids]
    positions = [at for at in shown if isinstance(at, int) and 0 <= at < len(messages)]
    seen = min((at for at in positions if messages[at][1].get("role") != "system"), default=0)
    shown_from = 0
    for at, (place, message) in enumerate(messages):
        for part in _messages_of(message, place, report):
            turns.add(part)
        if at == seen and seen:
            shown_from = turns.count - 1  # keep its whole turn in the context
    turns.shorten(max(shown_from, 0))
    return turns


def _messages_of(message: Json, where: str, report: AgentReport) -> Iterator[ImportedMessage]:
    role = _text_at(message, "role", where)
    at = stamp_time(message.get("created_at"))
    calls = tuple(_calls_of(message, where))
    if role == "approval" and not calls:
        report.leaves("approvals", "what came of the calls is in their answers")
        return
    content = _content_of(message, where, report)
    part = ImportedMessage(
        "assistant" if role == "approval" else role, content.text, at, content.thought, calls
    )
    part = replace(
        part,
        call_id=_text_at(message, "tool_call_id", where)[:200],
        name=_text_at(message, "name", where)[:200],
    )
    answers = []
    for place, answer in _objects_at(message, "tool_returns", where) if role == "tool" else ():
        if answer.get("tool_call_id") and answer.get(
            "func_response"
        ):  # one message answers several calls
            text = whole_characters(_text_at(answer, "func_response", place))
            answers.append(
                replace(part, text=text, call_id=_text_at(answer, "tool_call_id", place)[:200])
            )
    yield from answers or [part]


def _blocks(
    agent: Json, where: str, shared: _SharedParts, ids: str, turns: Turns
) -> Iterator[WholeBlock]:
    """Yield the blocks, renamed so that labels are unique."""
    own = [*_objects_at(agent, "core_memory", where), *_objects_at(agent, "memory_blocks", where)]
    block_ids = agent.get("block_ids")
    named = dict.fromkeys(map(str, block_ids)) if isinstance(block_ids, list) else {}
    at_most(f"{where}.block_ids", MOST_LINKS, len(named))
    for id in named:
        if id not in shared.blocks:
            raise AgentFileError(f"{where}.block_ids", "expected the id of a block of the file")
        own.append(shared.blocks[id])
        shared.room.take(
            f"{where}.block_ids", len(_text_at(shared.blocks[id][1], "value", shared.blocks[id][0]))
        )
    labels: set[str] = set()
    counts: Counter[str] = Counter()
    for number, (place, block) in enumerate(own, 1):
        whole = _block_of(f"{ids}-b{number}", block, place, turns.last)
        label = whole.row.label
        while label in labels:
            stem = whole.row.label[: _LABEL - len(str(MOST_BLOCKS)) - 1]
            counts[stem] += 1
            label = f"{stem}_{counts[stem] + 1}"
        labels.add(label)
        turns.report.took("memory", "blocks")
        yield replace(whole, row=replace(whole.row, label=label, position=number - 1))


def _by_id(raw: Json, key: str) -> dict[str, tuple[str, Json]]:
    return {str(entry.get("id")): (where, entry) for where, entry in _objects_at(raw, key)}
