"""Blocks and sections in the store, which are always in the context of an agent."""

from typing import Any, TypeAlias

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass

from .subject import TEXTS, BlockConflict, Removal, Write, dump, parse_row
from .tables import SqlSession, Tables, perform, query

Value: TypeAlias = str | tuple[str, ...]
"""The value of a block: a text, or lines that are edited individually."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """The current state of a block. `limit` is in characters; `version` starts at 1 and rises by 1 with each edit.

    `position` orders the blocks of one agent; a shared block may have another position in another agent. `writable` is
    not stored: it tells whether the agent of this row may change the block.
    """

    id: str
    label: str
    value: Value
    limit: int
    description: str = ""
    read_only: bool = False
    shared: bool = False
    position: int = 0
    version: int = 1
    edited: float = 0.0
    writable: bool = True


@dataclass(frozen=True, slots=True)
class BlockAccess:
    """The agents that may read or change a shared block: names, or `*`. Its `owner` may do both."""

    owner: str
    readers: tuple[str, ...] = ("*",)
    writers: tuple[str, ...] = ("*",)

    def may_write(self, agent: str) -> bool:
        """Return whether an agent may change the block."""
        return agent == self.owner or not {"*", agent}.isdisjoint(self.writers)

    def may_read(self, agent: str) -> bool:
        """Return whether an agent may read the block; the right to change it includes the right to read it."""
        return self.may_write(agent) or not {"*", agent}.isdisjoint(self.readers)


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A line of a block's history: the new value, a description of the action, its author and turn."""

    block: str
    version: int
    value: Value
    action: str
    by: str
    agent: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True)
class SaveBlock(Write):
    """A compare-and-set write: the block must be at `block.version - 1` (0: missing). It also adds a line of history.

    A new block belongs to `agent`. Raises BlockConflict, a ManifestConflict, if someone else was first.
    """

    block: BlockRow
    agent: str
    action: str
    by: str = "agent"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class AttachBlock(Write):
    """A write that attaches a shared block to another agent, at this position, from the agent's next step."""

    agent: str
    block: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class LimitBlock(Write):
    """A write that sets who may read and who may change a shared block; an agent without read access loses it."""

    block: str
    readers: tuple[str, ...]
    writers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DetachBlock(Removal):
    """A write that detaches a block from an agent; a block without agents stays stored, with its history."""

    agent: str
    block: str


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A part of the system message: parts are ordered by `position`, then by name. `limit` is in characters."""

    name: str
    position: int
    text: str
    limit: int = 4000
    edited: float = 0.0


@dataclass(frozen=True, slots=True)
class SaveSection(Write):
    """A write that sets a section of an agent's system message; a later one of the same name replaces it."""

    agent: str
    section: SectionRow


@dataclass(frozen=True, slots=True)
class DropSection(Removal):
    """A write that removes a section."""

    agent: str
    name: str


_MAY = (
    "exists (select 1 from block_access a where a.block = b.id and (a.owner = h.agent or exists"
    " (select 1 from json_each({lists}) n where n.value in ('*', h.agent))))"
)
_MAY_WRITE = _MAY.format(lists="a.writers")
_MAY_READ = f"({_MAY_WRITE} or {_MAY.format(lists='a.readers')})"
_BLOCKS = (
    "select b.id, b.label, b.value, b.chars, b.description, b.read_only, b.shared, h.position, b.version, b.edited,"  # noqa: S608  (our own text)
    f" {_MAY_WRITE} from holding h join block b on b.id = h.block where h.agent = ? and h.attached and {_MAY_READ}"
    " order by h.position, b.seq"
)


_ALONE = (
    "select 1 where exists (select 1 from block where shared)"
    " or exists (select 1 from conversation where agent = ?)"
)


