"""Logs of findings for other programs, such as code scanning: each is an option of the commands that judge functions.

An extension adds them at the hook `LOGS`, by the name of the option.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click

from agent_core.base.extensions import LOGS, LogBeside, offers

if TYPE_CHECKING:
    from agent_core.functions.service.judgment import Judgment


OpenLog: TypeAlias = "Callable[[Path, str], FindingsLog]"
"""Begins a log of what was found below a folder, by what is named."""
Options: TypeAlias = Mapping[str, Any]  # Any: click's


class FindingsLog(Protocol):
    """A log of verdicts and findings."""

    def add(self, judgment: "Judgment", /) -> None:
        """Add the results of one verdict."""

    def text(self, *, whole: bool = True) -> str:
        """Return the log, which says whether everything requested was judged."""


def log_options(handler: Callable[..., Any]) -> Callable[..., Any]:  # Any: as click's options
    """Give a command an option for each log."""
    for name, beside in _logs().items():
        handler = click.option(f"--{name}", name, is_flag=True, help=beside.says)(handler)
    return handler


def chosen_logs(options: Options) -> dict[str, bool]:
    """Return the options for logs, with whether each was given."""
    return {f"--{name}": bool(options.get(name)) for name in _logs()}


def begun_log(options: Options, root: Path, finder: str) -> FindingsLog | None:
    """Begin the log that the options ask for, if they do."""
    for name, beside in _logs().items():
        if options.get(name):
            begin: OpenLog = beside.begin
            return begin(root, finder)
    return None


def _logs() -> Mapping[str, LogBeside]:
    return offers(LOGS)
