"""An agent's memory as JSON and as lines: blocks, sections, their history, and search results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agent_core.base.clock import shown_time
from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered
from agent_core.base.matching import ComparisonBudget, blamed, did_you_mean
from agent_core.base.messages import SEND, Call
from agent_core.base.untrusted import fence, one_line
from agent_core.context.folds import receipt_in
from agent_core.memory.agent_memory import counts_of
from agent_core.memory.classes import value_lines
from agent_core.memory.search import ResultPage, coverage, excerpt
from agent_core.memory.words import stems
from agent_core.storage import Entry
from agent_core.storage.journal import (
    MessageEntry,
    NoticeEntry,
    ReceiptEntry,
    ReplyEntry,
    StreamedEntry,
    SummaryEntry,
    read_all,
    read_entry,
)
from agent_core.storage.turn_store import N_BITS
from agent_core.workspace.forgetting import MOST_LINES, ForgetReport, place_of
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import LOOSE, read_json

from .agent_view import text_of
from .result import Result
from .styled_lines import Line, columns, counted, indented, line
from .verdicts import compact_call, moment

if TYPE_CHECKING:  # for annotations
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.storage import BlockChange, BlockRow, MemoryStore, Plan, Store


Json = dict[str, Any]  # Any: JSON
_HIT = 140
_COUNT = 10
_OF_BLOCK = (
    "label",
    "value",
    "limit",
    "description",
    "read_only",
    "shared",
    "position",
    "version",
    "edited",
)
_BY = ("by", "agent", "turn", "at")
_NEAREST = 3  # hits shown if none contains a word of the question
_WHERE = {"messages": "recall", "private messages": "recall", "passages": "archival"}
_HANDS = {
    "human": "you",
    "agent": "the agent {}",
    "function": "a function of the agent {}",
    "class": "from the memory class",
}


async def memory_document(store: "Store", agent: str, label: str = "") -> Json:
    """Return all blocks and sections of an agent, or those with one label or name.

    Raises:
        UsageError: there is no block or section with that name.
    """
    blocks = [row for row in await store.blocks(agent) if label in ("", row.label)]
    sections = [row for row in await store.sections(agent) if label in ("", row.name)]
    if label and not (blocks or sections):
        raise UsageError(
            f"`{agent}` has no block `{label}`.", fix=await known_labels(store, agent, label)
        )
    counts = await counts_of(store, agent)
    return {
        "agent": agent,
        "blocks": [_fields(row, *_OF_BLOCK) for row in blocks],
        "sections": [
            _fields(row, "name", "position", "text", "limit", "edited") for row in sections
        ],
        "messages": counts.messages,
        "passages": counts.passages,
        "edited": counts.edited or None,
    }


async def history_document(store: "MemoryStore", agent: str, label: str = "") -> Json:
    """Return every change of one block, even a former one, or of all blocks of an agent, oldest first.

    Raises:
        UsageError: the agent never had a block with that label.
    """
    ids = [
        (id, block_label)
        for id, block_label in (await store.block_ids(agent)).items()
        if label in ("", block_label)
    ]
    if not ids and label:
        raise UsageError(
            f"`{agent}` never had a block `{label}`.", fix=await known_labels(store, agent, label)
        )
    changes = [
        (block_label, change) for id, block_label in ids for change in await store.block_history(id)
    ]
    changes.sort(key=lambda pair: pair[1].at)
    document: Json = {
        "agent": agent,
        "changes": [
            {
                "label": name,
                **_fields(change, "version", "value"),
                "what": change.action,
                **_fields(change, *_BY),
            }
            for name, change in changes
        ],
    }
    if label:
        history = await store.block_history(ids[-1][0])
        lines = blamed(
            ((change, value_lines(change.value)) for change in history), ComparisonBudget()
        )
        by = ("by", "agent", "turn", "version", "at")
        document["lines"] = [{"text": text, **_fields(change, *by)} for text, change in lines]
    return document


async def known_labels(store: "MemoryStore", agent: str, label: str) -> str:
    """Return a sentence that suggests a similar block, or lists the existing blocks."""
    labels = [row.label for row in await store.blocks(agent)]
    otherwise = (
        f"There are: {', '.join(labels)}." if labels else f"Next: knapper run --agent {agent}"
    )
    return did_you_mean(label, labels, otherwise)


def found_document(results: ResultPage) -> Json:
    """Return a page of results as JSON."""
    return {
        "what": results.item_kind,
        "total": results.total,
        "page": results.page,
        "pages": results.pages,
        "results": [
            {
                "text": item.text,
                "at": item.at,
                "who": item.who,
                "id": item.id or None,
                "tags": list(item.tags),
                "message": None if item.id else place_of(item.seq),
                **({"conversation": item.where} if item.where else {}),
            }
            for item in results.items
        ],
    }


def memory_lines(data: Json) -> list[Line]:
    """Return blocks and sections with their text."""
    lines: list[Line] = []
    for block in data["blocks"]:
        marks = "".join(
            f", {mark.replace('_', '-')}" for mark in ("shared", "read_only") if block[mark]
        )
        size = f"{len(text_of(block['value']))}/{block['limit']} characters, version {block['version']}{marks}"
        lines += [
            line(("name", block["label"]), "  ", ("dim", size)),
            *_text(text_of(block["value"])),
        ]
    for section in data["sections"]:
        size = f"section at {section['position']}, {len(section['text'])} characters"
        lines += [line(("name", section["name"]), "  ", ("dim", size)), *_text(section["text"])]
    return lines


def total_line(data: Json) -> Line:
    """Return the sizes of recall and archival memory as one line."""
    messages, passages = counted(data["messages"], "message"), counted(data["passages"], "passage")
    return line(("dim", f"{messages} of both sides in recall, {passages} in archival"))


def history_lines(data: Json) -> list[Line]:
    """Return the changes, newest first: time, block, version, author, turn, and the change itself."""
    changes = [*reversed(data["changes"])]
    rows = [
        [moment(change["at"]), change["label"], f"v{change['version']}", _hand(change)]
        for change in changes
    ]
    titles = ("when", "block", "version", "by")
    heads = columns(rows, ("dim", "name", "", ""), heads=titles)
    lines = heads[:1]
    for head, change in zip(heads[1:], changes, strict=True):
        lines += [head, *indented([line(one_line(change["what"], 400))])]
    if rows_of_text := data.get("lines"):
        by = [
            [_hand(row), f"v{row['version']}", one_line(row["text"], 400)] for row in rows_of_text
        ]
        lines += [line(""), *columns(by, ("", "dim", ""), heads=("who wrote the line", "", "line"))]
    return lines


def edit_says(change: "BlockChange") -> str:
    """Return a sentence about a change of a block: its author and what it did."""
    description = one_line(change.action.removeprefix("write: "))
    if change.by == "human":
        return f"your edit “{description}”"
    hand = _HANDS.get(change.by, change.by).format(change.agent)
    return f"the edit “{description}” {hand if change.by == 'class' else f'by {hand}'}"


def edit_shown(label: str, plan: "Plan | None") -> Result:
    """Return the result of an edit, or of an editor closed without a change (None)."""
    if plan is None:
        unchanged = {"label": label, "outcome": "unchanged", "text": "Nothing was changed."}
        return Result(unchanged, hint="Nothing was changed.")
    is_done = plan.outcome == "returned"
    first, *more = bare_lines(plan.text)
    lines = [line(("ok", "✓ ") if is_done else ("bad", "✗ "), first), *indented(map(line, more))]
    return Result(
        {"label": label, "outcome": plan.outcome, "text": plan.text},
        lines,
        code=0 if is_done else 1,
    )


async def search_all(
    memory: "AgentMemory",
    query: str,
    where: str,
    page: int,
    count: int,
    tags: Sequence[str] = (),
    *,
    is_owner: bool = False,
) -> tuple[dict[str, ResultPage], list["BlockRow"]]:
    """Search recall memory, archival memory or both (`where`). Return the results by name, and the blocks to search in
    addition, which are given only with the first page of both.

    For the owner of the workspace, a search of recall reaches the conversations that are private to tokens, too, unless
    it is one in such a conversation.
    """
    searches = {}
    if where != "archival":
        searches["recall"] = await memory.recall.search(query, page, count)
        if is_owner and memory.recall.scope == memory.agent:
            private = await memory.recall.search_private(query, page, count)
            searches |= {"private": private} if private.total else {}
    if where != "recall":
        searches["archival"] = await memory.archival.search(query, tuple(tags), page, count)
    is_first = where == "both" and not (page or tags)
    return searches, await memory.store.blocks(memory.agent) if is_first else []


def best_hits(searches: Sequence[ResultPage], blocks: Iterable["BlockRow"] = ()) -> Json:
    """Return the hits of all searches, best first, and the lines of `blocks` with a word of the question, as
    {"blocks", "hits": [{"about", "text"}], "says", "is_far", "worded", "ends"}. `says` names the words that no hit
    contains.

    The first `worded` hits contain a word of the question. `ends` has, of each search whose hits with a word end on
    this first page, how many these are: only the nearest few of the others are returned, as if no hit contains a word
    (`is_far`).
    """
    terms = {term for results in searches for term in results.terms}
    rows = [
        (block.label, text)
        for block in blocks
        for text in bare_lines(text_of(block.value))
        if coverage(text, terms)
    ]
    rows.sort(key=lambda row: -coverage(row[1], terms))
    missing = [set(results.missing) for results in searches if results.items]
    words = [
        word for word in searches[0].missing if missing and all(word in row for row in missing)
    ]
    is_far = bool(words) and not any(
        coverage(item.text, page.terms) for page in searches for item in page.items
    )
    words = [word for word in words if not any(coverage(text, stems([word])) for _, text in rows)]
    none = [f"No hit has: {', '.join(words)}."] * bool(words) + ["The nearest by meaning:"] * is_far
    held = [
        {"about": f"the block {one_line(label, 60)}", "text": excerpt(text, terms, _HIT)}
        for label, text in rows[:_COUNT]
    ]
    ranked = [
        [((coverage(item.text, page.terms), -place), item) for place, item in enumerate(page.items)]
        for page in searches
    ]
    # The next hit is the one with more words of the question or, if equal, with the better rank in its search, so that
    # a poor match from one search does not precede a good match from another.
    merged = [*merge(*ranked, key=lambda pair: pair[0], reverse=True)]
    worded = [item for (covered, _), item in merged if covered]
    near = [item for (covered, _), item in merged if not covered]
    ends = [
        sum(bool(covered) for (covered, _), _ in rows)
        if page.page == 0
        and rows
        and not rows[-1][0][0]
        and any(covered for (covered, _), _ in rows)
        else None
        for page, rows in zip(searches, ranked, strict=True)
    ]
    is_over = is_far or any(ends)
    hits = []
    for item in [*worded, *near[: _NEAREST if is_over else None]]:
        where = f" in “{one_line(item.where, 60)}”" * bool(item.where)
        number = "" if item.id else f"message {place_of(item.seq)}{where}"
        about = " · ".join(filter(None, (moment(item.at), one_line(item.who, 60), number)))
        hits.append({"about": about, "text": excerpt(item.text, terms, _HIT)})
    return {
        "blocks": held,
        "says": " ".join(none),
        "hits": hits,
        "is_far": is_far,
        "worded": len(worded),
        "ends": ends,
    }


def found_lines(
    searches: Sequence[ResultPage], query: str = "TEXT", blocks: Iterable["BlockRow"] = ()
) -> list[Line]:
    """Return search results for the user: the best of all searches, then the counts."""
    found = best_hits(searches, blocks)
    held, hits = (
        [line(("dim", f"- {row['about']}: "), row["text"]) for row in found[part]]
        for part in ("blocks", "hits")
    )
    counts: list[str] = []
    at = found["worded"]
    if 0 < at < len(hits) and any(found["ends"]):
        hits[at:at] = [line(("dim", "Near in meaning:"))]
    for results, words in () if found["is_far"] else zip(searches, found["ends"], strict=True):
        if not results.items:
            none = (
                f"There is no page {results.page}; the last is {results.pages - 1}."
                if results.total
                else ""
            )
            counts.append(none or f"No {results.item_kind} found.")
            continue
        first = results.page * results.count + 1
        counted = (
            f"{results.item_kind} {first} to {first + len(results.items) - 1} of {results.total}"
        )
        if words:  # what follows has no word of the question
            counts.append(f"{results.item_kind} with a word of it: {words}")
            continue
        count = f" --count {results.count}" if results.count != _COUNT else ""
        command = f"knapper memory search {query} --in {_WHERE[results.item_kind]}{count} --page {results.page + 1}"
        counts.append(
            f"{counted}; more: {command}" if results.page + 1 < results.pages else counted
        )
    return [
        *held,
        *([line(("dim", found["says"]))] if found["says"] else []),
        *hits,
        *(line(("dim", text)) for text in counts),
        *[
            line(("dim", f"Searched by words alone: {results.trouble}"))
            for results in searches
            if results.trouble
        ][:1],
    ]


def forget_lines(report: ForgetReport, *, is_done: bool = False) -> list[Line]:
    """Return lines about what is forgotten in which place, and where it remains."""
    if not report.places:
        head = line(("dim", f"The record does not contain {report.subject}."))
    else:
        head = (
            line(("ok", "✓ "), f"forgot {report.subject}")
            if is_done
            else line("To forget: ", report.subject)
        )
    places = columns(
        [(f"  {place}", f"{count:,}") for place, count in report.places.items()], ("", "strong")
    )
    longer = [
        line(("warn", f"Also within: {', '.join(report.longer[:_COUNT])}. --word leaves these."))
    ]
    stays = [
        line(("warn", "Stays in "), one_line(place), ("dim", f": {why}"))
        for place, why in report.stays.items()
    ]
    gone = [
        line("  ", ("dim", f"{one_line(row.place, 60)}: "), one_line(row.text, _HIT))
        for row in report.lines
    ]
    which = "The first lines" if len(gone) == MOST_LINES else "Lines"
    near = [
        line("  ", one_line(row.place, 60), " still says: ", one_line(row.text, _HIT))
        for row in report.nearest
    ]
    return [
        head,
        *places,
        *([line(("dim", f"{which} {'removed' if is_done else 'to remove'}:"))] if gone else []),
        *gone,
        *(longer if report.longer and not is_done else []),
        *stays,
        *(
            [
                line(
                    (
                        "warn",
                        "Stays, though its words are similar (to change it: memory edit LABEL):",
                    )
                )
            ]
            if near
            else []
        ),
        *near,
    ]


def _fields(row: object, *names: str) -> Json:
    """Return attributes as JSON."""
    values = {name: getattr(row, name) for name in names}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def _hand(change: Json) -> str:
    by = str(change["by"])
    hand = _HANDS.get(by, by).format(change["agent"])
    return hand + (f", turn …{change['turn'][-8:]}" if change["turn"] else "")


def _text(text: str) -> list[Line]:
    return indented([line(row) for row in bare_lines(text)] or [line(("dim", "(empty)"))])


_LONGEST = 400  # characters shown of a call and of its result


def turns_of(
    entries: Iterable[Entry], since: float = 0.0, last: int | None = None
) -> list[list[Entry]]:
    """Group the entries by turn, and return the `last` turns that began at `since` or later."""
    turns = [[*group] for _, group in groupby(entries, key=lambda entry: entry.turn)]
    turns = [turn for turn in turns if turn[0].at >= since]
    return turns if last is None else turns[-last:]


def transcript(agent: str, turns: Sequence[Sequence[Entry]], title: str = "") -> str:
    """Return the conversation as Markdown, each turn with its number."""
    parts: list[str] = []
    for turn in turns:
        number = f"{turn[0].seq >> N_BITS}. " if turn[0].seq else ""
        parts += [f"## {number}{shown_time(turn[0].at)}", *_turn(agent, turn)]
    about = ": ".join(filter(None, (f"# Conversation with {agent}", one_line(title, 80))))
    return "\n\n".join([about, *parts]) + "\n"


def transcript_document(
    agent: str, turns: Sequence[Sequence[Entry]]
) -> dict[str, Any]:  # Any: JSON
    """Return the conversation as JSON: each turn with its recorded entries."""
    return {
        "agent": agent,
        "turns": [
            {
                "turn": turn[0].turn,
                "at": turn[0].at,
                "entries": [
                    {"kind": entry.kind, "at": entry.at, **entry.payload} for entry in turn
                ],
            }
            for turn in turns
        ],
    }


def _turn(agent: str, turn: Sequence[Entry]) -> Iterator[str]:
    answers = {answer.call_id: answer for _, answer in read_all(CallAnswered, turn)}
    for entry in turn:
        match read_entry(entry):
            case MessageEntry(text=text):
                yield f"**You:** {text.strip()}"
            case ReplyEntry() as reply:
                yield from _reply(agent, reply, answers)
            case NoticeEntry(text=text):
                yield "\n".join(f"> {row}" for row in bare_lines(text.strip()))
            case StreamedEntry(text=text):
                yield f"**{agent}:** {text.strip()} […]"
                yield "> The reply is cut off here: the program was stopped, or the rest is still coming."
            case SummaryEntry():
                yield "> What was said before this was summarized for the model."
            case ReceiptEntry():
                yield f"> This turn: {fence(receipt_in([entry]).text, _LONGEST)}"
            case _:
                pass


def _reply(agent: str, reply: ReplyEntry, answers: Mapping[str, CallAnswered]) -> Iterator[str]:
    text = reply.text.strip()
    sent = [_message(call) for call in reply.calls if call.name == SEND]
    if text and sent:  # text next to a sent message is a thought
        yield f"*{' '.join(bare_lines(text))}*"
    elif text:
        yield f"**{agent}:** {text}"
    others = [_call(call, answers.get(call.id)) for call in reply.calls if call.name != SEND]
    if others:
        yield "\n".join(others)
    yield from (f"**{agent}:** {message}" for message in sent)


def _message(call: Call) -> str:
    try:
        arguments = read_json(call.arguments or "{}", LOOSE)
    except ValueError:
        return call.arguments
    return str(arguments.get("message", "")) if isinstance(arguments, dict) else str(arguments)


def _call(call: Call, answered: CallAnswered | None) -> str:
    shown = fence(compact_call(call.name, call.arguments), _LONGEST)
    if answered is None:
        return f"- {shown}: no answer"
    text = fence(answered.text.strip(), _LONGEST)
    is_plain = answered.outcome in ("", "returned")
    return f"- {shown} → {text}" if is_plain else f"- {shown} → {text} ({answered.outcome})"
