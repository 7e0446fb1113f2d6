"""A function's standing: the gate's verdict combined with recorded calls of its current version. Pure; rules are data.

`draft` → `trial` → `trusted` by calls that returned; `quarantined` by consecutive failures, until a human releases it
or another version replaces it.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_core.storage import Stats

if TYPE_CHECKING:
    from agent_core.base.settings import StandingSettings

Standing: TypeAlias = Literal["foreign", "draft", "trial", "trusted", "quarantined"]
STANDINGS: tuple[Standing, ...] = ("draft", "trial", "trusted", "quarantined")

_DAY = 86_400.0


def standing(
    current: Standing, stats: Stats | None, standing_settings: "StandingSettings", *, is_doubted: bool = False
) -> Standing:
    """Return the current standing; `current` is the gate's, `stats` are the calls of the current version.

    A function that was admitted with open doubts needs twice as many calls, over twice as many days, to be trusted.
    """
    times = 2 if is_doubted else 1
    if stats is None:
        return current
    if is_quarantined(stats, standing_settings):
        return "quarantined"
    days = 0.0 if stats.worked is None or stats.since is None else (stats.worked - stats.since) / _DAY
    has_held = stats.holding >= times * standing_settings.trusted_calls
    if has_held and days >= times * standing_settings.trusted_days:
        return "trusted"
    if current == "draft" and stats.holding >= standing_settings.trial_calls:
        return "trial"
    return current


def is_quarantined(stats: Stats, standing: "StandingSettings") -> bool:
    """Check whether this version failed so often in a row that it is hidden from the model."""
    return 0 < standing.quarantine_failures <= stats.worst


def is_unused(joined: float, called: float | None, now: float, standing: "StandingSettings") -> bool:
    """Check whether a function has been unused for so long, counted from its admission, that it may be retired."""
    since = max(joined, called or joined)
    return standing.retire_days > 0 and now - since >= standing.retire_days * _DAY


def summed(rows: list[Stats]) -> Stats | None:
    """Return the calls of all versions of a function combined; consecutive counts are of the last called version."""
    if not rows:
        return None
    last = max(rows, key=lambda row: row.last_called)
    worked = [row.worked for row in rows if row.worked is not None]
    memory = [row.memory for row in rows if row.memory is not None]
    cpu = [row.cpu for row in rows if row.cpu is not None]
    return Stats(
        function=last.function,
        version=last.version,
        calls=sum(row.calls for row in rows),
        returned=sum(row.returned for row in rows),
        failed=sum(row.failed for row in rows),
        failing=last.failing,
        holding=last.holding,
        first_called=min(row.first_called for row in rows),
        last_called=last.last_called,
        seconds=sum(row.seconds for row in rows),
        worst=last.worst,
        since=last.since,
        worked=max(worked, default=None),
        longest=max(row.longest for row in rows),
        memory=max(memory, default=None),
        cpu=sum(cpu) if cpu else None,
    )
