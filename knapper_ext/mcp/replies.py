"""What servers send, put into the form that the package `mcp` takes; plain values, before the package reads them.

The package refuses a whole message for one odd part of it, and waits for an answer that it refused. So whatever can be
understood is understood here: an answer is found by its number or by what waits for one, an error is an error however
it is written, a result that came is a result, and each row of a list of tools stands alone. An answer that says nothing
usable becomes an error, which ends its request at once. The bounds are those of the message, which was parsed before.
"""

import json
import math
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from agent_core.base.pictures import HEAD_BYTES, MAX_PICTURES, is_picture
from agent_core.base.untrusted import one_line, shorten

ROWS: Final = "rows"
"""The key, in `_meta` of a list of tools, of its rows as they were sent."""
IMAGES: Final = "images"
"""The key, in `_meta` of a result, of the content of its pictures, in base64."""
VALUE: Final = "value"
"""The key, in `_meta` of a result, of its structured content, for which the package knows fewer forms."""
_VERSION: Final = (
    "2025-11-25"  # of a server that names none: all versions with a handshake share one form
)
_NO_CODE: Final = -32603  # an internal error
_OF_THE_PROTOCOL: Final = range(-32099, -32019)  # errors that the package may act on
_MAX_SHOWN: Final = 2_000  # characters of an odd part
_MAX_ERROR: Final = 20_000
_NUMBER: Final = re.compile(r'"id"\s*:\s*"?(\d{1,15})"?\s*[,}]')


def answered_number(message: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the number of the request that a message answers, as text; empty if it names none."""
    match message.get("id"):
        case bool():
            return ""
        case int(number):
            return str(number)
        case float(number) if number.is_integer():
            return str(int(number))
        case str(number):
            return number
    return ""


def is_answer(message: object) -> bool:
    """Check whether a message answers something: it is no request and no notification."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and bool(message.keys() & {"id", "result", "error"})
    )


def unwrapped(message: object) -> object:
    """Return the message of a list of one, as some servers send it."""
    return message[0] if isinstance(message, list) and len(message) == 1 else message


