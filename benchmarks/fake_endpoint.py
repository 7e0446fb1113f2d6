"""An instant endpoint for benchmarks, in a subprocess: N calls of `add`, then a final text.

N is part of the path: http://127.0.0.1:PORT/50/v1 requests fifty calls, one per reply. It keeps no state (it counts the
answers in the request), parses no JSON, and has all its answers prepared. It also supports agents that send results as
user messages and end with a function call, as smolagents does.
"""

import asyncio
import json
from contextlib import AbstractContextManager
from typing import Any

from . import served

_HEAD = {"id": "chatcmpl-0", "created": 0, "model": "fake"}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def running() -> AbstractContextManager[str]:
    """Yield the address of a running endpoint, without the number of calls: add `/50/v1`."""
    return served.running("benchmarks.fake_endpoint")


async def _answer(head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
    wanted = head.split(b" ", 2)[1].split(b"/")[1]
    if not wanted.isdigit():  # the client probes for the kind of server
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return
    calls = int(wanted)
    done = body.count(b'"tool_call_id"') or body.count(b'"text":"Observation:')
    number = done if done < calls else None
    function = "final_answer" if number is None and b'"name":"final_answer"' in body else "add"
    writer.write(_response(number, function, streamed=b'"stream":true' in body))


def _response(n: int | None, name: str, *, streamed: bool) -> bytes:
    """Return the response that requests the n-th call, or the final one."""
    message: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if n is not None or name != "add":
        arguments = {"answer": "Done."} if n is None else {"a": n, "b": 1}
        function = {"name": name, "arguments": json.dumps(arguments)}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call_{n}", "type": "function", "function": function}],
        }
    finish = "tool_calls" if "tool_calls" in message else "stop"
    body, kind = (_events if streamed else _whole)(message, finish)
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def _whole(message: dict[str, Any], finish: str) -> tuple[bytes, str]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    return json.dumps(whole).encode(), "application/json"


def _events(message: dict[str, Any], finish: str) -> tuple[bytes, str]:
    calls = [{"index": 0, **call} for call in message.pop("tool_calls", [])]
    delta = message | {"tool_calls": calls} if calls else message
    choices = (
        [{"index": 0, "delta": delta, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": finish}],
    )
    chunks = [{**_HEAD, "object": "chat.completion.chunk", "choices": choice} for choice in choices]
    chunks.append({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n", "text/event-stream"


if __name__ == "__main__":
    served.serve(_answer)
