"""A host that believes its workers, for control runs: its fate shows what the strict reader prevents."""

import asyncio
import json
import math
import pickle
import time
from base64 import b64decode
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from sandbox.inside.jobs import compile_module
from sandbox.policy import Limits
from sandbox.processes.pool import Pool, kernel_limits
from sandbox.wire.caps import MOST_MESSAGE
from sandbox.wire.protocol import pack
from sandbox.wire.values import encode
from tests.attacks.rows import Row, modules
from tests.attacks.world import World
from tests.kit.pace import slowness

_MOST: Final = 1 << 28
_SLOW_S: Final = 0.3
_ENOUGH_S: Final = 3.0


class Misled(Exception):
    """What the host did that it must not do."""


async def believe(pool: Pool, there: World, row: Row) -> dict[str, str]:
    """Run a row and believe its answers; return, by kind, how the host was misled."""
    data = await _heard(pool, there, row)
    began = time.process_time()
    try:
        _take(data)
    except Misled as error:
        return {"misled": str(error)}
    except Exception as error:  # noqa: BLE001 - any failure counts
        return {"misled": f"it falls over: {error!r}"[:200]}
    return {"misled": "it is held up"} if time.process_time() - began > _SLOW_S * slowness() else {}


async def _heard(pool: Pool, there: World, row: Row) -> bytes:
    """Return all that the row's worker sends after it reported that it is confined."""
    worker = await pool.take(kernel_limits(Limits()))
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_recv(worker.channel, 1 << 16)
        await loop.sock_sendall(worker.channel, pack(_job(there, row)))
        data = bytearray()
        async with asyncio.timeout(_ENOUGH_S):
            while piece := await loop.sock_recv(worker.channel, 1 << 16):
                data += piece
    except TimeoutError:
        pass
    finally:
        pool.give_back(worker)
    return bytes(data)


def _job(there: World, row: Row) -> dict[str, Any]:
    sent = {name: compile_module(each.text, each.path, name) for name, each in modules().items()}
    arguments = encode({"world": there.told})
    return {
        "kind": "call",
        "module": row.family,
        "function": row.name,
        "arguments": arguments,
        "modules": sent,
    }


def _take(data: bytes) -> None:
    size = int.from_bytes(data[:4], "big")
    if size > _MOST:
        raise Misled(f"it makes room for {size} bytes")
    body, rest = data[4 : 4 + size], data[4 + size :]
    if len(data) < 4 or len(body) < size:
        raise Misled("it waits for what never comes")
    if rest:
        raise Misled("it has two answers and believes the first")
    frame = pickle.loads(body) if body[:1] == b"\x80" else json.loads(body)
    _ANSWERS[frame["kind"]](frame)


def _returned(frame: dict[str, Any]) -> None:
    value = _value(frame["value"])
    json.dumps(value, default=str, ensure_ascii=False).encode()
    eval(frame["shown"] or "0")
    if frame.get("memory", 0) < 0:
        raise Misled("it counts less than no memory")


def _raised(frame: dict[str, Any]) -> None:
    if len(frame["message"]) > MOST_MESSAGE:
        raise Misled("it takes a message of any length")
    for path, line, where, names in frame["frames"]:
        f"{path} {line} {where} {names}"


def _value(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            raise Misled("it computes with what is no number")
        case {"$": str(tag), "v": body}:
            return _TAGS[tag](body)
        case {"$": _}:
            raise Misled("it takes a tag that is none")
        case list():
            return [_value(each) for each in value]
        case _:
            return value


def _unpickled(body: str) -> None:
    pickle.loads(b64decode(body))
    raise Misled("it does what a worker wrote")


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if value.adjusted() > 10**6:
        raise Misled("it would write a number out for ever")
    return value


_TAGS: Final[dict[str, Any]] = {
    "pickle": _unpickled,
    "set": lambda body: set(map(_value, body)),
    "dict": lambda body: {_value(key): _value(each) for key, each in body},
    "Decimal": _decimal,
    "datetime": lambda body: __import__("datetime").datetime.fromisoformat(body),
}
_ANSWERS: Final[dict[str, Any]] = {
    "returned": _returned,
    "raised": _raised,
    "module": lambda frame: Path(f"functions/{frame['module'].strip()}.py").read_text(),
    "request": lambda frame: frame["arguments"]["function"],
}
