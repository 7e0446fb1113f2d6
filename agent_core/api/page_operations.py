"""The API for the page's views and controls: steps, growth, costs, and agents that work together."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered
from agent_core.base.messages import Answer, Assistant, Message, Notice
from agent_core.base.records import to_json
from agent_core.context import BYTES_PER_TOKEN, History
from agent_core.context import resume as resume_history
from agent_core.context.folds import unwrapped
from agent_core.context.history import size_of
from agent_core.functions.service.history import pick
from agent_core.functions.service.judgment import judgment_on
from agent_core.model.request import FunctionShown
from agent_core.operations.catalog import ENTRIES, VERBS
from agent_core.operations.history_pages import MOST_HELD, PAGE_BYTES, read_page, read_pages
from agent_core.operations.spending import Spending, describe_price, spent_since_ever
from agent_core.operations.verb import ALWAYS
from agent_core.registry.function import Function
from agent_core.storage import AgentName, Entry, Line, PauseAgent, Store, agent_of, id_of
from agent_core.storage.folder import ring
from agent_core.storage.journal import (
    SEEN,
    TOLD,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    read_all,
    read_entry,
)
from agent_core.views.verdicts import ASKED
from agent_core.workspace.supervision import Supervision
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .identity import NotThere
from .operations import API, Asked, OfConversation, Part, api_operation
from .workspace_operations import Arguments, ThereFunction, by_hand

_MOST_TURNS: Final = 500
_CANDIDATE_LIMIT: Final = 100


class HowMany(Part):
    """The number of the last ones."""

    last: Annotated[int, Field(ge=1, le=1_000)] = 50


class HowManySteps(OfConversation, HowMany):
    """The number of the last ones of a conversation."""


class Reason(Part):
    """Why, for those who wait."""

    why: Annotated[str, Field(max_length=400)] = ""


@api_operation(
    "GET", "/functions/verdicts", ("read",), "Return the gate's last word on each function."
)
async def verdicts(asked: Asked) -> object:
    """Return the gate's last word on each function: examples that agreed, stages, and how many warnings.

    `asked` has the question that a stage answers, `pending` the candidates that were rejected and are kept.
    """
    store, service = asked.rooms.state.store, asked.functions
    rows: dict[str, dict[str, Any]] = {}  # Any: JSON
    for name, function in sorted(service.registry.snapshot().functions.items()):
        if (verdict := await judgment_on(store, function.body_hash, name)) is not None:
            rows[name] = {
                "admitted": verdict.admitted,
                "agreed": verdict.agreed,
                "warned": len(verdict.problems),
                "stages": verdict.stages,
            }
    return {"verdicts": rows, "pending": sorted(await service.all_pending()), "asked": {**ASKED}}


@api_operation(
    "GET", "/functions/{name}/versions/{version}", ("read",), "Return the source of a version."
)
async def version_source(asked: Asked, name: str, version: str) -> object:
    """Return the source of a version of a function, by its number or the beginning of its hash.

    The owner of the workspace is told in which `conversation` it was made, if an agent made it.
    """
    versions = await asked.functions.history.versions(name)
    found = pick(name, versions, version)
    document = {**found.to_json(), "name": name, "source": found.source}
    if found.row.turn and asked.identity.is_owner:
        made = await asked.rooms.state.store.source_of(found.row.turn)
        if made is not None:
            document |= {"agent": agent_of(made.line), "conversation": id_of(made.line)}
    return document


@api_operation(
    "POST", "/functions/{name}/trace", ("edit",), "Call a function and return the lines that ran."
)
async def trace(asked: Asked, name: ThereFunction, arguments: Arguments) -> object:
    """Call a function, and return the lines that ran."""
    return await asked.functions.trace(name, arguments.arguments, by_hand(asked))


@api_operation("GET", "/agents/{agent}/steps", ("read",), "List the last steps.")
async def list_steps(asked: Asked, agent: AgentName, line: Line, how_many: HowManySteps) -> object:
    """Return the last steps of a conversation: what came of each, and by which model."""
    await asked.hold(PAGE_BYTES)
    return {"agent": agent, "steps": await steps(asked.rooms.state.store, line, how_many.last)}


@api_operation(
    "GET", "/agents/{agent}/steps/{seq}", ("read",), "Return what the model saw in a step."
)
async def step(asked: Asked, agent: AgentName, line: Line, seq: str) -> object:
    """Return what the model saw in a step, by part, with about how many tokens each part has."""
    number = int(seq) if seq.isdecimal() and len(seq) < 20 else -1
    await asked.hold(MOST_HELD)
    own = (await asked.rooms.host.agent(line)).model_session.shown.pinned
    functions = {function.name: function for function in own} | dict(
        asked.functions.registry.snapshot().functions
    )
    parts = await step_parts(asked.rooms.state.store, line, number, functions)
    if parts is None:
        raise NotThere(
            f"`{agent}` has no step {seq[:20]}.",
            fix=f"GET {API}/agents/{agent}/steps lists the last.",
        )
    return {**parts, "window": (await asked.rooms.host.agent(line)).status().context_limit}


class ModelChoice(Part):
    """A model by its name."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