class BlockStore(Tables):
    """The blocks and sections of agents."""

    @query
    def blocks(self, session: SqlSession, agent: str) -> list[BlockRow]:
        """Return the blocks of an agent, in order."""
        return [block_of(row) for row in session.all(_BLOCKS, agent)]

    @query
    def block_versions(self, session: SqlSession, agent: str) -> dict[str, int]:
        """Return the version of each block that others may change meanwhile, by id: a cheap query for every step."""
        return shared_versions(session, agent)

    @query
    def shared_blocks(self, session: SqlSession) -> list[BlockRow]:
        """Return every block that agents may share, by label."""
        rows = session.all(
            "select id, label, value, chars, description, read_only, shared, 0, version, edited from block where shared"
            " order by label, seq"
        )
        return [block_of(row) for row in rows]

    @query
    def block_access(self, session: SqlSession, block: str) -> BlockAccess:
        """Return who may read and change a block."""
        return access_of(session, block)

    @query
    def block_holders(self, session: SqlSession, block: str) -> list[str]:
        """Return the agents that have a block now."""
        return [
            row[0]
            for row in session.all("select agent from holding where block = ? and attached", block)
        ]

    @query
    def block_history(self, session: SqlSession, block: str) -> list[BlockChange]:
        """Return every change of a block, oldest first."""
        return history_of(session, block)

    @query
    def block_ids(self, session: SqlSession, agent: str) -> dict[str, str]:
        """Return the labels of all blocks that an agent ever had, by id; two may have the same label."""
        rows = session.all(
            "select b.id, b.label from holding h join block b on b.id = h.block where h.agent = ? order by b.seq",
            agent,
        )
        return dict(rows)

    @query
    def sections(self, session: SqlSession, agent: str) -> list[SectionRow]:
        """Return the agent's own sections, in order."""
        return sections_of(session, agent)


def history_of(session: SqlSession, block: str) -> list[BlockChange]:
    """Return the lines of a block's history."""
    rows = session.all(
        "select block, version, value, what, by, agent, turn, at from block_change where block = ? order by version",
        block,
    )
    return [
        BlockChange(id, version, block_value(value), *columns)
        for id, version, value, *columns in rows
    ]


def sections_of(session: SqlSession, agent: str) -> list[SectionRow]:
    """Return the sections of an agent in order."""
    sql = "select name, position, text, chars, edited from section where agent = ? order by position, name"
    return [SectionRow(*row) for row in session.all(sql, agent)]


def shared_versions(session: SqlSession, agent: str) -> dict[str, int]:
    """Return the version of each block that others may change meanwhile, by id.

    These are an agent's shared blocks, or all if it has several conversations, which run beside each other.
    """
    # Every step runs this: most agents have neither.
    if session.one(_ALONE, agent) is None:
        return {}
    rows = session.all(
        "select b.id, b.version from holding h join block b on b.id = h.block"  # noqa: S608  (our own text)
        f" where h.agent = ?1 and h.attached and {_MAY_READ}"
        " and (b.shared or exists (select 1 from conversation where agent = ?1))",
        agent,
    )
    return dict(rows)


def block_of(row: tuple[Any, ...]) -> BlockRow:  # Any: columns as SQLite types them
    """Return the block in a row."""
    id, label, value, limit, description, read_only, shared, *columns = row
    if len(columns) > 3:  # the position, the version, the time, and whether it may be changed
        columns[3] = bool(columns[3])
    return BlockRow(
        id, label, block_value(value), limit, description, bool(read_only), bool(shared), *columns
    )


def access_of(session: SqlSession, block: str) -> BlockAccess:
    """Return who may read and change a block."""
    row = session.one("select owner, readers, writers from block_access where block = ?", block)
    owner, *names = row or ("", "[]", "[]")
    readers, writers = (tuple(map(str, parse_row(text, TEXTS))) for text in names)
    return BlockAccess(owner, readers, writers)


def give_block(session: SqlSession, block: str, access: BlockAccess) -> None:
    """Store the owner of a new block, and who may read and change it."""
    session.all(
        "insert into block_access (block, owner, readers, writers) values (?, ?, ?, ?)",
        *(block, access.owner, dump([*access.readers]), dump([*access.writers])),
    )


def block_value(text: str) -> Value:
    """Return the value of a block from its column."""
    value = parse_row(text, TEXTS)
    return value if isinstance(value, str) else tuple(value)


