"""Functions, and the versions of one, as tables to look through."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agent_core.functions.service.function_facts import FunctionListing, FunctionSummary
from agent_core.functions.service.history import FunctionHistory, HistoryEntry, Version, diff
from sandbox.wire.lines import bare_lines

from ..choices import Choice, Table
from ..spans import Line, line
from .function_view import history_lines, list_lines
from .verdicts import coloured

_HEAD = line("version · what · when · who · lines · standing · why")


def functions_table(listing: FunctionListing, source: Callable[[str], str], below: tuple[Line, ...]) -> Table:
    """Return the functions of a listing with their source, and further lines."""
    head, *lines = list_lines(replace(listing, rejected=()), heads=True)
    choices = map(partial(_function, source), listing.functions, lines)
    return Table("functions", head, tuple(choices), below=below)


def versions_table(history: FunctionHistory) -> Table:
    """Return the versions of a function, newest first, each with its change."""
    befores = (None, *(entry.version for entry in history.versions))
    choices = map(partial(_version, history.name), befores, history.versions)
    return Table(f"versions of {history.name}", _HEAD, tuple(choices)[::-1], keeps_order=True)


def _function(source: Callable[[str], str], summary: FunctionSummary, summary_line: Line) -> Choice:
    text = f"{summary.name} {summary.module} {summary.standing} {summary.description}"
    return Choice(summary.name, summary_line, text, list, lambda: (source(summary.name), 1))


def _version(name: str, before: Version | None, entry: HistoryEntry) -> Choice:
    shown, *_ = history_lines([entry])
    text = "".join(part for _, part in shown)
    return Choice(f"{entry.version.number}", shown, text, lambda: _difference(name, before, entry.version))


def _difference(name: str, before: Version | None, version: Version) -> list[Line]:
    old = f"{name} {before.number} ({before.short})" if before else "nothing"
    new = f"{name} {version.number} ({version.short or version.change_kind})"
    return coloured(bare_lines(diff(before.source if before else "", version.source, (old, new))))