@api_operation(
    "GET", "/agents/{agent}/status", ("read", "chat"), "Return the model and its window."
)
async def status_of(asked: Asked, agent: AgentName, line: Line) -> object:
    """Return the model of a conversation, how much of its window is used, and the names of the models that are set.

    `about` says where each model is and what it costs, `policy` what a message may reach and grow that names no other.
    """
    settings = asked.workspace.settings
    host = asked.rooms.host
    known: Json = {"agent": agent, "model": settings.model.name, "models": sorted(settings.models)}
    known["about"] = {name: describe_price(model) for name, model in settings.models.items()}
    known["policy"] = to_json(settings.policy)
    if host.is_open(line):
        known |= to_json((await host.agent(line)).status())
    return known


@api_operation("POST", "/agents/{agent}/model", ("edit",), "Choose the model of a conversation.")
async def choose_model(asked: Asked, line: Line, choice: ModelChoice) -> object:
    """Let another model answer in a conversation, from its next step on."""
    session = (await asked.rooms.host.agent(line)).model_session
    return {"model": choice.name, "text": await session.change(choice.name)}


@api_operation("GET", "/agents/{agent}/cost", ("read",), "Return what the turns cost.")
async def costs(asked: Asked, agent: AgentName) -> object:
    """Return what the turns of an agent cost: tokens, and money where a price is known; the oldest are summed up."""
    workspace = asked.workspace
    spending = Spending(workspace.root, workspace.settings.models, _MOST_TURNS)
    await asked.hold(PAGE_BYTES)
    await spent_since_ever(asked.rooms.state.store, agent, spending, asked.identity.reader)
    return {"agent": agent, **spending.to_json()}


@api_operation("GET", "/growth", ("read",), "Return how functions came to be.")
async def grown(asked: Asked, how_many: HowMany) -> object:
    """Return how functions came to be: wanted, written, rejected, fixed, admitted, used; the newest last."""
    rows, store = list[Json](), asked.rooms.state.store
    await asked.hold(PAGE_BYTES)
    for name in await asked.rooms.shown(await store.agent_names(), asked.identity):
        for line in (name, *await store.lines(name, token=asked.identity.reader)):
            since = await store.branched_at(line)
            for row in await growth(store, line, since):
                rows.append({**row, "agent": name, "conversation": id_of(line)})
    rows.sort(key=lambda row: row["stages"][-1]["at"])
    return {"functions": rows[-how_many.last :]}


@api_operation("GET", "/candidates", ("read",), "List the rejected candidates that are kept.")
async def candidates(asked: Asked) -> object:
    """List the candidates that the gate rejected and that are kept, each with its verdict and what it would replace."""
    service = asked.functions
    kept = await service.all_pending()
    rows = [
        {
            "name": name,
            "module": row.module,
            "agent": row.agent,
            "reason": row.reason,
            "code": row.code,
            "verdict": row.verdict,
            "source": await _source_now(asked, name),
        }
        for name, row in islice(sorted(kept.items()), _CANDIDATE_LIMIT)
    ]
    return {"candidates": rows, "more": max(0, len(kept) - _CANDIDATE_LIMIT)}


