"""The entry points of hostile input, enumerated from the code, with the input for each."""

import ast
import inspect
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from textwrap import dedent
from typing import Any, Final

from agent_core.access.secrets.session import FETCHES
from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside
from agent_core.functions.worker_api import WorkerApi
from agent_core.registry.arguments import read as read_arguments
from agent_core.runtime.agent import Agent
from agent_core.runtime.host_functions import meta_functions, of_memory
from sandbox.wire import values
from tests.hostile.texts import SIZE
from tests.kit.pictures import png

Encoded = Any  # JSON
PRIME: Final = (1 << 61) - 1
COUNT: Final = 8_000
_GOOD: Final[Mapping[str, object]] = {
    "function_name": "count_vowels", "module_name": "letters", "call": "count_vowels('a')", "expected": "1",
    "name": "human", "arguments": {"text": "a"}, "start_date": "2024-01-01", "page": 1, "line": 1, "minutes": 0.0,
}  # fmt: skip


def host_functions(agent: Agent) -> dict[str, Any]:
    """Return all host functions that a model can call, including those for other agents, helpers and its memory."""
    return {**meta_functions(), **of_memory(agent.memory.blocks)}


def hostile_arguments(
    parameters: Mapping[str, Any], text: str
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield, for each parameter that can hold text, arguments with the text there."""
    properties = parameters["properties"]
    required = {name: _GOOD.get(name, "x") for name in parameters.get("required", ())}
    for name, schema in properties.items():
        kinds = str(schema)
        if "'string'" in kinds or "'object'" in kinds:
            is_list, is_object = (
                "'array'" in kinds,
                schema.get("type") == "object" or "'object'" in kinds,
            )
            yield (
                name,
                {
                    **required,
                    name: [text] if is_list else {text[:100]: text} if is_object else text,
                },
            )


async def called(agent: Agent, name: str, raw: str) -> None:
    """Call a host function as the dispatcher does; a rejection is an answer."""
    host = host_functions(agent)[name]
    arguments = await aside(len(raw), read_arguments, raw, host.function.parameters)
    if isinstance(arguments, dict):
        with suppress(KnapperError):
            await host.run(agent, **arguments)


def _collide(n: int) -> int:
    return n * PRIME if n % 9 < 4 else n


def _one_way(n: int) -> int:
    """Return a number that comes to slot 0 of a table of 2**17 at the end of its own way."""
    mask, high = (1 << 17) - 1, (n * 2654435761) % (1 << 44)
    place, rest = 0, high << 17
    for _ in range(13):
        rest >>= 5
        place = (place * 5 + rest + 1) & mask
    return (high << 17) | (-place & mask)


_IN_A_TAG: Final[Mapping[str, Callable[[int], Encoded]]] = {
    "float": lambda n: "inf",
    "bytes": lambda n: "QUFB" * (n % 9),
    "complex": lambda n: f"{n * 1_000_003}j" if n % 2 else f"{n}+0j",
    "Decimal": lambda n: f"{_collide(n)}e{n % 3 * 1000}",
    "datetime": lambda n: f"2024-01-01T00:{n % 60:02}:00",
    "date": lambda n: f"{1 + n % 9000:04}-01-01",
    "time": lambda n: f"{n % 24:02}:00:00",
    "timedelta": lambda n: f"{n} {n} {n}",
    "UUID": lambda n: f"{_collide(n):032x}",
    "Path": lambda n: f"../{n}" * 3,
    "tuple": lambda n: [1, _collide(n)],
    "set": lambda n: [_collide(n)],
    "frozenset": lambda n: [_collide(n)],
    "dict": lambda n: [[_collide(n), n]],
}


def tags() -> set[str]:
    """Return every tag of the protocol."""
    return {*values._FROM_TEXT, *values._CLAIMED}


def hostile_values() -> dict[str, Encoded]:
    """Return values as a worker may claim them: each tag alone, many in a list, in a set and as keys, and deep."""
    found: dict[str, Encoded] = {
        "small lists": [[n] for n in range(SIZE * 3)],
        "empty objects": [{} for _ in range(SIZE * 4)],
        "a long text": "\u200b\x00" * (SIZE * 4),
        "colliding integers": {"$": "set", "v": [_collide(n) for n in range(COUNT)]},
        "integers in the same slots": {"$": "set", "v": [n << 44 for n in range(COUNT)]},
        "integers that go one way": {
            "$": "dict",
            "v": [[n if n % 2 else _one_way(n), 1] for n in range(COUNT)],
        },
    }
    deep: Encoded = 1
    for _ in range(90):
        deep = {"$": "frozenset", "v": [deep]}
    found["deep"] = deep
    for tag, body in _IN_A_TAG.items():
        many = [{"$": tag, "v": body(n)} for n in range(COUNT)]
        found |= {f"{tag}: many": many, f"{tag}: in a set": {"$": "set", "v": many}}
        found[f"{tag}: as keys"] = {"$": "dict", "v": [[one, 1] for one in many]}
        found[f"{tag}: long"] = {"$": tag, "v": "1" * SIZE * 5}
    return found


def hostile_pictures() -> dict[str, Encoded]:
    """Return values with pictures, or with places for pictures, as a worker may claim them."""
    broken = {"$": "bytes", "v": b64encode(b"BM").decode()}
    chunks = png(4, 4)[:33] + b"\0\0\0\0abcd\0\0\0\0" * (SIZE // 2)
    segments = b"\xff\xd8\xff" + b"\xe0\0\2\xff" * SIZE
    return {
        "many that no model reads": [[[broken] * 8] * 50] * 50,
        "many places": [[[1] * 100] * 90] * 90,
        "a PNG of many chunks": {"$": "bytes", "v": b64encode(chunks).decode()},
        "a JPEG of many segments": {"$": "bytes", "v": b64encode(segments).decode()},
        "a TIFF that is long": {"$": "bytes", "v": b64encode(b"II*\0" * SIZE).decode()},
    }


def covered_tags() -> set[str]:
    """Return the tags that have hostile input."""
    return {*_IN_A_TAG}


def requests() -> set[str]:
    """Return every request that a worker can make, from the source of their handler."""
    tree = ast.parse(dedent(inspect.getsource(WorkerApi.__call__)))
    patterns = [node for node in ast.walk(tree) if isinstance(node, ast.MatchValue)]
    answered = {str(one.value.value) for one in patterns if isinstance(one.value, ast.Constant)}
    return answered | {"debug", "secret", *FETCHES}  # the channel answers these itself


_BIG: Final = {"$": "set", "v": [_collide(n) for n in range(COUNT)]}
REQUESTS: Final[Mapping[str, Mapping[str, Encoded]]] = {
    "progress": {"done": 1, "total": 2, "note": "\x00" * SIZE},
    "call": {"function": "count_vowels" * 1_000, "arguments": {"text": _BIG}},
    "fetch": {"url": "http://" + "a." * SIZE, "method": "GET" * 1_000, "headers": [["a", "b" * SIZE]] * 9},
    "fetch_send": {"stream": "x" * SIZE, "data": {"$": "bytes", "v": "QUFB" * SIZE}},
    "fetch_read": {"stream": _BIG, "size": 10**400},
    "fetch_close": {"stream": "x" * SIZE},
    "secret": {"name": "K" * SIZE},
    "ask": {"question": "a\u200b" * 500, "type": "Decimal", "default": "9" * SIZE * 5, "after": 0},
    "now": {"x": _BIG},
    "call_key": {"x": _BIG},
    "state": {"value": _BIG, "version": 10**400},
    "memory": {"act": "replace", "block": "human" * 1_000, "old": "a " * SIZE, "new": "b" * SIZE},
    "debug": {"kind": "stop", "frames": [["f", 1, "g"]] * SIZE, "locals": [["n", "x" * 99]] * 1_000},
}  # fmt: skip
