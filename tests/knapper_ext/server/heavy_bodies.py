"""Requests of at most 2 MiB that would cost a server far more than their sender."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final
from urllib.parse import quote

CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
MCP: Final = "/mcp"
MESSAGES: Final = "/api/v1/agents/main/messages"
CALL: Final = "/api/v1/functions/slugify/call"
COMMANDS: Final = "/api/v1/commands"
IMPORT: Final = "/api/v1/agents/import"
_MOST: Final = 2 << 20
_JSON: Final = "Content-Type: application/json"


@dataclass(frozen=True)
class Heavy:
    """One request."""

    name: str
    path: str
    body: bytes
    method: str = "POST"
    headers: tuple[str, ...] = ()


def cut(text: str, part: str, end: str) -> bytes:
    """Return a body that starts with the text, repeats the part as often as it fits, and ends."""
    room = _MOST - len(text.encode()) - len(end.encode())
    count = room // len(part.encode())
    return (text + (part * count).rstrip(",") + end).encode()


@cache
def _entries(value: str) -> str:
    return ",".join(f'"k{number}":{value}' for number in range(_MOST // len(f'"k":{value},')))


def keys(before: str, after: str, value: str = "0") -> bytes:
    """Return a body with an object of as many keys as fit."""
    room = _MOST - len(before) - len(after)
    return (before + _entries(value)[:room].rpartition(",")[0] + after).encode()


def errors_by_the_hundred_thousand() -> Iterator[Heavy]:
    """Yield bodies in which each element is wrong, for every endpoint."""
    said = '{"model":"main","messages":[{"role":"user","content":"a"}],'
    output = '[{"type":"function_call_output","call_id":"a","output":['
    rows = (
        ("chat: content", CHAT, '{"model":"main","messages":[{"role":"user","content":[', "]}]}"),
        ("chat: messages", CHAT, '{"model":"main","messages":[', "]}"),
        ("chat: tools", CHAT, f'{said}"tools":[', "]}"),
        (
            "chat: tools of the choice",
            CHAT,
            f'{said}"tool_choice":{{"type":"allowed_tools","tools":[',
            "]}}",
        ),
        (
            "chat: calls",
            CHAT,
            '{"model":"main","messages":[{"role":"assistant","tool_calls":[',
            "]}]}",
        ),
        ("responses: input", RESPONSES, '{"model":"main","input":[', "]}"),
        ("responses: output", RESPONSES, f'{{"model":"main","input":{output}', "]}]}"),
        ("command: words", COMMANDS, '{"words":[', "]}"),
        ("mcp: a batch", MCP, "[", "]"),
        ("trace: lines", "/api/v1/functions/slugify/trace", '{"expected":[', "]}"),
    )
    for (name, path, before, after), part in product(rows, ("{},", "0,")):
        yield Heavy(f"{name} of {part}", path, cut(before, part, after))
    yield Heavy(
        "command: texts of numbers", COMMANDS, keys('{"words":["functions","list"],"texts":{', "}}")
    )


def unknown_keys() -> Iterator[Heavy]:
    """Yield objects of 180,000 unknown keys."""
    for path in (CHAT, RESPONSES, MCP, MESSAGES, COMMANDS, IMPORT, "/api/v1/functions/check"):
        yield Heavy(f"unknown keys at {path}", path, keys("{", "}"))
    for where in ("metadata", "response_format", "logit_bias"):
        begin = f'{{"model":"main","messages":[{{"role":"user","content":"a"}}],"{where}":{{'
        yield Heavy(f"chat: {where} of unknown keys", CHAT, keys(begin, "}}"))
    yield Heavy(
        "chat: a message of unknown keys",
        CHAT,
        keys('{"model":"main","messages":[{"role":"user",', "}]}"),
    )
    yield Heavy("arguments of unknown keys", CALL, keys('{"arguments":{', "}}"))
    begin = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slugify","arguments":{'
    yield Heavy("mcp: arguments of unknown keys", MCP, keys(begin, "}}}"))


def documents() -> Iterator[Heavy]:
    """Yield agents' files with wrong parts, in a body of at most 2 MiB."""
    for list_name, part in product(("turns", "passages"), ("{},", "0,")):
        inner = f'{{"format":"knapper-agent-1","agent":{{"name":"a"}},"{list_name}":['
        text = inner + (part * ((_MOST - 2_000) // len(part))).rstrip(",") + "]}"
        yield Heavy(
            f"a document with {list_name} of {part}",
            IMPORT,
            json.dumps({"document": text}).encode(),
        )


def others() -> Iterator[Heavy]:
    """Yield other tricks of JSON, Unicode and the rest of a request."""
    say = '{"model":"main","messages":[{"role":"user","content":"'
    yield Heavy("lists in lists", MESSAGES, b"[" * _MOST)
    yield Heavy("objects in objects", CHAT, b'{"a":' * (_MOST // 5))
    yield Heavy("one number of digits", MESSAGES, b'{"text":' + b"9" * (_MOST - 20) + b"}")
    yield Heavy(
        "numbers of 4,300 digits", CALL, cut('{"arguments":{"a":[', "9" * 4_299 + ",", "]}}")
    )
    yield Heavy("the same key", CHAT, cut("{", '"a":0,', "}"))
    yield Heavy("halves of surrogates", CHAT, cut(say, "\\ud83d", '"}]}'))
    yield Heavy("quotes in a text", CHAT, cut(say, '\\"\\\\', '"}],"n":2}'))
    yield Heavy(
        "a ligature that becomes eighteen letters",
        MESSAGES,
        cut('{"key":"', "\ufdfa", '","text":"a"}'),
    )
    yield Heavy("a key of 2 MiB", MESSAGES, cut('{"', "k", '":1}'))
    yield Heavy("not JSON, at its end", CHAT, cut('{"model":"main","messages":[', "{},", ""))
    yield Heavy("line breaks, then an error", CHAT, b"\n" * (_MOST - 1) + b"!")
    yield Heavy("a file of base64 that is none", "/api/v1/agents/main/sources",
                cut('{"name":"a","data":"', "=", '"}'))  # fmt: skip


def heads() -> Iterator[Heavy]:
    """Yield requests with heads of the maximum length, and one whose body is a form."""
    query = "&".join(f"k{n}=" for n in range(4_000))
    yield Heavy("parameters in an address", f"/api/v1/agents?{query}", b"", "GET")
    yield Heavy("headers", "/api/v1/agents", b"", "GET", tuple(f"x{n}: a" for n in range(3_000)))
    yield Heavy(
        "a quoted cookie", "/api/v1/agents", b"", "GET", ('Cookie: a="' + "\\\\" * 15_000 + '"',)
    )
    form = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    many = form * (_MOST // len(form))
    yield Heavy(
        "a form of many parts",
        MESSAGES,
        many,
        headers=("Content-Type: multipart/form-data; boundary=x",),
    )


def tools() -> Iterator[Heavy]:
    """Yield client functions with schemas of any size."""
    begin = '{"model":"main","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":'
    properties = '{"name":"f","parameters":{"type":"object","properties":{'
    yield Heavy(
        "tools: a schema of 100,000 properties", CHAT, keys(begin + properties, "}}}}]}", "{}")
    )
    yield Heavy(
        "tools: a pattern", CHAT, cut(begin + properties + '"a":{"pattern":"', "(a*)*", '"}}}}}]}')
    )
    yield Heavy("tools: an enum", CHAT, cut(begin + properties + '"a":{"enum":[', "1,", "]}}}}}]}"))
    doubled = ",".join(
        f'"a{n}":{{"anyOf":[{{"$ref":"#/$defs/a{n + 1}"}},{{"$ref":"#/$defs/a{n + 1}"}}]}}'
        for n in range(30)
    )
    doubled = f'"type":"object","properties":{{"a":{{"$ref":"#/$defs/a0"}}}},"$defs":{{{doubled},"a30":{{}}}}'
    chained = ",".join(f'"a{n}":{{"$ref":"#/$defs/a{n + 1}"}}' for n in range(1_200))
    chained = f'"type":"object","properties":{{"a":{{"$ref":"#/$defs/a0"}}}},"$defs":{{{chained},"a1200":{{}}}}'
    for name, schema in (("doubled", doubled), ("in a chain", chained)):
        described = f'{{"name":"f","strict":true,"parameters":{{{schema}}}}}'
        yield Heavy(f"tools: references {name}", CHAT, f"{begin}{described}}}]}}".encode())
    deep = '{"anyOf":[' * 25 + "{}" + "]}" * 25
    yield Heavy(
        "tools: deep schemas",
        CHAT,
        cut(begin + properties + '"a":{"anyOf":[', deep + ",", "]}}}}}]}"),
    )


def conversations() -> Iterator[Heavy]:
    """Yield client histories of the maximum length."""
    pairs = '{"role":"user","content":"a"},{"role":"assistant","content":"b"},'
    yield Heavy("a long conversation", CHAT, _conversation([pairs] * 4_999))
    call = (
        '{"role":"assistant","tool_calls":[{"id":"c%d","function":{"name":"f","arguments":"{}"}}]},'
    )
    yield Heavy("open calls", CHAT, _conversation([call % n for n in range(9_900)]))


def _conversation(rows: list[str]) -> bytes:
    text, size = [], 0
    for row in rows:
        size += len(row)
        if size > _MOST - 200:
            break
        text.append(row)
    return (
        '{"model":"main","messages":[' + "".join(text) + '{"role":"user","content":"a"}]}'
    ).encode()


@dataclass(frozen=True)
class Crowd:
    """Several copies of one request at once."""

    name: str
    heavy: Heavy
    count: int


def crowds() -> Iterator[Crowd]:
    """Yield requests that are harmless one at a time."""
    ready = {
        heavy.name: heavy for heavy in (*others(), *conversations(), *unknown_keys(), *tools())
    }
    for name in (
        "open calls",
        "numbers of 4,300 digits",
        "mcp: arguments of unknown keys",
        "a pattern",
    ):
        heavy = ready.get(name) or ready[f"tools: {name}"]
        yield Crowd(f"12 × {name}", heavy, 12)
    for path in ("/api/v1/doctor", "/api/v1/tree", "/api/v1/functions/search?need=a"):
        yield Crowd(f"20 × {path}", Heavy(path, path, b"", "GET"), 20)


MANY: Final = '''
def many(n: int) -> list[int]:
    """Return the numbers below n.

    Args:
        n: How many.

    Examples:
        >>> many(2)
        [0, 1]
        >>> many(3)
        [0, 1, 2]
    """
    return list(range(n))
'''
PUT_MANY: Final = Heavy(
    "put", "/api/v1/functions/many", json.dumps({"source": MANY, "module": "big"}).encode(), "PUT"
)


def large_answers() -> Iterator[Heavy]:
    """Yield small requests with large responses, for each endpoint that calls functions; `many` must exist."""
    arguments = {"n": 100_000}
    for verb in ("call", "test", "trace"):
        path = f"/api/v1/functions/many/{verb}"
        yield Heavy(
            f"{verb}: a hundred thousand", path, json.dumps({"arguments": arguments}).encode()
        )
    words = ["functions", "call", "many", "--args", json.dumps(arguments)]
    yield Heavy("command: a hundred thousand", COMMANDS, json.dumps({"words": words}).encode())
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "many", "arguments": arguments, "_meta": meta}
    head = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: many")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    yield Heavy("mcp: a hundred thousand", MCP, json.dumps(body).encode(), headers=(*head, _JSON))


def sources() -> Iterator[Heavy]:
    """Yield function sources of the maximum length; a verdict on one repeats it."""
    most = 199_900
    texts = {
        "statements": "a=1\n" * (most // 4),
        "fields": "x = [" + "f'{a}'," * (most // 7 - 10) + "]",
        "lists": "x = " + "[" * 90 + "1," * (most // 2 - 200) + "]" * 90,
        "unions": "def f(a: " + "int | " * (most // 6 - 20) + "int) -> int:\n    return 1\n",
        "ligatures": "x = '" + "\ufdfa" * (most // 3) + "'",
    }
    for name, text in texts.items():
        yield Heavy(
            f"put: {name}", "/api/v1/functions/f", json.dumps({"source": text}).encode(), "PUT"
        )
        check = {"source": text, "name": "f"}
        yield Heavy(f"check: {name}", "/api/v1/functions/check", json.dumps(check).encode())
        words = {"words": ["functions", "create", "f", "-"], "texts": {"-": text}}
        yield Heavy(f"command: {name}", COMMANDS, json.dumps(words).encode())


def questions() -> Iterator[Heavy]:
    """Yield questions that may name times in any language."""
    for part in ("\u12db\u122c 12 ", "\u00e9 1 2 3 ", "\u00e9.,:-/", "\u00e9 may march "):
        text = (part * 1_000)[:1_990]
        path = f"/api/v1/agents/main/search?where=both&query={quote(text)}"
        yield Heavy(f"search for {part}", path, b"", "GET")
        words = {"words": ["memory", "search", text]}
        yield Heavy(f"command: search for {part}", COMMANDS, json.dumps(words).encode())


def all_of_them() -> list[Heavy]:
    """Return all of them."""
    return [
        *errors_by_the_hundred_thousand(),
        *unknown_keys(),
        *documents(),
        *others(),
        *heads(),
        *tools(),
        *conversations(),
        *questions(),
    ]