async def _source_now(asked: Asked, name: str) -> str:
    if name not in asked.functions.names():
        return ""
    return (await asked.functions.introspect(name)).source


@api_operation("DELETE", "/candidates/{name}", ("edit",), "Drop a rejected candidate.")
async def drop_candidate(asked: Asked, name: str) -> object:
    """Drop a candidate that the gate rejected."""
    return await asked.functions.drop(name)


@api_operation("GET", "/slash-commands", ("read",), "List the slash commands of the prompt.")
async def slash_commands(asked: Asked) -> object:
    """Return the slash commands of the prompt, each with where the page has the same, if it has.

    `words` are those of the command that does the same over a server; without any, only a prompt has it.
    """
    return {
        "commands": [
            {
                "name": row.name,
                "typed": row.typed,
                "says": row.says,
                "page": row.page,
                "words": _words_of(row.name),
            }
            for row in ENTRIES
        ]
    }


def _words_of(name: str) -> list[str]:
    if name not in VERBS:
        return []
    noun, verb = VERBS[name]
    entry = verb.entry
    if not verb.scopes or entry is None or entry.needs_user == ALWAYS:
        return []
    return [noun, verb.name or ""]


@api_operation("GET", "/tree", ("read",), "Return what all agents do.")
async def tree(asked: Asked) -> object:
    """Return what each agent does, for whom it waits, and what it spent."""
    states = await (await _supervision(asked)).tree()
    seen = await asked.rooms.shown([state.name for state in states], asked.identity)
    return {"agents": [state.to_json() for state in states if state.name in seen]}


@api_operation("POST", "/agents/{agent}/pause", ("edit",), "Pause an agent.")
async def pause(asked: Asked, agent: AgentName, reason: Reason) -> object:
    """Pause an agent: its turns wait, and its inbox goes on filling."""
    await asked.rooms.state.store.apply([PauseAgent(agent, reason.why)])
    ring(asked.rooms.state.folder)
    return {"paused": agent}


@api_operation("POST", "/agents/{agent}/resume", ("edit",), "Let a paused agent go on.")
async def resume(asked: Asked, agent: AgentName) -> object:
    """Let a paused agent go on, and open the threads in which it is stuck."""
    threads = await (await _supervision(asked)).resume(agent)
    ring(asked.rooms.state.folder)
    return {"resumed": agent, "threads": threads}


@api_operation("POST", "/agents/{agent}/stop", ("edit",), "Stop what an agent does.")
async def stop(asked: Asked, agent: AgentName, reason: Reason) -> object:
    """End the running turns of an agent, and stop the threads that it is at work in."""
    is_interrupted = await asked.rooms.host.interrupt_all(agent)
    try:
        threads = await (await _supervision(asked)).stop(
            agent, reason.why or "A person stopped it."
        )
    except UsageError:
        if not is_interrupted:
            raise
        threads = []
    ring(asked.rooms.state.folder)
    return {"stopped": threads, "interrupted": is_interrupted}


async def _supervision(asked: Asked) -> Supervision:
    workspace = asked.workspace
    must_hold = workspace.directory.folder.must_hold
    return Supervision(
        workspace.store, await workspace.agent_names(), workspace.groups.read(), must_hold
    )


# The history of functions: wanted, written, rejected, fixed, admitted, used; read from the journals of agents.

KINDS: Final = (MessageEntry.kind, ReplyEntry.kind, CallAnswered.kind)
_WRITES: Final = (
    "create_function",
    "edit_function",
    "replace_function",
    "confirm_function",
    "add_example",
)
_NAMES: Final = ("function_name", "name")
_WORDS: Final = 400
Stage: TypeAlias = Literal["wanted", "written", "rejected", "fixed", "admitted", "used"]
Json = dict[str, Any]  # Any: JSON


