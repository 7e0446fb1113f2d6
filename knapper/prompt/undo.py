"""What a turn changed in functions, helpers, memory and states, and how to take it back.

Nothing is remembered for it: the receipts of the conversation say what a turn touched, and the kept versions say
whether it is still there. What somebody changed since stays.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Final, TypeAlias

from agent_core.base.clock import shown_time
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.receipt import TOUCHED, Fact, Receipt
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line
from agent_core.context.folds import receipt_in
from agent_core.functions.service.history import Version
from agent_core.operations.attachments import headline
from agent_core.operations.manual_edits import set_up_block
from agent_core.operations.verb import CHANGED
from agent_core.storage import RESTORED, BlockChange, Entry, StateRow
from agent_core.storage.journal import MessageEntry, ReceiptEntry, read_all
from agent_core.views.agent_view import text_of
from agent_core.views.agent_view import verdict_lines as helper_lines
from agent_core.views.memory_view import edit_says
from agent_core.views.styled_lines import Line, line
from agent_core.views.verdicts import folded_lines

from .conversation import Conversation, RunCommand

_RECEIPT_LIMIT: Final = 50
_BYTE_LIMIT: Final = 1 << 20
_STEP_LIMIT: Final = 200
_YOU: Final = "you"
_FUNCTION: Final = ""
_HELPER: Final = "the helper "
_STAYING: Final[tuple[Fact, ...]] = ("wrote", "removed", "told")
_NOTHING: Final = "No turn of this conversation changed anything that is still there."
_NO_CHANGE: Final = "Nothing was made or changed in this session."
_OLDER: Final = "For older changes: /rollback NAME, /memory undo LABEL."
_HINT: Final = (
    "/undo takes back what the last turn did; /changes NAME the last change of one of these."
)

Put: TypeAlias = "Callable[[Step], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class Step:
    """A state of a thing: its content (None: it was not there), by whom, in which turn, when, and the row of it."""

    content: object
    by: str = ""
    turn: str = ""
    at: float = 0.0
    row: Version | BlockChange | StateRow | None = None


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that a turn can change: what it is called, its steps that still count, and how to go back to one."""

    says: str
    steps: Sequence[Step]
    put: Put

    step: str = ""
    """The reason of its last change if that changed several files, which are taken back as one."""

    def taken_back(self, steps: int) -> "UndoableAction | None":
        """Return the action that takes its last steps back, or None if it is not known what was before them."""
        if not 0 < steps < len(self.steps):
            return None
        return UndoableAction(self, self.steps[-steps - 1], self.steps[-steps])


@dataclass(frozen=True, slots=True)
class UndoableAction:
    """Going back to an earlier step of a thing. `first` is the oldest step that it takes back."""

    thing: Thing
    before: Step
    first: Step

    @property
    def says(self) -> str:
        """What it will do, for the question."""
        what, last = self.thing.says, self.thing.steps[-1]
        if self.thing.step:
            return f"take “{self.thing.step}” back in all files"
        match self.before.row:
            case BlockChange() if isinstance(self.first.row, BlockChange):
                return f"restore {what} as it was before {edit_says(self.first.row)}"
            case StateRow():
                return f"take {what} back to before {shown_time(self.first.at, '%H:%M')}"
            case Version() as version if self.before.content and last.content:
                by = f"(by {self.before.by}, {version.when})"
                return f"change {what} back to version {version.number} {by}"
        if self.before.content:
            return f"bring {what} back, which {last.by} deleted ({shown_time(last.at)})"
        changed = f" and changed by {last.by}" if last.by != self.first.by else ""
        return f"delete {what}, made by {self.first.by}{changed}"

    async def undo(self) -> None:
        """Do it."""
        await self.thing.put(self.before)


@dataclass(frozen=True, slots=True)
class Undoing:
    """What an undo will take back, of which turn, and lines about what stays."""

    turn: str = ""
    actions: Sequence[UndoableAction] = ()
    stays: Sequence[Line] = field(default_factory=list)

    @property
    def says(self) -> str:
        """What it will do, for the question."""
        return f"Undo{self.turn}: {'; '.join(action.says for action in self.actions)}?"


