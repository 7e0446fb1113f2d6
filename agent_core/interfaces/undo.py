"""The actions of a session on functions, memory and messages, and how to undo them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import product, takewhile
from typing import Final, Literal, TypeAlias

from agent_core.base.clock import shown_time
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.functions.service.history import Version
from agent_core.memory.blocks import undo_of
from agent_core.runtime.agent import RemovedTurn
from agent_core.storage import BEGUN, BlockChange, StateRow

from .attachments import headline
from .commands.verb import CHANGED
from .conversation import Conversation, RunCommand
from .manual_edits import set_up_block, undo_block
from .render.agent_view import text_of
from .render.agent_view import verdict_lines as helper_lines
from .render.memory_view import edit_says
from .render.verdicts import folded_lines
from .styled_lines import Line, counted, line

_UNDONE = "undo"


@dataclass(frozen=True, slots=True)
class UndoableAction:
    """An action: when it happened, what it did, what undoing it does, and the function that undoes it."""

    at: float
    says: str
    undoes: str
    undo: Callable[[], Awaitable[None]]


def states(
    versions: Sequence[Version], undone: Mapping[tuple[str, int], int], name: str
) -> list[Version]:
    """Return the versions that still count. A version created by undo cancels the versions that it reverted."""
    live_versions: list[Version] = []
    for version in versions:
        steps = undone.get((name, version.number), 0)
        live_versions = live_versions[:-steps] if steps else [*live_versions, version]
    return live_versions


def last_edit(changes: Sequence[BlockChange]) -> BlockChange | None:
    """Return the change that an undo of a block would revert, if there is one."""
    if undo_of(changes) is None:
        return None
    same = [
        change
        for change in changes
        if change.value == changes[-1].value and _UNDONE not in change.action.lower()
    ]
    return same[-1] if same else changes[-1]


# Undoing actions: the last one, one from the list, or all. An action belongs to the agent of the conversation; actions
# of other agents are reported but not undone.

_Scope: TypeAlias = Literal["step", "author", "session"]
"""The versions that one undo covers: the last one, the latest run by the same author, or all in the session."""
_NOT_ALL = "Nothing is left to undo in this session: what /forget removed cannot be restored."
_OLDER = "For older changes: /rollback NAME, /memory undo, /pop."


async def _changes(conversation: Conversation, words: str) -> None:
    """List what differs from the start of the session, and who changed it last."""
    changes = await _whole(conversation, "author")
    count = len(conversation.undo_log.of(conversation.agent.name))
    rows = [
        line(("name", f"{number:3} "), ("dim", f"{shown_time(change.at, '%H:%M')}  "), change.says)
        for number, change in enumerate(changes, 1)
    ]
    turns = (
        [line(("dim", f"and {counted(count, 'turn')}: /pop removes the last one."))]
        if count
        else []
    )
    hint = [
        line(
            (
                "dim",
                "/undo N undoes one of them, /undo all everything; /undo alone only the last step.",
            )
        )
    ]
    lines = [*rows, *await _not_undone(conversation, 0.0), *(turns + hint if rows else ())]
    conversation.voice.lines(
        lines or [line(("dim", "Nothing was made or changed in this session."))]
    )


async def _undo(conversation: Conversation, words: str) -> None:
    if words:
        await _carry_out(conversation, partial(_named_actions, conversation, words))
        return
    last = await _last_actions(conversation)
    conversation.voice.lines(await _not_undone(conversation, last[0].at if last else 0.0))
    await _carry_out(conversation, partial(_last_actions, conversation))


async def _named_actions(conversation: Conversation, words: str) -> list[UndoableAction]:
    """Return the action with this number, or all in the session."""
    changes = await _whole(conversation, "session" if words == "all" else "author")
    if not changes:
        raise UsageError("Nothing was made or changed in this session.", fix=_OLDER)
    if words != "all" and not (words.isdecimal() and 1 <= int(words) <= len(changes)):
        raise UsageError(
            f"There is no change {one_line(words, 40)}.", fix="Type /changes for the list."
        )
    return changes[::-1] if words == "all" else [changes[int(words) - 1]]


async def _last_actions(conversation: Conversation) -> list[UndoableAction]:
    """Return the last step, which may be a message, or nothing."""
    actions = await _whole(conversation, "step")
    if messages := conversation.undo_log.of(conversation.agent.name):
        at, message = messages[-1]
        undoes = f"remove the message “{one_line(message, 60)}” and its turn from the context"
        actions.append(UndoableAction(at, "", undoes, partial(_unsay, conversation)))
    return sorted(actions, key=lambda action: action.at)[-1:]


async def _carry_out(
    conversation: Conversation, choose: Callable[[], Awaitable[list[UndoableAction]]]
) -> None:
    """Undo the chosen actions after asking, and asking again if they are others when the answer comes.

    Report an action that cannot be undone, and undo the others.
    """
    shown: list[UndoableAction] = []
    actions = await choose()
    if not actions:
        nothing = (
            _NOT_ALL
            if conversation.undo_log.forgot
            else "Nothing was changed or said in this session."
        )
        raise UsageError(nothing, fix=_OLDER)
    while actions and _states(actions) != _states(shown):
        if shown:
            conversation.voice.lines([CHANGED])
        if not await conversation.voice.confirm(
            f"Undo: {'; '.join(action.undoes for action in actions)}?"
        ):
            conversation.voice.lines([line(("dim", "Nothing was changed."))])
            return
        shown, actions = actions, await choose()
    for action in actions:
        try:
            await action.undo()
        except KnapperError as error:
            conversation.explain(error)


def _states(actions: Sequence[UndoableAction]) -> list[tuple[float, str]]:
    """Return what identifies actions: what undoing each does, and when the thing was last changed."""
    return [(action.at, action.undoes) for action in actions]


_KINDS: Final = {"": "/rollback {}", "the helper ": "`knapper helpers rollback {}`"}
"""The words before the name of a function or helper, and the command that goes back to the version before."""


async def _whole(conversation: Conversation, scope: _Scope) -> list[UndoableAction]:
    """Return one action for each thing that was changed in the session, oldest first."""
    touched = product(_KINDS, conversation.undo_log.touched)
    things = [await _last_changes(conversation, kind, name, scope) for kind, name in touched]
    blocks = [
        await _block(conversation, row.label, scope)
        for row in conversation.agent.memory.blocks.rows
    ]
    kept_states = await conversation.workspace.functions.kept_states()
    states = [_state(conversation, rows, scope) for rows in kept_states.values()]
    return sorted(
        (action for action in (*things, *blocks, *states) if action), key=lambda action: action.at
    )


async def _last_changes(
    conversation: Conversation, kind: str, name: str, scope: _Scope
) -> UndoableAction | None:
    """Return the last changes to a function or helper as one action, or None if another agent made the last change."""
    live_versions = await _live_versions(conversation, kind, name)
    began, last = conversation.undo_log.began, live_versions[-1] if live_versions else None
    if last is None or last.row.at < began or _is_of_another(conversation, last):
        return None
    what, by = f"{kind}{name}", _hand(last)
    since = takewhile(lambda version: version.row.at >= began, live_versions[::-1])
    if scope == "author":
        since = takewhile(lambda version: _hand(version) == by, since)
    changes = [last] if scope == "step" else [*since]
    steps, maker = len(changes), _hand(changes[-1])
    before = live_versions[-steps - 1] if steps < len(live_versions) else None
    there, here = before is not None and bool(before.hash), bool(last.hash)
    if before is not None and there and here and before.hash == last.hash:
        return (
            await _last_changes(conversation, kind, name, "session") if scope == "author" else None
        )
    if before is None or not there:
        says = f"{maker} made {what}"
        undoes = f"delete {what}, made by {maker}" + (
            f" and changed by {by}" if by != maker else ""
        )
        undo = partial(_restore, conversation, kind, name, None, steps)
        return UndoableAction(last.row.at, says, undoes, undo) if here else None
    undo = partial(_restore, conversation, kind, name, before, steps)
    change = f"change {what} back to version {before.number} (by {_hand(before)}, {before.when})"
    bring = f"bring {what} back, which {by} deleted ({last.when})"
    return UndoableAction(
        last.row.at,
        f"{by} {'changed' if here else 'deleted'} {what}",
        change if here else bring,
        undo,
    )


def _hand(version: Version) -> str:
    """Return the author of a version as a phrase for the user."""
    return "you" if version.row.by == "human" else f"the {version.who}"


async def _versions(conversation: Conversation, kind: str, name: str) -> Sequence[Version]:
    """Return the versions of a function or helper, oldest first.

    Raises:
        UsageError: none with this name ever existed.
    """
    workspace = conversation.workspace
    return await (
        workspace.helpers.versions(name) if kind else workspace.functions.history.versions(name)
    )


async def _live_versions(conversation: Conversation, kind: str, name: str) -> list[Version]:
    try:
        versions = await _versions(conversation, kind, name)
    except UsageError:  # the touched name never existed, or is of another kind
        return []
    return states(versions, conversation.undo_log.undone, f"{kind}{name}")


def _is_of_another(conversation: Conversation, version: Version) -> bool:
    return version.row.agent not in ("", conversation.agent.name)


async def _block(conversation: Conversation, label: str, scope: _Scope) -> UndoableAction | None:
    """Return an action for the last edit of a block, for the latest edits by one hand that still count, or for what
    differs from the start of the session.
    """
    changes, began = (
        await conversation.agent.memory.blocks.history(label),
        conversation.undo_log.began,
    )
    last, base = last_edit(changes) if scope == "step" else changes[-1], None
    if scope == "author":
        last, base = _edits_by_one_hand(changes, began)
    elif scope == "session":
        base = next((change for change in reversed(changes) if change.at < began), changes[0])
    if last is None or last.at < began or last.agent not in ("", conversation.agent.name):
        return None
    if base is not None and base.value == changes[-1].value:
        return None
    by = "you" if last.by == "human" else f"the agent {last.agent}".rstrip()
    is_as_begun = base is not None and (base.at < began or base is changes[0])
    was = f"the block {label} as it was {'when the session began' if is_as_begun else f'before {edit_says(last)}'}"
    undo = partial(_restore_block, conversation, label, base, was)
    return UndoableAction(last.at, f"{by} changed the block {label}", f"restore {was}", undo)


def _edits_by_one_hand(
    changes: Sequence[BlockChange], began: float
) -> tuple[BlockChange, BlockChange]:
    """Return the last of the latest edits by one author that still count, and the change before them."""
    at = len(changes) - 1
    while True:
        last = changes[at]
        while (
            at
            and changes[at].at >= began
            and (changes[at].by, changes[at].agent) == (last.by, last.agent)
        ):
            at -= 1
        if not at or changes[at].at < began or changes[at].value != changes[-1].value:
            return last, changes[
                at
            ]  # otherwise these edits were undone, and those before them count


def _state(
    conversation: Conversation, rows: Sequence[StateRow], scope: _Scope
) -> UndoableAction | None:
    """Return an action for the last state that this conversation left in a function, or for what differs from the state
    at the start of the session or function, or from the oldest that is kept. None if only the last one is kept.
    """
    last, log, base = rows[-1], conversation.undo_log, None
    turns = log.turns_of(conversation.agent.name) | {""}  # "": a call of the user
    if last.at < log.began or last.turn not in turns or len(rows) == 1:
        return None
    undoes = f"take the state of {last.function} back to before {shown_time(last.at, '%H:%M')}"
    if scope != "step":
        before = [row for row in rows if row.at < log.began or row.turn == BEGUN]
        base = before[-1] if before else rows[0]
        since = "as it was when the session began" if before else "as far back as it is kept"
        undoes = f"restore the state of {last.function} {since}"
        if base.value == last.value:
            return None
    undo = partial(_restore_state, conversation, last, base)
    return UndoableAction(last.at, f"changed the state of {last.function}", undoes, undo)


async def _restore_state(conversation: Conversation, row: StateRow, base: StateRow | None) -> None:
    await conversation.workspace.functions.restore_state(row, base)
    conversation.voice.lines([line(("ok", "✓ "), f"restored the state of {row.function}")])


async def _not_undone(conversation: Conversation, since: float) -> list[Line]:
    """Return a warning about the latest change if it cannot be undone here, with the command that reverts it."""
    memory, now = conversation.agent.memory, max(since, conversation.undo_log.began)
    newer = [
        (row.edited, f"The section {row.name}", f"/memory section {row.name} drop removes it")
        for row in await memory.sections.list()
    ]
    newer += [
        (
            row.at,
            f"The source {one_line(row.name)}",
            f"`knapper sources remove {row.hash[:8]}` forgets it",
        )
        for row in await memory.sources.list()
    ]
    for kind, name in product(_KINDS, conversation.undo_log.touched):
        versions = await _live_versions(conversation, kind, name)
        if versions and _is_of_another(conversation, versions[-1]):
            what = f"A change of {kind}{name} by {_hand(versions[-1])}"
            before = [str(version.number) for version in versions[:-1] if version.hash][-1:]
            back = _KINDS[kind].format(" ".join([name, *before]))
            newer.append((versions[-1].row.at, what, f"{back} goes back to the version before"))
    at, action, how = max(newer, default=(0.0, "", ""))
    return (
        [line(("warn", f"{action} is newer and cannot be undone here: {how}."))] if at > now else []
    )


async def _restore(
    conversation: Conversation, kind: str, name: str, version: Version | None, steps: int
) -> None:
    """Restore a version of a function or helper, or delete it (None), and show what came of it."""
    functions, changes = conversation.workspace.functions, conversation.workspace.helper_changes
    is_in_force, told = True, [line(("ok", "✓ "), f"deleted {kind}{name}")]
    if kind:
        by_user = conversation.workspace.by_user("undo")
        if version is None:
            await changes.delete(name, by_user)
        else:
            verdict = await changes.rollback(name, str(version.number), by_user)
            is_in_force, told = verdict.admitted, helper_lines(verdict, "was restored")
    elif version is None:
        result = await functions.delete(name)
        told = [line(("ok", "✓ "), f"deleted {result.name} from {result.module}")]
    else:
        judgment = await functions.rollback(name, version.hash)
        is_in_force, told = judgment.admitted, folded_lines(judgment, f"??{name}")
    if is_in_force:  # the latest version is not an action, but undid this many versions
        number = (await _versions(conversation, kind, name))[-1].number
        conversation.undo_log.undone[f"{kind}{name}", number] = steps
    conversation.voice.lines(told)


async def _restore_block(
    conversation: Conversation, label: str, base: BlockChange | None, was: str
) -> None:
    """Restore a block to an earlier change, or to what it was before its last edit (None)."""
    blocks = conversation.agent.memory.blocks
    edit = await (
        set_up_block(blocks, label, value=text_of(base.value))
        if base
        else undo_block(blocks, label)
    )
    if edit.outcome != "returned":
        raise UsageError(edit.text)
    conversation.voice.lines([line(("ok", "✓ "), f"restored {was}" if base else edit.text)])


async def _unsay(conversation: Conversation) -> None:
    removed = await pop_last_turn(conversation)
    conversation.voice.lines(
        [removed_line(removed) if removed else line("It was already removed.")]
    )


async def pop_last_turn(conversation: Conversation) -> RemovedTurn | None:
    """Remove the last turn from the context and its message from the undo log."""
    removed = await conversation.agent.pop()
    conversation.undo_log.unsay(conversation.agent.name)
    return removed


def removed_line(removed: RemovedTurn) -> Line:
    """Return a line about what was removed: the user's message, or the turn that an event began."""
    what = "" if removed.is_message else "a turn that no message began: "
    return line(
        ("ok", "✓ "), "removed from the context: ", what, ("strong", headline(removed.text))
    )


RUNS: dict[str, RunCommand] = {"undo": _undo, "changes": _changes}
