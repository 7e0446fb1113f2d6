"""The slash commands for a function's history, and for rejected candidates."""

from collections.abc import Awaitable, Callable

from agent_core.base.errors import UsageError

from .catalogue import needed
from .conversation import Conversation
from .spans import line
from .tables import versions_table
from .verdicts import verdict_lines
from .versions import blame_lines, diff_lines, pending_hint, pending_lines


async def _history(talk: Conversation, words: str) -> None:
    history = await talk.workspace.workshop.past.history(needed(words, "history"))
    await talk.voice.browse(versions_table(history))


async def _diff(talk: Conversation, words: str) -> None:
    talk.voice.lines(diff_lines(await talk.workspace.workshop.past.diff(*_two(words, "diff"))))


async def _blame(talk: Conversation, words: str) -> None:
    talk.voice.lines(blame_lines((await talk.workspace.workshop.past.blame(*_two(words, "blame"))).lines))


async def _rollback(talk: Conversation, words: str) -> None:
    talk.voice.lines(verdict_lines(await talk.workspace.workshop.rollback(*_two(words, "rollback"))))


async def _example(talk: Conversation, words: str) -> None:
    name, _, example = needed(words, "example").partition(" ")
    call, arrow, expected = example.rpartition(" = ")
    if not arrow:
        raise UsageError("An example is a call and its result.", fix="Type /example NAME CALL = RESULT.")
    talk.voice.lines(verdict_lines(await talk.workspace.workshop.add_example(name, call, expected)))


async def _confirm(talk: Conversation, words: str) -> None:
    name, _, reason = needed(words, "confirm").partition(" ")
    talk.voice.lines(verdict_lines(await talk.workspace.workshop.confirm(name, reason=reason)))


async def _pending(talk: Conversation, words: str) -> None:
    shop = talk.workspace.workshop
    name, _, action = words.partition(" ")
    if action == "drop":
        await shop.drop(name)
        talk.voice.lines([line(("ok", "✓ "), f"The candidate for {name} was discarded.")])
        return
    everything = await shop.all_pending()
    candidates = {
        candidate_name: candidate for candidate_name, candidate in everything.items() if name in ("", candidate_name)
    }
    hint = pending_hint(candidates, "/confirm") if candidates else "There are no rejected candidates."
    talk.voice.lines([*pending_lines(candidates), *([line(("dim", hint))] if hint else [])])


def _two(words: str, command: str) -> tuple[str, str]:
    name, _, version = needed(words, command).partition(" ")
    return name, version.strip()


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    "history": _history,
    "diff": _diff,
    "blame": _blame,
    "rollback": _rollback,
    "example": _example,
    "confirm": _confirm,
    "pending": _pending,
}
