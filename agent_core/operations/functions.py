"""Operations on functions."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from .operation import Here, Opens, Operation
from .words import Word

if TYPE_CHECKING:  # `knapper --help` must not load the service
    from agent_core.functions.service import PlannedChange
    from agent_core.functions.service.function_facts import FunctionDetails, Rated, Released
    from agent_core.functions.service.history import FunctionHistory, VersionDiff
    from agent_core.functions.service.pins import Pinned
    from agent_core.functions.service.plan import Joined

FunctionName = Annotated[str, Word("<function>", for_models="function_name")]
CandidateName = Annotated[str, Word("<candidate>", for_models="function_name")]
Pattern = Annotated[str, Word("<function>", metavar="NAME|MODULE|PATTERN", max_chars=200)]
DraftName = Annotated[str, Word("<candidate>", metavar="NAME|PATTERN", max_chars=200)]
ExampleText = Annotated[str, Word(is_option=True, max_chars=10_000)]
Reason = Annotated[str, Word(is_option=True, max_chars=2_000)]
Results = Annotated[list[str] | None, Word(is_option=True, max_chars=10_000, max_items=100)]
NoteText = Annotated[str, Word(max_chars=2_000)]
NewName = Annotated[str, Word(max_chars=64)]
ModuleName = Annotated[str, Word("<module>", max_chars=200)]
VersionRef = Annotated[str, Word("<version>", max_chars=64)]
_PAGE: Final = {"page": "the function in the room Functions"}
NOUN: Final = "functions"
_reads: Final = partial(Operation, NOUN, prompt=_PAGE)
_changes: Final = partial(_reads, ("edit",), Opens.ASKING, gives="Judgment")
_marks: Final = partial(Operation, NOUN, ("edit",), Opens.WORKSPACE)


@_reads(
    path=("GET", "/functions/{name}"),
    slash="introspect",
    prompt={"page": "the room Functions"},
)
async def show(here: Here, name: FunctionName) -> "FunctionDetails":
    """Show everything about a function: its source, standing, calls, verdict, callers and callees."""
    return await here.functions.introspect(name, here.owners)


@_changes(tool="rollback_function", slash="rollback")
async def rollback(here: Here, name: FunctionName, version: VersionRef = "") -> "PlannedChange":
    """Put an earlier version of a function back, or bring a deleted function back. It passes the gate as any change.

    Args:
        name: The function.
        version: The number of a version or the beginning of its hash; empty for the one before, again for an older one.
    """
    return await here.functions.plan_rollback(name, version, here.author)


@_changes(
    tool="confirm_function",
    slash="confirm NAME [REASON | = RESULT, …]",
    prompt={},
)
async def confirm(
    here: Here, name: CandidateName, expected: Results = None, reason: Reason = ""
) -> "PlannedChange":
    """Admit a refused candidate when only the expected results in its examples were wrong, or are asked for.

    The examples then hold what the function really returned. Do this only if those results are right.

    Args:
        name: The candidate that was refused.
        expected: Only if you were asked what calls must return: a Python expression each, as text, such as
            `Decimal('0.00')`; an error by its name, `ValueError`.
        reason: Why an example that the function had before may change, if one does; a person decides.
    """
    return await here.functions.plans.confirm(name, reason, here.author, expected or ())


@_changes(tool="add_example", slash="example NAME CALL = RESULT", prompt={})
async def add_example(
    here: Here, name: FunctionName, call: ExampleText, expected: ExampleText
) -> "PlannedChange":
    """Keep one more example with a function: a case that every later version has to get right.

    Args:
        name: The function.
        call: The call, such as `add_up([1, 2])`.
        expected: What it must return, as Python writes it; or the error that it must raise, `ValueError: too long`.
    """
    return await here.functions.history.add_example(name, call, expected, here.author)


async def _asks_to_delete(here: Here, name: str) -> tuple[str, str]:
    here.functions.path_of(name)  # the error names those that are there
    last = (await here.functions.history.versions(name))[-1]
    return f"Delete {name}, version {last.number}?", last.hash


@_marks(
    path=("DELETE", "/functions/{name}"),
    gives="Deletion",
    tool="delete_function",
    slash="delete",
    asks=_asks_to_delete,
)
async def delete(here: Here, name: FunctionName) -> "PlannedChange":
    """Delete a function that no other uses; a rollback brings it back."""
    return await here.functions.plans.delete(name, here.author)


@_marks(gives="Relocated", slash="rename")
async def rename(here: Here, name: FunctionName, new: NewName) -> "PlannedChange":
    """Give a function another name, with all that refers to it: callers, imports, examples. A rollback takes it back.

    Args:
        name: The function.
        new: Its new name.
    """
    return await here.functions.relocations.rename(name, new, here.author)


@_marks(gives="Relocated", slash="move")
async def move(here: Here, name: FunctionName, module: ModuleName) -> "PlannedChange":
    """Move a function to another module, with what only it needs; all imports follow. A rollback takes it back.

    Args:
        name: The function.
        module: The module, such as `text` or `web.pages`; made if it does not exist.
    """
    return await here.functions.relocations.move(name, module, here.author)


@_reads(tool="function_history", slash="history")
async def history(here: Here, name: FunctionName) -> "FunctionHistory":
    """Show the versions of a function, also of a deleted one: when, by whom, why, and what changed.

    Args:
        name: The function.
    """
    return await here.functions.history.of(name)


@_reads(slash="diff")
async def diff(here: Here, name: FunctionName, version: VersionRef = "") -> "VersionDiff":
    """Show what changed since a version of a function, or in the last change.

    Args:
        version: A number or the beginning of a hash; by default, the one before the current.
    """
    return await here.functions.history.diff(name, version)


@_marks(slash="release", prompt={"in_turn": True, **_PAGE})
async def release(here: Here, name: FunctionName) -> "Released":
    """Release a function from quarantine: the model sees it again, and its failures are counted from zero."""
    return await here.functions.release(name)


@_marks(
    slash="good [NAME]",
    prompt={"says": "Say that a function's results are right; by default, those of the last call."},
)
async def good(here: Here, name: FunctionName) -> "Rated":
    """Say that a function's results are right. What was unproven of it counts as proven, until it is changed."""
    return await here.functions.rate(name, is_good=True)


@_marks(
    slash="bad [NAME [NOTE]]",
    prompt={
        "says": "Say that its result was wrong: it becomes a draft, and the agent is notified."
    },
)
async def bad(here: Here, name: FunctionName, note: NoteText = "") -> "Rated":
    """Say that a function's result was wrong. It is a draft until it is changed, or called good.

    Args:
        note: What the agent is told.
    """
    return await here.functions.rate(name, is_good=False, note=note)


@_marks(slash="pin")
async def pin(here: Here, pattern: Pattern) -> "Pinned":
    """Keep agents from editing, moving, merging, archiving or deleting functions. They can propose a new version.

    Args:
        pattern: A function, a module, or a pattern such as `shop_*`, which also fits later ones.
    """
    return await here.functions.pins.pin(pattern)


@_marks(slash="unpin")
async def unpin(here: Here, pattern: Pattern) -> "Pinned":
    """Let agents change what was pinned.

    Args:
        pattern: As it was pinned; or one function that a wider pin holds, which is let go alone.
    """
    return await here.functions.pins.unpin(pattern)


@_changes(slash="join", gives="Joined", prompt={})
async def join(here: Here, pattern: DraftName) -> "Joined":
    """Join drafts that wait for your yes: what an agent made where growth asks, or proposed for what is pinned.

    Args:
        pattern: A draft, or a pattern such as `*` for all that lack nothing else.
    """
    return await here.functions.join(pattern)