@perform.register
def _save_block(save: SaveBlock, session: SqlSession) -> None:
    block, now = save.block, session.clock.now()
    row = session.one("select version from block where id = ?", block.id)
    current = row[0] if row else 0
    if current != block.version - 1:
        raise BlockConflict(block.label, block.version - 1, current)
    if not current:
        _refuse_second(session, save.agent, block.id, block.label)
    elif save.by in ("agent", "function") and not access_of(session, block.id).may_write(
        save.agent
    ):
        raise StorageError(f"`{save.agent}` may not change the block `{block.label}`.")
    value = dump(block.value)
    session.all(
        "insert into block (id, label, value, chars, description, read_only, shared, version, edited)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set label = excluded.label,"
        " value = excluded.value, chars = excluded.chars, description = excluded.description,"
        " read_only = excluded.read_only, shared = excluded.shared,"
        " version = excluded.version, edited = excluded.edited",
        *(block.id, block.label, value, block.limit, block.description),
        *(block.read_only, block.shared, block.version, now),
    )
    session.all(
        "insert into block_change (block, version, value, what, by, agent, turn, at) values (?, ?, ?, ?, ?, ?, ?, ?)",
        *(block.id, block.version, value, save.action, save.by, save.agent, save.turn, now),
    )
    place = (block.position, save.agent, block.id)
    if current:
        session.all("update holding set position = ? where agent = ? and block = ?", *place)
    else:
        give_block(session, block.id, BlockAccess(save.agent))
        session.all(
            "insert into holding (position, agent, block, attached) values (?, ?, ?, true)", *place
        )


def _refuse_second(session: SqlSession, agent: str, id: str, label: str) -> None:
    """Raise an error for a second block with the same label: they would hide each other."""
    row = session.one(
        "select b.version from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.label = ? and b.id <> ?",
        *(agent, label, id),
    )
    if row:
        raise BlockConflict(label, 0, row[0])


@perform.register
def _attach(attach: AttachBlock, session: SqlSession) -> None:
    block = session.one("select label, shared from block where id = ?", attach.block)
    if block is None:
        raise StorageError(f"There is no block {attach.block}.", fix="See which blocks are shared.")
    if not block[1] and session.one(
        "select 1 from holding where block = ? and agent <> ?", attach.block, attach.agent
    ):
        raise StorageError(f"The block `{block[0]}` is not shared.", fix="Share it first.")
    access = access_of(session, attach.block)
    if not access.may_read(attach.agent):
        who = (
            f"knapper memory share {block[0]} --readers {','.join((*access.readers, attach.agent))}"
        )
        raise StorageError(
            f"`{attach.agent}` may not read the block `{block[0]}`.",
            fix=f"Its owner may allow it: {who}",
        )
    _refuse_second(session, attach.agent, attach.block, block[0])
    session.all(
        "insert into holding (agent, block, position, attached) values (?, ?, ?, true)"
        " on conflict (agent, block) do update set position = excluded.position, attached = true",
        *(attach.agent, attach.block, attach.position),
    )


@perform.register
def _limit(limit: LimitBlock, session: SqlSession) -> None:
    session.all(
        "update block_access set readers = ?, writers = ? where block = ?",
        *(dump([*limit.readers]), dump([*limit.writers]), limit.block),
    )


@perform.register
def _detach(detach: DetachBlock, session: SqlSession) -> None:
    session.all(
        "update holding set attached = false where agent = ? and block = ?",
        detach.agent,
        detach.block,
    )


@perform.register
def _save_section(save: SaveSection, session: SqlSession) -> None:
    section = save.section
    session.all(
        "insert into section (agent, name, position, text, chars, edited) values (?, ?, ?, ?, ?, ?)"
        " on conflict (agent, name) do update set position = excluded.position, text = excluded.text,"
        " chars = excluded.chars, edited = excluded.edited",
        *(
            save.agent,
            section.name,
            section.position,
            section.text,
            section.limit,
            session.clock.now(),
        ),
    )


@perform.register
def _drop_section(drop: DropSection, session: SqlSession) -> None:
    session.all("delete from section where agent = ? and name = ?", drop.agent, drop.name)
