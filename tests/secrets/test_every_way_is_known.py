"""What can leave a worker is read from the code: an untested request, field or kind of frame fails here.

The ways themselves are in `ways`; this file says which of them test each request.
"""

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

import agent_core
import agent_core.functions.sandbox_client
from agent_core.access.broker.fetches import Fetches
from agent_core.access.call_exit import CallExit
from agent_core.access.grants import AccessResolver, FileRequests, Permit
from agent_core.access.secrets import Secrets
from agent_core.access.secrets.masks import Masks
from agent_core.access.secrets.session import FETCHES, FILES, MEASURED, MaskedChannel, masked
from agent_core.functions.debug.debugging import Watch
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.worker_api import WorkerApi
from agent_core.memory.function_api import FunctionMemoryApi
from sandbox import Failure, Frame, Limits, Outcome, Sandbox
from tests.secrets.support import KEY
from tests.secrets.ways import NUMBER, WAYS

BY_VERB = {
    "progress": "progress-note",
    "call": "call-arguments",
    "ask": "ask-question",
    "now": "now-with-arguments",
    "call_key": "call-key-with-arguments",
    "memory": "memory-append",
    "state": "state-value",
    "debug": "debug-record",
    "secret": "secret-name",
    "fetch": "fetch-path",
    "fetch_send": "fetch-send",
    "fetch_read": "fetch-read",
    "fetch_close": "fetch-close",
    "file_open": "file-open",
    "file_stat": "file-look",
    "file_list": "file-look",
    "file_change": "file-change",
    "file_places": "file-places",
    "file_read": "file-of-an-open-one",
    "file_write": "file-of-an-open-one",
    "file_size": "file-of-an-open-one",
    "file_truncate": "file-of-an-open-one",
}
BY_ACT = {
    "read": "memory-label",
    "append": "memory-append",
    "replace": "memory-replace",
    "write": "memory-write",
}
BY_EVENT = {
    "record": "debug-record",
    "traced": "debug-traced",
    "stopped": "debug-stopped",
    "answered": "debug-answered",
}


def words_of(part: object) -> set[str]:
    """Return the strings that are matched or compared in the source of a function or class."""
    source = inspect.getsource(part)  # type: ignore[arg-type]  # a function or a class
    tree = ast.parse(source if not source[0].isspace() else f"class _:\n{source}")
    return {word for node in ast.walk(tree) for word in _words(node)}


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.MatchValue(value=ast.Constant(value=str(word))):
            yield word
        case ast.Compare(comparators=others):
            yield from (
                one.value
                for one in others
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )


def test_each_verb_is_told_a_secret_by() -> None:
    assert (
        words_of(WorkerApi.__call__) | words_of(MaskedChannel._answer) | FETCHES | FILES
        == BY_VERB.keys()
    )
    assert (
        words_of(FunctionMemoryApi.answer) & BY_ACT.keys()
        == words_of(FunctionMemoryApi.answer) - {"refused"}
        == BY_ACT.keys()
    )
    assert words_of(Watch._answer) == BY_EVENT.keys()
    assert {*BY_VERB.values(), *BY_ACT.values(), *BY_EVENT.values()} <= WAYS.keys()


def poisoned(kind: Any) -> Any:  # Any: a type, as hints give it
    """Return a value of a type, with a secret wherever one fits."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: poisoned(hints[one.name]) for one in dataclasses.fields(kind)})  # type: ignore[operator]
    if getattr(kind, "__origin__", None) is dict:
        return {KEY: KEY}
    if options := [one for one in get_args(kind) if one not in (NoneType, ...)]:
        is_many = getattr(kind, "__origin__", None) is tuple
        return tuple(poisoned(one) for one in options) if is_many else poisoned(options[0])
    return {
        str: KEY,
        int: int(NUMBER),
        float: float(NUMBER),
        bool: True,
        Any: [{KEY: int(NUMBER)}],
    }[kind]


@pytest.mark.parametrize("kind", get_args(Outcome))
def test_each_field_of_each_outcome_is_masked(kind: Callable[..., Outcome]) -> None:
    failure = Failure(KEY, KEY, (poisoned(Frame),), Failure(KEY, KEY, (poisoned(Frame),)), True)
    hints = get_type_hints(kind)
    given = {name: failure if hint is Failure else poisoned(hint) for name, hint in hints.items()}
    outcome = kind(**given)
    assert masked(outcome, Masks(())) is outcome
    cleaned = masked(outcome, Masks({("KEY", KEY), ("NUMBER", NUMBER)}))
    assert type(cleaned) is type(outcome)
    claimed = {
        name: value for name, value in dataclasses.asdict(cleaned).items() if name not in MEASURED
    }
    assert KEY not in repr(claimed)
    assert NUMBER not in repr(claimed)


def test_all_that_runs_code_is_run_and_masked_by_the_cage_alone() -> None:
    runs = {
        name
        for name, one in inspect.getmembers(Sandbox, inspect.iscoroutinefunction)
        if _runs_code(name, one)
    }
    own = {
        name
        for name, one in inspect.getmembers(SandboxClient, inspect.iscoroutinefunction)
        if _runs_code(name, one)
    }
    assert runs == own
    masking = ("channel.over(", "channel.over, ", "over(", "self._mask(")
    assert not [
        name
        for name in own
        if not any(one in inspect.getsource(getattr(SandboxClient, name)) for one in masking)
    ]
    room = Path(agent_core.__file__).parent
    others = [
        file
        for file in room.rglob("*.py")
        if "Sandbox.start(" in file.read_text() or "sandbox.host" in file.read_text()
    ]
    assert others == [Path(agent_core.functions.sandbox_client.__file__)]


def test_what_gets_a_workers_words_unmasked_speaks_through_the_exit_alone() -> None:
    about_the_call = {"named", "opens", "is_typed", "is_shown"}  # set from outside
    exit = CallExit(Masks({("KEY", KEY)}).clean_said)
    files = FileRequests(
        AccessResolver(Path("/nowhere"), lambda _: ((), ()), Secrets()),
        "f",
        Permit({}, Limits()),
        exit,
    )
    assert {name for name in dir(files) if name[0] != "_"} == {
        "answer",
        "begin",  # by the host, before the worker is there
        "close",
        "places",
        "with_what_follows",  # by the host, of the arguments
        *about_the_call,
    }
    assert {name for name in dir(Fetches) if name[0] != "_"} == {"answer", "aclose", "open"}


def _runs_code(name: str, method: Callable[..., object]) -> bool:
    return not name.startswith("_") and "modules" in inspect.signature(method).parameters
