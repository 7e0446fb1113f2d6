"""Records of calls: whether a failure was the function's fault, and a short form of the outcome."""

import ast
import builtins
import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

from sandbox import Killed, Raised
from sandbox.wire.lines import lines_of

from ..answers import CallOutcome, Measured, outcome_json, word
from ..debug import Watch
from agent_core.registry.docstring import read
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import RecordCall, Write

_NAMES = re.compile(r"[\w.]+")


def recorded(
    function: Function, snapshot: Snapshot, outcome: CallOutcome, seconds: float, turn: str = ""
) -> RecordCall:
    """Return the record of one real call."""
    how, error, message = word(outcome), "", ""
    if isinstance(outcome, Raised):
        error, message = outcome.failure.type, outcome.failure.message
        if is_documented(error, function, snapshot):
            how = "documented"
    elif isinstance(outcome, Killed):
        message = outcome.reason
    measured = (outcome.memory, outcome.cpu_s) if isinstance(outcome, Measured) else ()
    return RecordCall(function.name, function.body_hash, how, seconds, turn, error, message, *measured)


def noted(  # noqa: PLR0913 - what a call was, one thing each
    watch: Watch,
    function: Function,
    snapshot: Snapshot,
    outcome: CallOutcome,
    *,
    seconds: float,
    arguments: Mapping[str, Any],
    turn: str = "",
) -> tuple[Write, ...]:
    """Return the writes of one call: for the function's standing, unless the user debugged it, and for a replay."""
    writes = watch.writes(function, snapshot, arguments, outcome_json(outcome))
    return tuple(writes) if watch.was_stopped else (recorded(function, snapshot, outcome, seconds, turn), *writes)


def is_documented(error: str, function: Function, snapshot: Snapshot) -> bool:
    """Return whether the docstring names this exception, or a built-in class that it belongs to."""
    named = [name for entry in read(_docstring(function, snapshot)).raises for name in _NAMES.findall(entry)]
    return any(_belongs(error, name) for name in named)


def source_of(function: Function, snapshot: Snapshot) -> str:
    """Return the function's own lines."""
    lines = lines_of(snapshot.modules[function.module].text)[function.line - 1 : function.end_line]
    return "\n".join(line.rstrip("\r\n") for line in lines)


def _docstring(function: Function, snapshot: Snapshot) -> str | None:
    try:
        tree = ast.parse(dedent(source_of(function, snapshot)))
    except SyntaxError:  # its lines do not stand by themselves: nothing is known of it
        return None
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return ast.get_docstring(defined[0]) if defined else None


def _belongs(error: str, named: str) -> bool:
    error, named = error.rpartition(".")[2], named.rpartition(".")[2]
    kind, family = _builtin(error), _builtin(named)
    return error == named or (kind is not None and family is not None and issubclass(kind, family))


def _builtin(name: str) -> type[BaseException] | None:
    value = getattr(builtins, name, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None
