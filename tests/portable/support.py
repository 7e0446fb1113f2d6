"""Shared by the tests of moving agents: generated agents, and stores to move them between."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import strategies as st

from agent_core.base.clock import Clock
from agent_core.base.programs import ReaderProcess
from agent_core.storage import (
    BlockChange,
    BlockRow,
    DocumentRow,
    Entry,
    PassageRow,
    SectionRow,
    Store,
    WholeAgent,
    WholeBlock,
    WholeEvent,
    WholeTurn,
    content_hash,
    open_store,
)
from agent_core.workspace.agent_files import AgentFiles
from agent_core.workspace.portable import KnownNames, Moves, reader_of_files

USED = (
    "text",
    "packed",
    "call_id",
    "name",
    "reason",
    "last",
    "upto",
    "preset",
    "memory_class",
    "paused_until",
)
T = TypeVar("T")
KNOWN = KnownNames({"direct", "memgpt"}, {"chat", "mine:Notes"})
MOST = (1 << 63) - 1  # of a number in the store
LONG = "a page and more"
SHARED: list[ReaderProcess] = []  # the shared reader while these tests run


@asynccontextmanager
async def moving(
    folder: Path | None = None, reader: ReaderProcess | None = None
) -> AsyncIterator[tuple[Store, Moves]]:
    """Yield a store in a folder and what moves agents; by default it uses the shared reader."""
    with TemporaryDirectory() as own:
        root = folder or Path(own)
        store, files = open_store(root / "state.db", clock=Clock()), AgentFiles(root, "main")
        async with store, reader_of_files() as fresh:
            yield store, Moves(store, reader or (SHARED or [fresh])[0], KNOWN, files)


texts = st.text(st.characters(codec="utf-8"), max_size=12)
times = st.floats(0, 4e9)
labels = st.text(st.sampled_from("abäß7²_-./"), min_size=1, max_size=8)
values = texts | st.lists(texts, max_size=3).map(tuple)
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    texts.filter(lambda key: key not in USED), json, max_size=3
)


@st.composite
def blocks(draw: st.DrawFn, number: int, label: str) -> WholeBlock:
    id = f"block-{number}"
    history = tuple(
        BlockChange(
            id,
            version,
            draw(values),
            draw(texts),
            draw(st.sampled_from(("human", "agent"))),
            "main",
            turn,
            at,
        )
        for version, turn, at in zip(
            (1, 2, 5), ("turn-0", "", "gone"), draw(st.tuples(times, times, times)), strict=True
        )
    )
    flags = draw(st.tuples(st.booleans(), st.booleans()))
    last = history[-1]
    limit = draw(st.sampled_from((5000, MOST)))
    row = BlockRow(
        id,
        label,
        last.value,
        limit,
        draw(texts),
        *flags,
        draw(st.integers(-9, 9)),
        last.version,
        last.at,
    )
    return WholeBlock(row, history, draw(st.booleans()))


@st.composite
def events(draw: st.DrawFn, key: str | None = None) -> WholeEvent:
    due = draw(st.none() | times)
    usual: list[dict[str, Any]] = [{}, {"text": "hello"}, {"reason": "time", "last": 3.5}]
    payload = draw(objects) | draw(st.sampled_from(usual))
    return WholeEvent(
        draw(st.sampled_from(("message", "heartbeat"))), payload, draw(times), key, due
    )


@st.composite
def turns(draw: st.DrawFn, number: int, before: int) -> WholeTurn:
    calls = [
        {"id": f"c{n}", "name": "look", "arguments": draw(texts)}
        for n in range(draw(st.integers(0, 2)))
    ]
    said: list[tuple[str, dict[str, Any]]] = [
        ("user", {"text": draw(texts), "packed": '{"type": "user_message"}'} | draw(objects)),
        ("request", draw(objects) | {"instructions": content_hash(LONG)}),
        ("assistant", {"text": draw(texts), "thought": "", "calls": calls}),
        *(
            ("result", {"call_id": call["id"], "name": "look", "text": draw(texts)} | draw(objects))
            for call in calls
        ),
    ]
    if draw(st.booleans()):
        said.append(
            (
                "summary",
                {"text": "so far", "covers": 2, "upto": draw(st.integers(0, before + len(said)))},
            )
        )
    entries = tuple(
        Entry(kind, payload, n, at=draw(times)) for n, (kind, payload) in enumerate(said)
    )
    took = (draw(events(f"key-{number}")), *draw(st.lists(events(), max_size=1)))
    return WholeTurn(
        f"turn-{number}", "done", draw(times), draw(times), took, entries, draw(st.booleans())
    )


@st.composite
def agents(draw: st.DrawFn) -> WholeAgent:
    """Draw an agent with some of everything."""
    said: list[WholeTurn] = []
    for number in range(draw(st.integers(0, 3))):
        said.append(draw(turns(number, sum(len(turn.entries) for turn in said))))
    own = draw(st.lists(labels, max_size=3, unique=True))
    held = [draw(blocks(number, label)) for number, label in enumerate(own)]
    return WholeAgent(
        "main",
        {"preset": "memgpt", "paused_until": draw(st.sampled_from((0.0, 9.0)))},
        tuple(said),
        (),
        tuple(
            sorted(
                held,
                key=lambda one: (
                    not one.attached,
                    one.row.position,
                    one.row.label.encode(),
                    one.row.id,
                ),
            )
        ),
        tuple(draw(st.lists(sections(), max_size=2, unique_by=lambda one: one.name).map(in_order))),
        tuple(draw(st.lists(passages(), max_size=2, unique_by=lambda one: one.id))),
        tuple(draw(st.lists(documents(), max_size=2, unique_by=lambda one: one.hash))),
        tuple(sorted(draw(st.sets(st.sampled_from(("count_vowels", "read_page")))))),
        {content_hash(LONG): LONG} if said else {},
    )


def in_order(found: list[SectionRow]) -> list[SectionRow]:
    return sorted(found, key=lambda one: (one.position, one.name.encode()))


def sections() -> st.SearchStrategy[SectionRow]:
    names = st.text(st.sampled_from("abä.-_7²"), min_size=1, max_size=6)
    return st.builds(
        SectionRow, names, st.integers(-9, 99) | st.just(MOST), texts, st.integers(0, 9000), times
    )


def passages() -> st.SearchStrategy[PassageRow]:
    tags = st.lists(texts, max_size=2, unique=True).map(tuple)
    ids, documents = st.sampled_from(("p-1", "p-2", "p-3")), st.sampled_from(("", "h"))
    numbers = st.integers(0, 9)
    return st.builds(
        PassageRow,
        ids,
        st.just("main"),
        texts,
        texts,
        times,
        tags,
        texts,
        texts,
        documents,
        numbers,
    )


def documents() -> st.SearchStrategy[DocumentRow]:
    hashes, counts = st.sampled_from(("h", "other")), st.integers(0, 99)
    return st.builds(
        DocumentRow, hashes, st.just("main"), texts, texts, times, counts, counts, st.booleans()
    )
