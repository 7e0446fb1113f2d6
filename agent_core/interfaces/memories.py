"""What an agent remembers, as documents and as lines: blocks, sections, their history, and what a search found."""

from collections.abc import Collection
from typing import Any

from agent_core.errors import UsageError
from agent_core.memory.agent_memory import counts_of
from agent_core.memory.found import Found, Item, excerpt
from agent_core.storage import BlockChange, BlockRow, MemoryStore, SectionRow, Store
from agent_core.untrusted import one_line
from sandbox.lines import bare_lines

from .agents import day, text_of
from .columns import columns
from .spans import Line, indented, line

Json = dict[str, Any]  # Any: JSON
_HIT = 140
_COUNT = 10
_TOLD = ("None of these holds", "Searched by words alone")
_WHERE = {"messages": "recall", "passages": "archival"}
_HANDS = {
    "human": "you",
    "agent": "the agent {}",
    "function": "a function of the agent {}",
    "class": "from the memory class",
}


async def memory_document(store: Store, agent: str, label: str = "") -> Json:
    """All blocks and sections of an agent, or those of one label or name.

    Raises:
        UsageError: there is none of that name.
    """
    kept = store.memory
    blocks = [row for row in await kept.blocks(agent) if label in ("", row.label)]
    sections = [row for row in await kept.sections(agent) if label in ("", row.name)]
    if label and not (blocks or sections):
        raise UsageError(f"`{agent}` has no block `{label}`.", mend=await known_labels(kept, agent))
    counts = await counts_of(store, agent)
    return {
        "agent": agent,
        "blocks": [_block(row) for row in blocks],
        "sections": [_section(row) for row in sections],
        "messages": counts.messages,
        "passages": counts.passages,
        "edited": counts.edited or None,
    }


async def history_document(kept: MemoryStore, agent: str, label: str = "") -> Json:
    """Every change of a block, also of one that the agent has no more, or of all its blocks; the oldest first.

    Raises:
        UsageError: the agent never had a block of that label.
    """
    ids = [(id, each) for id, each in (await kept.block_ids(agent)).items() if label in ("", each)]
    if not ids and label:
        raise UsageError(f"`{agent}` never had a block `{label}`.", mend=await known_labels(kept, agent))
    changes = [(each, change) for id, each in ids for change in await kept.block_history(id)]
    changes.sort(key=lambda one: one[1].at)
    return {"agent": agent, "changes": [_change(each, change) for each, change in changes]}


async def known_labels(kept: MemoryStore, agent: str) -> str:
    """A sentence that names the blocks there are."""
    labels = [row.label for row in await kept.blocks(agent)]
    return f"There are: {', '.join(labels)}." if labels else f"Next: toolwright run --agent {agent}"


def found_document(found: Found) -> Json:
    """A page of results."""
    return {
        "what": found.what,
        "total": found.total,
        "page": found.page,
        "pages": found.pages,
        "results": [
            {"text": item.text, "at": item.at, "who": item.who, "id": item.id or None, "tags": list(item.tags)}
            for item in found.items
        ],
    }


def memory_lines(found: Json) -> list[Line]:
    """Blocks and sections with their text."""
    lines: list[Line] = []
    for block in found["blocks"]:
        marks = "".join(f", {mark.replace('_', '-')}" for mark in ("shared", "read_only") if block[mark])
        size = f"{len(text_of(block['value']))}/{block['limit']} characters, version {block['version']}{marks}"
        lines += [line(("name", block["label"]), "  ", ("dim", size)), *_text(text_of(block["value"]))]
    for section in found["sections"]:
        size = f"section at {section['position']}, {len(section['text'])} characters"
        lines += [line(("name", section["name"]), "  ", ("dim", size)), *_text(section["text"])]
    return lines


def total_line(found: Json) -> Line:
    """How much there is besides."""
    return line(("dim", f"{found['messages']:,} messages in recall, {found['passages']:,} passages in archival"))


def history_lines(found: Json) -> list[Line]:
    """The changes, the newest first: when, which block, version, by whom, in which turn, and below it what was done."""
    changes = [*reversed(found["changes"])]
    if not changes:
        return []
    rows = [[day(one["at"]), one["label"], f"v{one['version']}", _hand(one)] for one in changes]
    titles, *heads = columns([("when", "block", "version", "by"), *rows], ("dim", "name", "", ""))
    whats = [indented([line(one_line(one["what"], 400))]) for one in changes]
    below = [each for head, what in zip(heads, whats, strict=True) for each in (head, *what)]
    return [tuple(("dim", text) for _, text in titles), *below]


def edit_says(change: BlockChange) -> str:
    """A change of a block in a sentence: whose it was, and what."""
    what = one_line(change.what.removeprefix("write: "))
    if change.by == "human":
        return f"your edit “{what}”"
    hand = _HANDS.get(change.by, change.by).format(change.agent)
    return f"the edit “{what}” {hand if change.by == 'class' else f'by {hand}'}"


def found_lines(found: Found, query: str = "TEXT", when: str = "") -> list[Line]:
    """What a search found, as a human reads it: what is lacking, each hit around the words, and where more is."""
    if not found.items:
        notes = [note for note in found.notes if note.startswith(_TOLD)]
        none = f"There is no page {found.page}; the last is {found.pages - 1}." if found.total else ""
        return [line(("dim", none or f"No {found.what} found.")), *(line(("dim", note)) for note in notes)]
    first = found.page * found.count + 1
    heading = f"{found.what} {first} to {first + len(found.items) - 1} of {found.total}"
    count = f" --count {found.count}" if found.count != _COUNT else ""
    more = f"more{when}: toolwright memory search {query} --in {_WHERE[found.what]}{count} --page {found.page + 1}"
    return [
        *(line(("warn", note)) for note in found.notes if note.startswith(_TOLD)),
        line(("dim", heading)),
        *(_hit(item, found.terms) for item in found.items),
        *([line(("dim", more))] if found.page + 1 < found.pages else []),
    ]


def _hit(item: Item, terms: Collection[str]) -> Line:
    about = " · ".join(filter(None, (day(item.at), one_line(item.who, 60))))
    return line(("dim", f"- {about}: "), excerpt(item.text, terms, _HIT))


def _block(row: BlockRow) -> Json:
    return {
        "label": row.label,
        "value": row.value if isinstance(row.value, str) else list(row.value),
        "limit": row.limit,
        "description": row.description,
        "read_only": row.read_only,
        "shared": row.shared,
        "position": row.position,
        "version": row.version,
        "edited": row.edited,
    }


def _section(row: SectionRow) -> Json:
    return {"name": row.name, "position": row.position, "text": row.text, "limit": row.limit, "edited": row.edited}


def _change(label: str, change: BlockChange) -> Json:
    return {
        "label": label,
        "version": change.version,
        "value": change.value if isinstance(change.value, str) else list(change.value),
        "what": change.what,
        "by": change.by,
        "agent": change.agent,
        "turn": change.turn,
        "at": change.at,
    }


def _hand(change: Json) -> str:
    by = str(change["by"])
    hand = _HANDS.get(by, by).format(change["agent"])
    return hand + (f", turn …{change['turn'][-8:]}" if change["turn"] else "")


def _text(text: str) -> list[Line]:
    return indented([line(each) for each in bare_lines(text)] or [line(("dim", "(empty)"))])