def counting(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that still count: what a person puts back as it was takes back what came after.

    A deletion is a step of its own, which can be taken back.
    """
    kept: list[Step] = []
    for step in steps[-_STEP_LIMIT:]:
        same = [at for at, earlier in enumerate(kept) if earlier.content == step.content]
        is_back = step.by == _YOU and step.content is not None
        if same and (is_back or same[-1] == len(kept) - 1):
            del kept[same[-1] + 1 :]
        else:
            kept.append(step)
    return kept


async def _undo(conversation: Conversation, words: str) -> None:
    await _carry_out(conversation, partial(_last_turn, conversation), _NOTHING)


async def _changes(conversation: Conversation, words: str) -> None:
    """List what differs from the start of the session, and who changed it last, or take the last change of one back."""
    if words:
        nothing = f"{one_line(words, 60)} was not changed in this session."
        await _carry_out(conversation, partial(_last_change, conversation, words), nothing)
        return
    rows = [
        line(
            ("dim", f"{shown_time(last.at, '%H:%M')}  "),
            f"{last.by} {_deed(thing)} ",
            ("name", thing.says),
        )
        for thing in await _changed(conversation)
        if (last := thing.steps[-1])
    ]
    rows += await _elsewhere(conversation)
    conversation.voice.lines([*rows, line(("dim", _HINT if rows else _NO_CHANGE))])


def _deed(thing: Thing) -> str:
    if thing.steps[-1].content is None:
        return "deleted"
    return "made" if thing.steps[-2].content is None else "changed"


async def _carry_out(
    conversation: Conversation, choose: Callable[[], Awaitable[Undoing]], nothing: str
) -> None:
    """Undo what was chosen after asking, and asking again if it is something else when the answer comes.

    Report an action that cannot be undone, and undo the others.
    """
    undoing = await choose()
    conversation.voice.lines(undoing.stays)
    if not undoing.actions:
        raise UsageError(nothing, fix=_OLDER)
    shown = Undoing()
    while _states(undoing) != _states(shown):
        if shown.actions:
            conversation.voice.lines([CHANGED, *undoing.stays])
        if not undoing.actions:
            return
        if not await conversation.voice.confirm(undoing.says):
            conversation.voice.lines([line(("dim", "Nothing was changed."))])
            return
        shown = undoing
        undoing = await choose()
    for action in undoing.actions:
        try:
            await action.undo()
        except KnapperError as error:
            conversation.explain(error)


def _states(undoing: Undoing) -> list[tuple[float, str]]:
    """Return what identifies actions: what each does, and when the thing was last changed."""
    return [(action.thing.steps[-1].at, action.says) for action in undoing.actions]


async def _last_turn(conversation: Conversation) -> Undoing:
    """Return what the last turn of the conversation did that is still there, and what was changed since."""
    store = conversation.workspace.store
    page = await store.history_page(
        conversation.agent.line,
        kinds=(ReceiptEntry.kind,),
        count=_RECEIPT_LIMIT,
        most_bytes=_BYTE_LIMIT,
        is_newest=True,
    )
    stays: list[Line] = []
    states = await _states_of_functions(conversation)
    for entry in reversed(page.entries):
        if entry.is_imported:  # anyone may have written it
            continue
        receipt = receipt_in([entry])
        things = await _touched(conversation, receipt, states)
        stays += [row for thing in things for row in _changed_since(thing, entry.turn)]
        actions = [
            action for thing in things if (action := thing.taken_back(_steps_of(thing, entry.turn)))
        ]
        if actions:
            stays += _staying(receipt)
            return Undoing(_turn(await store.load(entry.turn)), actions, stays)
    return Undoing(stays=stays)


def _steps_of(thing: Thing, turn: str) -> int:
    """Return how many of the last steps of a thing are of this turn."""
    return len([*takewhile(lambda step: step.turn == turn, reversed(thing.steps))])


def _changed_since(thing: Thing, turn: str) -> list[Line]:
    """Return a line about what the turn changed, and who changed it since; none if nobody did."""
    own = [at for at, step in enumerate(thing.steps) if step.turn == turn]
    last = thing.steps[-1]
    is_back = own and last.content == thing.steps[max(own[0] - 1, 0)].content
    if not own or last.turn == turn or is_back:
        return []
    did_last = thing.steps[own[-1]]
    did = f"{did_last.by} changed it at {shown_time(did_last.at, '%H:%M')}"
    since = f"{last.by} at {shown_time(last.at, '%H:%M')}"
    what = f"{thing.says} stays: {did}, and {since}."
    how = f" /changes {thing.says.rpartition(' ')[2]} takes back the last change."
    return [line(("warn", "! "), what, ("dim", how))]


def _staying(receipt: Receipt) -> list[Line]:
    """Return a line about what a turn did that nothing takes back."""
    phrases = [receipt.phrase(fact, 3) for fact in receipt.facts() if fact in _STAYING]
    return [line(("dim", f"It also {'; '.join(phrases)}, which stays."))] if phrases else []


def _turn(entries: Sequence[Entry]) -> str:
    """Return the words for a turn: what the user said in it."""
    said = next((message.text for _, message in read_all(MessageEntry, entries)), "")
    return f" what “{one_line(headline(said), 40)}” did" if said else ""


async def _last_change(conversation: Conversation, name: str) -> Undoing:
    """Return the last change in this session of what has this name."""
    named = [
        thing
        for thing in await _changed(conversation)
        if name in (thing.says, thing.says.rpartition(" ")[2])
    ]
    return Undoing(actions=[action for thing in named[-1:] if (action := thing.taken_back(1))])


async def _changed(conversation: Conversation) -> list[Thing]:
    """Return the things that were changed in this session, the one changed last at the end."""
    things = list((await _states_of_functions(conversation)).values())
    for name in conversation.touched:
        things.append(await _function(conversation, _FUNCTION, name))
        things.append(await _function(conversation, _HELPER, name))
    things += [
        await _block(conversation, row.label) for row in conversation.agent.memory.blocks.rows
    ]
    changed = [
        thing
        for thing in things
        if len(thing.steps) > 1 and thing.steps[-1].at >= conversation.began
    ]
    return sorted(changed, key=lambda thing: thing.steps[-1].at)


async def _touched(
    conversation: Conversation, receipt: Receipt, states: Mapping[str, Thing]
) -> list[Thing]:
    """Return the things that a turn touched, as its receipt says, as far as they are there."""
    things = list[Thing]()
    for name in receipt.names(*TOUCHED[:3]):
        things.append(await _function(conversation, _FUNCTION, name))
    for name in receipt.names(*TOUCHED[3:]):
        things.append(await _function(conversation, _HELPER, name))
    remembered = {*receipt.names("remembered")}
    for row in conversation.agent.memory.blocks.rows:
        if row.label in remembered:
            things.append(await _block(conversation, row.label))
    called = receipt.names("called")
    things += [states[name] for name in called if name in states]
    return [thing for thing in things if thing.steps]


async def _function(conversation: Conversation, kind: str, name: str) -> Thing:
    """Return a function or a helper with its versions; without steps if there never was one."""
    workspace = conversation.workspace
    versions: Sequence[Version] = ()
    with suppress(UsageError):  # the name is of another kind
        versions = await (
            workspace.helpers.versions(name) if kind else workspace.functions.history.versions(name)
        )
    steps = [
        Step(version.hash or None, _hand(version), version.row.turn, version.row.at, version)
        for version in versions
    ]
    first = [Step(None)] if steps else []
    put = partial(_restore, conversation, kind, name)
    last = None if kind or not steps else await workspace.functions.relocations.last_step(name)
    if last is None:
        return Thing(f"{kind}{name}", counting([*first, *steps]), put)
    if last.reason != versions[-1].row.reason:  # in another module, with the same text
        steps.append(Step((last.reason,), _YOU, last.turn, last.at))
    put = partial(_take_back, conversation, name)
    return Thing(f"{kind}{name}", counting([*first, *steps]), put, last.reason)


def _hand(version: Version) -> str:
    """Return the author of a version as a phrase for the user."""
    return _YOU if version.row.by == "human" else f"the {version.who}"


async def _block(conversation: Conversation, label: str) -> Thing:
    """Return a block of memory with its edits."""
    changes = await conversation.agent.memory.blocks.history(label)
    steps = [
        Step(
            change.value,
            _YOU if change.by == "human" else f"the agent {change.agent}".rstrip(),
            change.turn,
            change.at,
            change,
        )
        for change in changes
    ]
    put = partial(_restore_block, conversation, label, changes[-1].version)
    return Thing(f"the block {label}", counting(steps), put)


async def _states_of_functions(conversation: Conversation) -> dict[str, Thing]:
    """Return the states of functions that are kept, by function."""
    functions = conversation.workspace.functions
    return {
        name: Thing(
            f"the state of {name}",
            counting([_state_step(row) for row in rows]),
            partial(_restore_state, conversation, rows[-1]),
        )
        for name, rows in (await functions.kept_states()).items()
    }


def _state_step(row: StateRow) -> Step:
    by = {"": "a call of yours", RESTORED: _YOU}.get(row.turn, "a turn")
    return Step((row.value,), by, row.turn, row.at, row)


async def _elsewhere(conversation: Conversation) -> list[Line]:
    """Return lines about changes that have a command of their own to take them back."""
    memory = conversation.agent.memory
    newer = [
        (row.edited, f"the section {row.name}", f"/memory section {row.name} drop removes it")
        for row in await memory.sections.list()
    ]
    newer += [
        (
            row.at,
            f"the source {one_line(row.name)}",
            f"`knapper sources remove {row.hash[:8]}` forgets it",
        )
        for row in await memory.sources.list()
    ]
    return [
        line(("dim", f"{shown_time(at, '%H:%M')}  "), ("name", what), ("dim", f": {how}"))
        for at, what, how in sorted(newer)
        if at >= conversation.began
    ]


async def _restore(conversation: Conversation, kind: str, name: str, step_before: Step) -> None:
    """Go back to a version of a function or helper, or delete it if there was none, and show what came of it."""
    functions = conversation.workspace.functions
    changes = conversation.workspace.helper_changes
    told = [line(("ok", "✓ "), f"deleted {kind}{name}")]
    version = (
        step_before.row if isinstance(step_before.row, Version) and step_before.content else None
    )
    if kind:
        by_user = conversation.workspace.by_user("undo")
        if version is None:
            await changes.delete(name, by_user)
        else:
            verdict = await changes.rollback(name, str(version.number), by_user)
            told = helper_lines(verdict, "was restored")
    elif version is None:
        result = await functions.delete(name)
        told = [line(("ok", "✓ "), f"deleted {result.name} from {result.module}")]
    else:
        told = folded_lines(await functions.rollback(name, version.hash), f"??{name}")
    conversation.voice.lines(told)


async def _take_back(conversation: Conversation, name: str, _: Step) -> None:
    """Take back the last change of a function in all files that it changed."""
    judgment = await conversation.workspace.functions.rollback(name)
    conversation.voice.lines(folded_lines(judgment, f"??{name}"))


async def _restore_block(
    conversation: Conversation, label: str, version: int, step_before: Step
) -> None:
    """Restore a block that still has the version which was shown."""
    assert isinstance(step_before.row, BlockChange)
    blocks = conversation.agent.memory.blocks
    edit = await set_up_block(blocks, label, version, value=text_of(step_before.row.value))
    if edit.outcome != "returned":
        raise UsageError(edit.text)
    conversation.voice.lines([line(("ok", "✓ "), f"restored the block {label}")])


async def _restore_state(conversation: Conversation, row: StateRow, step_before: Step) -> None:
    assert isinstance(step_before.row, StateRow)
    await conversation.workspace.functions.restore_state(row, step_before.row)
    conversation.voice.lines([line(("ok", "✓ "), f"restored the state of {row.function}")])


RUNS: dict[str, RunCommand] = {"undo": _undo, "changes": _changes}
