"""Settings, grants, commands and flags that an earlier version had and this one does not, with what to do instead.

Nobody is locked out by it: what is named here has no effect and is told once. It stops no command and no workspace.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_STATE: Final = "`self.state` keeps what a function needs at its next call, and survives a crash."
GONE: Final[Mapping[str, str]] = {
    "stateful": _STATE,
    "--stateful": _STATE,
    "repl.theme": "Remove it: the colors can be read on dark and light screens, and `NO_COLOR=1` turns them off.",
    "repl.bell": "Remove it: `repl.title` shows in the title of the window when a turn has ended.",
    "functions blame": "`git blame` says who wrote which line; `knapper functions history NAME` has every version.",
    "/blame": "`git blame` says who wrote which line; `/history NAME` has every version, `/diff NAME` what changed.",
    "turn.shown_functions": "Remove it: `turn.function_tokens` limits what the model is shown.",
    "turn.max_calls": "Remove it: 40 calls of a reply run, and the others are answered as skipped.",
    "turn.message_llm_system": "Remove it: the message itself says how it should be answered.",
    "sandbox.output_kib": "Remove it: 64 KiB of what a call prints are kept.",
    "sandbox.result_kib": "Remove it: `sandbox.value_mib` limits results, of which larger ones go through a file.",
    "sandbox.debug_wait_minutes": "Remove it: a call that nobody answers at the debugger ends after 30 minutes.",
    "gate.fixes_off": "Remove it: `gate.fixes = false` turns off all fixes.",
    "gate.candidate_kib": "Remove it: a candidate has at most 64 KiB.",
    "gate.module_kib": "Remove it: a module has at most 256 KiB.",
    "standing.keep_calls": "Remove it: the last 100 calls of a function are recorded individually.",
    "memory.page_chars": "Remove it: `turn.answer_chars` and the window limit what is shown at once.",
    "memory.past_chars": "Remove it: longer answers of past turns are shown by their beginning.",
    "memory.session_gap_minutes": "Remove it: a silence of an hour begins a new session, for search.",
    "heartbeat.pause_max_minutes": "Remove it: an agent can pause for up to six hours.",
    "runner.ask_hours": "Remove it: an answer is awaited for 72 hours, or for the `minutes` of `ask_agent`.",
    "runner.message_chars": "Remove it: a message between agents has at most 20,000 characters.",
    "memory.tidy": "Remove it: in any turn, ask the agent to clean up the block.",
    "memory tidy": "In any turn, ask the agent to clean up the block; `knapper memory edit LABEL` does it by hand.",
    "/memory tidy": "Ask the agent to clean up the block; `/memory edit LABEL` does it by hand.",
    "/undo N": "`/undo` takes back what the last turn did; `/changes NAME` takes back any other change.",
    "/undo all": "Type `/undo` once for each turn; `/changes` lists the other changes.",
    "growth.trigger": "Remove it: you or the agent edit the description of a function that is called wrongly.",
    "growth.mask": "Remove it: no function is hidden at random any more.",
}
"""By name: a setting as `table.key`, a key of a grant, a command with its group, a slash command, a flag."""
MOVED: Final[Mapping[tuple[str, object], tuple[str, object]]] = {
    ("growth.create", False): ("growth.mode", "off"),
    ("growth.create", True): ("growth.mode", "on"),
    ("grants.ask", "always"): ("growth.mode", "ask"),
}
"""Settings with their values that are another setting now: they have its effect, and are told."""
_MAX_TOLD: Final = 1_000


def gone_sentence(name: str, where: str = "") -> str | None:
    """Return the sentence for something that went, or None if nothing of that name did."""
    advice = GONE.get(name)
    place = f" in {where}" if where else ""
    return None if advice is None else f"`{name}`{place} is gone and has no effect. {advice}"


def gone_command(name: str, words: str) -> str | None:
    """Return the sentence for a slash command that went, also one of two words; None if it did not.

    A number is `N` in the table.
    """
    first = words.strip().partition(" ")[0]
    if first.isdecimal():
        first = "N"
    return gone_sentence(f"/{name}") or gone_sentence(f"/{name} {first}")


@lru_cache(_MAX_TOLD)
def warn_of_gone(name: str, where: str = "") -> None:
    """Write to standard error, once for each place, that something went."""
    sentence = gone_sentence(name, where)
    if sentence is not None and sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")


def without_gone(
    values: Mapping[str, Any], where: str, section: str = ""
) -> dict[str, Any]:  # Any: TOML
    """Return settings without those that went, each of which is told."""
    kept: dict[str, Any] = {}  # Any: TOML
    for key, value in values.items():
        name = f"{section}{key}"
        if name in GONE:
            warn_of_gone(name, where)
        elif isinstance(value, Mapping) and not section:
            kept[key] = without_gone(value, where, f"{key}.")
        else:
            kept[key] = value
    return kept


@lru_cache(_MAX_TOLD)
def warn_of_moved(name: str, value: object, where: str) -> None:
    """Write to standard error, once for each place, what a setting is now."""
    new, new_value = MOVED[name, value]
    if sys.stderr is not None:
        sys.stderr.write(
            f"`{name} = {_in_toml(value)}` in {where} is `{new} = {_in_toml(new_value)}` now, and counts as that."
            " Write it so.\n"
        )


def with_moved(values: Mapping[str, Any], where: str) -> dict[str, Any]:  # Any: TOML
    """Return settings with those that moved under their new names; what is set there already stays."""
    kept = {
        key: {**value} if isinstance(value, Mapping) else value for key, value in values.items()
    }
    for (name, value), (new, new_value) in MOVED.items():
        table, _, key = name.partition(".")
        new_table, _, new_key = new.partition(".")
        section = kept.get(table)
        if isinstance(section, dict) and key in section and _is_value(section[key], value):
            warn_of_moved(name, value, where)
            del section[key]
            kept.setdefault(new_table, {}).setdefault(new_key, new_value)
    return kept


def _is_value(given: object, value: object) -> bool:
    """Return whether a setting has a value, which a variable gives as a text."""
    text = str(value).lower()
    return given == value or (isinstance(given, str) and given.lower() == text)


def _in_toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