async def growth(store: Store, agent: str, since: int = 0) -> list[Json]:
    """Return the functions that were made in a line of an agent, after an entry: the stages of each in order, and how
    often it was used there since.
    """
    grown: dict[str, Json] = {}
    arguments: dict[str, str] = {}  # of the last reply
    wanted: tuple[Entry, str] | None = None  # the last message of the user, with its text
    async for entries in read_pages(store, agent, kinds=KINDS, since=since, with_removed=True):
        for entry in entries:
            match read_entry(entry):
                case MessageEntry(text=text):
                    wanted = (entry, text)
                case ReplyEntry(calls=calls):
                    meant = map(unwrapped, calls)
                    arguments = {call.id: call.arguments for call in meant}
                case CallAnswered() as answer:
                    given = arguments.pop(answer.call_id, "")
                    _note_answer(grown, agent, (entry, answer), wanted, given)
                case _:
                    pass
    return list(grown.values())


def _add(row: Json, stage: Stage, entry: Entry, text: object = "") -> None:
    about = {"stage": stage, "at": entry.at, "turn": entry.turn, "seq": entry.seq}
    row["stages"].append({**about, "text": str(text)[:_WORDS]})


def _note_answer(
    grown: dict[str, Json],
    agent: str,
    answered: tuple[Entry, CallAnswered],
    wanted: tuple[Entry, str] | None,
    arguments: str,
) -> None:
    entry, answer = answered
    called = answer.name
    if called in grown and answer.outcome == "returned":
        grown[called]["used"] += 1
        if grown[called]["used"] == 1:
            _add(grown[called], "used", entry, answer.text)
    if called not in _WRITES:
        return
    verdict = answer.detail
    name = str(verdict.get("name") or "")  # the gate's verdict takes precedence
    if not name:
        with suppress(Malformed):
            values = read_json(arguments, LOOSE)
            given = values if isinstance(values, dict) else {}
            name = next((str(given[key]) for key in _NAMES if given.get(key)), "")
    if not name:
        return
    row = grown.get(name)
    if row is None:
        row = grown[name] = {"function": name, "agent": agent, "used": 0, "stages": []}
        if wanted is not None:
            _add(row, "wanted", *wanted)
    is_admitted = bool(verdict.get("admitted"))
    judged = [each["stage"] for each in row["stages"] if each["stage"] in ("rejected", "admitted")]
    _add(row, "fixed" if judged[-1:] == ["rejected"] and is_admitted else "written", entry, called)
    if is_admitted:
        _add(row, "admitted", entry, verdict.get("standing", ""))
    else:
        problems = [
            problem
            for problem in verdict.get("problems") or []
            if problem.get("severity") != "warns"
        ]
        _add(
            row,
            "rejected",
            entry,
            problems[0]["message"] if problems else answer.text,
        )


# The parts of what the model saw in a step, reconstructed from the journal.

STEP: Final = ReplyEntry.kind
_REQUEST: Final = RequestEntry.kind
_LINE: Final = 160
_MOST_SHOWN: Final = 200  # messages of a step shown with their texts
_LONGEST_SHOWN: Final = 10_000  # characters of each


async def steps(store: Store, agent: str, most: int) -> list[Json]:
    """Return the last steps of an agent, oldest first, with the calls, the text and the model of each."""
    rows, unnamed = (
        list[Json](),
        list[Json](),
    )  # the newest first; those whose request is not read yet
    async for entries in read_pages(store, agent, kinds=(STEP, _REQUEST), is_newest=True):
        for entry in entries:
            match read_entry(entry):
                case RequestEntry(model=model):
                    for row in unnamed:
                        row["model"] = model
                    unnamed = []
                    if len(rows) == most:
                        return rows[::-1]
                case ReplyEntry(text=text, calls=calls) if len(rows) < most:
                    place = {"seq": entry.seq, "turn": entry.turn, "at": entry.at, "model": ""}
                    names = [call.name for call in calls]
                    rows.append({**place, "calls": names, "text": text[:_LINE]})
                    unnamed.append(rows[-1])
                case _:
                    pass
    return rows[::-1]