def finite(value: Any) -> Any:  # Any: JSON, with numbers that JSON does not have
    """Return a value with `null` in place of NaN and infinity."""
    match value:
        case dict():
            return {key: finite(part) for key, part in value.items()}
        case list():
            return [finite(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    return value


def number_in(head: str) -> str:
    """Return the number that an unreadable message seems to answer, by its beginning; empty if it seems none."""
    match = _NUMBER.search(head) if head.lstrip().startswith("{") and '"jsonrpc"' in head else None
    return match[1] if match and '"method"' not in head else ""


def as_question(message: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return a request or notification in the form that the package takes."""
    kept: dict[str, Any] = {"jsonrpc": "2.0", "method": message["method"]}  # Any: JSON
    if message.get("id") is not None:
        kept["id"] = message["id"]
    if isinstance(message.get("params"), dict):
        kept["params"] = message["params"]
    return kept


def as_answer(
    message: Mapping[str, Any], number: int | str, method: str, *, is_refusal: bool = False
) -> dict[str, Any]:  # Any: JSON
    """Return the answer to a request of this number and method in the form that the package takes.

    With `is_refusal`, it came with a status that says that something before the server refused, so that an error is
    not the result of a call.
    """
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}  # Any: JSON
    error, result = message.get("error"), message.get("result")
    has_error = error is not None and error is not False and not (result and not error)
    if not has_error:
        if "result" not in message and "error" not in message:
            error = f"its answer has neither a result nor an error: {_text_of(message)}"
        else:
            read = _result(result, method)
            if isinstance(read, dict):
                return {**answer, "result": read}
            error = read
    error = _error(error)
    if method == "tools/call" and not is_refusal and error["code"] not in _OF_THE_PROTOCOL:
        return {
            **answer,
            "result": _call_result({"content": _text_of_error(error), "isError": True}),
        }
    return {**answer, "error": error}


def _error(error: object) -> dict[str, Any]:  # Any: JSON
    about = error if isinstance(error, dict) else {}
    code, message = about.get("code"), about.get("message")
    if isinstance(code, str) and re.fullmatch(r"-?\d{1,9}", code):
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool):
        code = _NO_CODE
    if not isinstance(message, str) or not message:
        message = shorten(_text_of(error), _MAX_ERROR) or "an error without a message"
    data = {"data": about["data"]} if about.get("data") is not None else {}
    return {"code": code, "message": message, **data}


def _text_of_error(error: Mapping[str, Any]) -> str:  # Any: JSON
    text = str(error["message"])
    return f"{text}\n{shorten(_text_of(error['data']), _MAX_ERROR)}" if "data" in error else text


def _result(result: object, method: str) -> dict[str, Any] | str:  # Any: JSON
    """Return a result, or why it is none."""
    match method:
        case "tools/call":
            return _call_result(result)
        case "tools/list":
            return _list_of_tools(result)
    if result is None or result == []:
        result = {}
    if not isinstance(result, dict):
        return f"its answer to `{one_line(method, 80)}` is no object, but {one_line(_text_of(result), 80)}"
    return _greeting(result) if method == "initialize" else result


def _greeting(result: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return an answer to `initialize`, of which only the version matters here."""
    about, version = result.get("serverInfo"), result.get("protocolVersion")
    about = about if isinstance(about, dict) else {}
    names = {
        key: about[key] if isinstance(about.get(key), str) else "" for key in ("name", "version")
    }
    return {
        "protocolVersion": version if isinstance(version, str) and version else _VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": names,
    }


def _list_of_tools(result: object) -> dict[str, Any] | str:  # Any: JSON
    """Return a page of tools: the rows as they were sent, and for the package no more of each than it needs."""
    page = result if isinstance(result, dict) else {"tools": result}
    rows = page.get("tools")
    if rows is None or rows == {}:
        rows = []
    if not isinstance(rows, list):
        return f"its list of tools is no list, but {one_line(_text_of(rows), 80)}"
    cursor = page.get("nextCursor")
    if isinstance(cursor, int) and not isinstance(cursor, bool):
        cursor = str(cursor)
    more = {"nextCursor": cursor} if cursor and isinstance(cursor, str) else {}
    named = (row for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str))
    tools = [
        {"name": row["name"], "inputSchema": _headers_of(row.get("inputSchema"))} for row in named
    ]
    about = {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }  # the package caches nothing here
    return {**about, **more, "tools": tools, "_meta": {ROWS: rows}}


def _headers_of(schema: object) -> dict[str, Any]:  # Any: JSON Schema
    """Return the part of a tool's schema that the package reads: parameters that it also sends as headers."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    parts = properties.items() if isinstance(properties, dict) else ()
    return {
        "type": "object",
        "properties": {name: part for name, part in parts if isinstance(part, dict)},
    }


def _call_result(result: object) -> dict[str, Any]:  # Any: JSON
    """Return the result of a call as one text, with its structured content if it has any."""
    if isinstance(result, dict) and result.get("resultType") not in (None, "complete"):
        return result  # not the end of the call
    about = result if isinstance(result, dict) else {"content": result}
    value = about.get(
        "structuredContent", about.get("toolResult")
    )  # the latter in the first version of the protocol
    if not about.keys() & {"content", "structuredContent", "toolResult"}:
        value = {
            key: part
            for key, part in about.items()
            if key not in ("_meta", "isError", "resultType")
        } or None
    content = about.get("content")
    text = "\n".join(map(_block, content if isinstance(content, list) else [content]))
    if not text and value is not None:
        text = _text_of(value)
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "isError": about.get("isError") in (True, "true", "True"),
        "_meta": {**({} if value is None else {VALUE: value}), **_images(content)},
    }


def _images(content: object) -> dict[str, list[str]]:
    """Return the pictures among the parts of a result; `_block` has the words for each."""
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    images = [part.get("data") for part in parts if part.get("type") == "image"]
    texts = [image for image in images if isinstance(image, str) and is_picture(_beginning(image))]
    return {IMAGES: texts[:MAX_PICTURES]} if texts else {}


def _block(block: object) -> str:
    """Return a part of a result as text; of what is no text, what it is."""
    if not isinstance(block, dict):
        return _text_of(block)
    kind, text, source = block.get("type"), block.get("text"), block
    if kind == "resource" and isinstance(block.get("resource"), dict):
        source = block["resource"]
        text = source.get("text")
    if kind == "resource_link":
        return f"[a link: {_about(block, 'title', 'name', 'uri', 'mimeType', 'description')}]"
    if isinstance(text, str):
        return text
    if kind == "text":
        return _text_of(text)
    data = source.get("blob", source.get("data"))
    if not isinstance(data, str):
        return shorten(_text_of(block), _MAX_SHOWN)
    size = f"{len(data) * 3 // 4:,} bytes"
    about = _about(source, "uri", "mimeType") or "unknown kind"
    hidden = "" if kind == "image" and is_picture(_beginning(data)) else ", which is not shown"
    return f"[{one_line(str(kind), 80)} of {about}, {size}{hidden}]"


def _beginning(data: str) -> bytes:
    """Return the first bytes of a content in base64, or none."""
    with suppress(ValueError):
        return b64decode(data[: 4 * HEAD_BYTES], validate=True)
    return b""


def _about(block: Mapping[str, Any], *keys: str) -> str:  # Any: JSON
    return ", ".join(_facts(block, keys))


def _facts(block: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:  # Any: JSON
    for key in keys:
        if isinstance(block.get(key), str) and block[key]:
            yield shorten(block[key], _MAX_SHOWN)


def _text_of(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