async def step_parts(
    store: Store, agent: str, seq: int, functions: Mapping[str, Function]
) -> Json | None:
    """Return what the model saw before a reply: parts with their texts and approximate token counts.

    `functions` are the current ones: a function that was deleted or changed since then is not counted.
    """
    found = (
        (await read_page(store, agent, since=seq - 1, before=seq + 1, kinds=(STEP,))).entries
        if seq > 0
        else []
    )
    if not found:
        return None
    page = await read_page(store, agent, before=seq, kinds=(_REQUEST,), count=1, is_newest=True)
    requests = [request for _, request in read_all(RequestEntry, page.entries)]
    request = next(iter(requests), RequestEntry())
    history = History()
    await resume_history(store, agent, history, before=seq)
    parts: list[Json] = []
    for hash in request.sections:
        text = await store.text(hash) or ""
        is_first = hash == request.instructions
        parts.append(
            _part(
                "instructions" if is_first else "section",
                text,
                len(text.encode("utf-8", "replace")),
            )
        )
    if requests:
        names = request.functions
        there = [
            (function, request.versions.get(name))
            for name in names
            if (function := functions.get(name)) is not None
        ]
        same = [function for function, version in there if version in (None, function.version)]
        sizes = [FunctionShown(each.name, each.description, each.parameters).size for each in same]
        part = _part("functions", "\n".join(names), sum(sizes))
        parts.append(
            {**part, "count": len(names), "tokens": part["tokens"] if sizes or not names else None}
        )
        parts += _picture_parts(request.parameters)
    messages = list(history)
    if history.summary is not None:
        part = _part("summary", messages[0].text, size_of(messages.pop(0)))
        parts.append({**part, "count": history.summary.covers})
    rows = [
        {"kind": _kind(message), "tokens": _tokens(size_of(message)), "text": _shown(message)}
        for message in messages
    ]
    counts = Counter(_kind(message) for message in messages)
    part = _part("conversation", "", sum(size_of(message) for message in messages))
    parts.append(
        {**part, "count": len(messages), "kinds": dict(counts), "messages": rows[-_MOST_SHOWN:]}
    )
    facts = {"agent": agent, "seq": seq, "turn": found[0].turn, "model": request.model}
    return {**facts, "tokens": sum(part["tokens"] or 0 for part in parts), "parts": parts}


def _picture_parts(parameters: Mapping[str, Any]) -> list[Json]:  # Any: JSON
    """Return the parts that say which pictures a request showed, and of which it told in words."""
    parts = list[Json]()
    for name, key in (("pictures", SEEN), ("pictures told in words", TOLD)):
        if captions := parameters.get(key):
            part = _part(name, "\n".join(map(str, captions)), 0)
            parts.append({**part, "count": len(captions)})
    return parts


def _part(name: str, text: str, size: int) -> Json:
    return {"part": name, "tokens": _tokens(size), "text": text}


def _tokens(size: int) -> int:
    return int(size / BYTES_PER_TOKEN)


def _kind(message: Message) -> str:
    names = {Assistant: "assistant", Answer: "answer", Notice: "notice"}
    return names.get(type(message), "user")


def _shown(message: Message) -> str:
    text = _text(message)
    left = len(text) - _LONGEST_SHOWN
    return (
        text if left <= 0 else f"{text[:_LONGEST_SHOWN]}\n[Cut here: {left:,} characters left out.]"
    )


def _text(message: Message) -> str:
    match message:
        case Assistant():
            calls = [f"▸ {call.name} {call.arguments}" for call in message.calls]
            return "\n".join(filter(None, [message.text, *calls]))
        case Answer():
            return f"{message.name}: {message.text}"
        case _:
            return message.text
