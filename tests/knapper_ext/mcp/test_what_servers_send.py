"""What servers of others really send: what can be understood is used, and one odd part takes nothing else away."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from mcp_types import JSONRPCError

from agent_core import KnapperError, Workspace
from knapper.shell.cli import main
from knapper_ext.mcp.servers import ServerBook, ServerEntry, read_tools
from knapper_ext.mcp.wire import Intake
from tests.kit.http import Answer, Request, Server

from .hostile import EVENTS, JSON
from .test_tools_of_strangers import STRANGER, TEXT, approved, called, does, tool

MAX_S = 15.0  # of all odd answers together: each ends at once
DRAFT = "http://json-schema.org/draft-0{}/schema#"


def of(**properties: Any) -> dict[str, Any]:  # Any: JSON Schema
    return {"type": "object", "properties": properties}


TEXTS = {"type": "array", "items": {"type": "string"}}
# By name: the schema, arguments that it takes, and arguments that it refuses.
DRAFTS: dict[str, tuple[object, dict[str, Any], dict[str, Any] | None]] = {  # Any: JSON
    "list_of_items": (
        {
            "$schema": DRAFT.format(7),
            **of(x={"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}),
        },
        {"x": [1, "a"]},
        {"x": [{}, "a"]},
    ),
    "no_more_items": (
        of(x={"type": "array", "items": [{"type": "integer"}], "additionalItems": False}),
        {"x": [1]},
        {"x": [1, 2]},
    ),
    "exclusive_true": (
        of(x={"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
        {"x": 1},
        {"x": 0},
    ),
    "exclusive_false": (
        of(x={"type": "integer", "maximum": 9, "exclusiveMaximum": False}),
        {"x": 9},
        {"x": 10},
    ),
    "required_of_itself": (of(x={"type": "string", "required": True}), {"x": "a"}, {}),
    "required_as_text": ({**of(x={"type": "string"}), "required": "x"}, {"x": "a"}, {}),
    "required_twice": ({**of(x={"type": "string"}), "required": ["x", "x"]}, {"x": "a"}, {}),
    "dependencies": (
        {**of(x=True, y=True), "dependencies": {"x": ["y"]}},
        {"x": 1, "y": 2},
        {"x": 1},
    ),
    "definitions": (
        {
            **of(x={"$ref": "#/definitions/One%20part"}),
            "definitions": {"One part": {"type": "integer"}},
        },
        {"x": 1},
        {"x": {}},
    ),
    "a_reference_alone": (
        {
            "$schema": DRAFT.format(7),
            "$ref": "#/definitions/All",
            "definitions": {"All": of(x={"type": "integer"})},
        },
        {"x": 1},
        {"x": {}},
    ),
    "next_to_a_reference": (
        {
            "$schema": DRAFT.format(7),
            **of(x={"$ref": "#/definitions/a", "maxLength": 1}),
            "definitions": {"a": {"type": "string"}},
        },
        {"x": "abc"},
        {"x": {}},
    ),
    "into_itself": (
        of(x={"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}}),
        {"x": {"x": {}}},
        {"x": 1},
    ),
    "an_anchor": (
        {**of(x={"$ref": "#part"}), "$defs": {"p": {"$anchor": "part", "type": "integer"}}},
        {"x": 1},
        {"x": {}},
    ),
    "its_own_address": (
        {
            "$id": "https://e.org/s",
            **of(x={"$ref": "https://e.org/s#/$defs/p"}),
            "$defs": {"p": {"type": "integer"}},
        },
        {"x": 1},
        {"x": {}},
    ),
    "nullable": (of(x={"type": "string", "nullable": True, "enum": ["a"]}), {"x": None}, {"x": {}}),
    "large_types": (
        {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}},
        {"x": 1},
        {"x": {}},
    ),
    "nulls": (
        {
            **of(x={"type": "string", "description": None, "enum": None}),
            "required": None,
            "additionalProperties": None,
        },
        {"x": "a"},
        {"x": {}},
    ),
    "one_empty_value": ({"type": "object", "properties": [], "required": {}}, {}, None),
    "a_part_that_is_empty": (of(x=[], y=None), {"x": 1, "y": 2}, None),
    "no_schema": (None, {}, None),
    "an_empty_schema": ({}, {}, None),
    "without_a_type": ({"properties": {"x": {"type": "integer"}}}, {"x": 1}, {"x": {}}),
    "another_dialect": (
        {"$schema": "https://spec.openapis.org/oas/3.1/dialect/base", **TEXT},
        {"text": "a"},
        {},
    ),
    "other_patterns": (
        of(x={"type": "string", "pattern": r"^\p{L}+(?<year>[0-9])$"}),
        {"x": "a1"},
        {"x": {}},
    ),
    "keywords_of_others": (
        of(x={"type": "integer", "x-order": {"$ref": "no/file.json"}, "example": 3}),
        {"x": 1},
        {"x": {}},
    ),
}
UNCHECKED: dict[str, tuple[dict[str, Any], str]] = {  # Any: JSON Schema
    "enum-as-text": (of(x={"type": "string", "enum": "a"}), "properties.x.enum"),
    "any": (of(x={"type": "any"}), "properties.x.type"),
    "bounds-as-text": (of(x={"type": "integer", "minimum": "0"}), "properties.x.minimum"),
    "less-than-nothing": (of(x={"type": "string", "minLength": -1}), "properties.x.minLength"),
    "part-as-text": (of(x="string"), "properties.x"),
    "parts-as-list": ({"type": "object", "properties": [{"name": "x"}]}, "properties"),
    "choice-as-object": (of(x={"anyOf": {"type": "string"}}), "properties.x.anyOf"),
    "required-as-numbers": ({**TEXT, "required": [1]}, "required"),
}


async def test_a_schema_is_read_by_the_draft_that_it_names(workspace: Workspace) -> None:
    approved(
        workspace.root,
        *(tool(name, schema=schema or {}) for name, (schema, *_) in DRAFTS.items()),
        says="fine",
    )
    does(
        workspace.root,
        *(tool(name, schema=schema) for name, (schema, *_) in DRAFTS.items()),
        says="fine",
    )
    for name, (_, taken, refused) in DRAFTS.items():
        assert await called(workspace, name, **taken) == ("returned", "fine"), name
        if refused is not None:
            with pytest.raises(KnapperError, match=r"expected|is missing"):
                await called(workspace, name, **refused)


@pytest.mark.parametrize(
    ("schema", "place"), [pytest.param(*row, id=name) for name, row in UNCHECKED.items()]
)
def test_a_part_of_a_schema_that_cannot_be_read_is_said_and_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: dict[str, Any], place: str
) -> None:
    (listed,) = read_tools([tool("odd", schema=schema)]).tools.values()
    assert listed.schema.unchecked == (place,)
    assert listed.to_json()["parameters"] == schema, "the approval is for what was sent"


def test_each_tool_of_a_list_stands_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "knapper.toml").touch()
    odd = [
        {"name": "bare"},
        {"name": "worded", "description": 5, "inputSchema": TEXT},
        {"name": "far", "inputSchema": {"$ref": "other.json"}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"description": "nameless"},
        "no tool",
        tool("twice"),
        tool("twice", "Else."),
        tool("echo"),
        tool("echo"),
    ]
    path = does(tmp_path, tools=odd, page={"nextCursor": ""})
    command = ["--", "python", str(STRANGER), str(path)]
    assert main(["mcp", "add", "s", "--unconfined", "--json", "-C", str(tmp_path), *command]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["tools"]) == ["bare", "worded", "echo"]
    assert shown["problems"] == [
        "row 5 of its list is no tool with a name",
        "row 6 of its list is no tool with a name",
        "`far`: its schema refers to another document, to nothing, or to itself without end",
        "`text`: its schema describes no object",
        "`twice`: two tools have this name",
    ]


@pytest.mark.parametrize(
    ("tools", "code", "says"),
    [
        pytest.param(
            [tool("a", schema={"type": "string"})],
            1,
            "No tool of it can be used",
            id="all-left-out",
        ),
        pytest.param([], 0, "It lists no tools", id="none"),
    ],
)
def test_a_server_without_a_usable_tool_is_never_called_unchanged(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tools: list[dict[str, Any]],
    code: int,
    says: str,
) -> None:
    (tmp_path / "knapper.toml").touch()
    command = ["--", "python", str(STRANGER), str(does(tmp_path, *tools))]
    assert main(["mcp", "add", "s", "--unconfined", "-C", str(tmp_path), *command]) == code
    assert main(["mcp", "approve", "s", "-C", str(tmp_path)]) == code
    shown = capsys.readouterr().out
    assert (shown.count(f"s: {says}."), "nothing has changed" in shown) == (2, False)
    assert shown.count("left out: `a`: its schema describes no object") == 2 * code


@pytest.mark.parametrize(
    "page",
    [
        pytest.param({"nextCursor": ""}, id="empty"),
        pytest.param({"nextCursor": "again"}, id="the-same"),
        pytest.param({"nextCursor": 2}, id="a-number"),
        pytest.param({"nextCursor": None}, id="null"),
        pytest.param({"nextCursor": {"page": 2}}, id="an-object"),
    ],
)
async def test_a_page_that_was_read_ends_the_list(
    workspace: Workspace, page: dict[str, Any]
) -> None:
    approved(workspace.root, tool("echo"), says="fine", page=page)
    assert await called(workspace, "echo", text="a") == ("returned", "fine")


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param({}, id="empty"),
        pytest.param(
            {"capabilities": {"tools": True, "logging": []}, "serverInfo": None},
            id="odd-capabilities",
        ),
        pytest.param(
            {"protocolVersion": "2024-11-05", "serverInfo": {"name": "s"}, "instructions": 5},
            id="no-version",
        ),
    ],
)
async def test_a_greeting_is_read_for_its_version_alone(
    workspace: Workspace, greeting: dict[str, Any]
) -> None:
    approved(workspace.root, tool("echo"), says="fine", greeting=greeting)
    assert await called(workspace, "echo", text="a") == ("returned", "fine")


def result(value: object) -> dict[str, Any]:  # Any: JSON
    return {"jsonrpc": "2.0", "id": "NUMBER", "result": value}


LINK = {
    "type": "resource_link",
    "uri": "https://example.com/a.pdf",
    "name": "report",
    "mimeType": "application/pdf",
}
PICTURE = {"type": "image", "data": "QUJD" * 1_000, "mimeType": "image/png"}
RESULTS: dict[str, tuple[object, str]] = {  # what is sent, and what is read as the result
    "no_content": (result({}), ""),
    "null": (result(None), ""),
    "content_null": (result({"content": None}), ""),
    "content_text": (result({"content": "42 rows"}), "42 rows"),
    "content_object": (result({"content": {"type": "text", "text": "42 rows"}}), "42 rows"),
    "content_texts": (result({"content": ["42", "rows"]}), "42\nrows"),
    "a_text": (result("42 rows"), "42 rows"),
    "blocks_alone": (result([{"type": "text", "text": "42 rows"}]), "42 rows"),
    "block_without_type": (result({"content": [{"text": "42 rows"}]}), "42 rows"),
    "block_of_null": (result({"content": [{"type": "text", "text": None}]}), ""),
    "block_of_number": (result({"content": [{"type": "text", "text": 42}]}), "42"),
    "unknown_block": (
        result({"content": [{"type": "text", "text": "42 rows"}, {"type": "widget", "id": 1}]}),
        '42 rows\n{"type": "widget", "id": 1}',
    ),
    "link": (
        result({"content": [LINK]}),
        "[a link: report, https://example.com/a.pdf, application/pdf]",
    ),
    "picture": (
        result({"content": [PICTURE]}),
        "[image of image/png, 3,000 bytes, which is not shown]",
    ),
    "file": (
        result(
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "QUJD"}}]}
        ),
        "[resource of file:///a, 3 bytes, which is not shown]",
    ),
    "structured": (result({"structuredContent": {"rows": 3}}), "{'rows': 3}"),
    "structured_list": (result({"content": [], "structuredContent": [1, 2]}), "[1, 2]"),
    "structured_nothing": (result({"content": "42 rows", "structuredContent": {}}), "42 rows"),
    "first_version": (result({"toolResult": {"rows": 3}}), "{'rows': 3}"),
    "bare": (result({"rows": 3, "isError": None}), "{'rows': 3}"),
    "no_number": (
        '{"jsonrpc": "2.0", "id": "NUMBER", "result": {"structuredContent": {"a": NaN}}}',
        "{'a': None}",
    ),
    "half": ('{"jsonrpc": "2.0", "id": "NUMBER", "result": {"content": "\\ud83d"}}', "�"),
    "controls": ('{"jsonrpc": "2.0", "id": "NUMBER", "result": {"content": "a\tb"}}', "a\tb"),
    "id_as_text": (
        {"jsonrpc": "2.0", "id": "NUMBER AS TEXT", "result": {"content": "fine"}},
        "fine",
    ),
    "no_version": ({"id": "NUMBER", "result": {"content": "fine"}}, "fine"),
    "other_version": (
        {"jsonrpc": 2, "id": "NUMBER", "result": {"content": "fine"}, "error": None},
        "fine",
    ),
    "id_of_null": ({"jsonrpc": "2.0", "id": None, "result": {"content": "fine"}}, "fine"),
    "no_id": ({"jsonrpc": "2.0", "result": {"content": "fine"}}, "fine"),
    "batch": ([{"jsonrpc": "2.0", "id": "NUMBER", "result": {"content": "fine"}}], "fine"),
}
ERRORS: dict[str, tuple[object, str]] = {
    "no_code": (
        {"jsonrpc": "2.0", "id": "NUMBER", "error": {"message": "database is down"}},
        "database is down",
    ),
    "code_of_text": (
        {
            "jsonrpc": "2.0",
            "id": "NUMBER",
            "error": {"code": "E_DOWN", "message": "database is down"},
        },
        "database is down",
    ),
    "error_of_text": (
        {"jsonrpc": "2.0", "id": "NUMBER", "error": "database is down"},
        "database is down",
    ),
    "error_of_list": (
        {"jsonrpc": "2.0", "id": "NUMBER", "error": ["database is down"]},
        "database is down",
    ),
    "error_without_id": (
        {"jsonrpc": "2.0", "error": {"code": -1, "message": "database is down"}},
        "database is down",
    ),
    "error_with_id_of_null": (
        {"id": None, "error": {"code": -1, "message": "database is down"}},
        "database is down",
    ),
    "error_and_null": (
        {
            "jsonrpc": "2.0",
            "id": "NUMBER",
            "result": None,
            "error": {"message": "database is down"},
        },
        "database is down",
    ),
    "error_with_data": (
        {
            "jsonrpc": "2.0",
            "id": "NUMBER",
            "error": {"code": -32000, "message": "down", "data": {"why": "full"}},
        },
        "full",
    ),
    "is_error": (
        result({"isError": True, "structuredContent": {"why": "database is down"}}),
        "database is down",
    ),
    "neither": ({"jsonrpc": "2.0", "id": "NUMBER", "output": "lost"}, "lost"),
    "no_json": ('{"jsonrpc": "2.0", "id": "NUMBER", "result": {"content": [}}', "cannot be read"),
    "too_deep": (
        '{"jsonrpc": "2.0", "id": "NUMBER", "result": ' + "[" * 99 + "]" * 99 + "}",
        "cannot be read",
    ),
}


def line(sent: object, number: object) -> bytes:
    """Return an odd answer as it is sent to the request of this number."""
    text = sent if isinstance(sent, str) else json.dumps(sent)
    return (
        text.replace('"NUMBER"', json.dumps(number)).replace("NUMBER AS TEXT", str(number)).encode()
    )


@contextmanager
def at_an_address(root: Path, answers: dict[str, object], kind: str) -> Iterator[None]:
    """Approve tools of a server at an address, whose calls are answered with these lines, as this kind of content."""
    rows = [tool(name, schema={}) for name in answers]

    async def handle(request: Request, answer: Answer) -> None:
        asked = json.loads(request.body) if request.method == "POST" else {}
        number = asked.get("id")
        match asked.get("method"):
            case "tools/call":
                body, event = line(answers[asked["params"]["name"]], number), kind == EVENTS
                await answer.send(
                    200, b"data: %b\n\n" % body if event else body, {"Content-Type": kind}
                )
            case "tools/list":
                await answer.send(
                    200, line(result({"tools": rows}), number), {"Content-Type": JSON}
                )
            case "initialize":
                await answer.send(200, line(result({}), number), {"Content-Type": JSON})
            case _:
                await answer.send(202 if request.method == "POST" and number is None else 404, b"")

    with closing(Server(handle)) as server:
        book, entry = ServerBook(root), ServerEntry(url=f"http://127.0.0.1:{server.port}/mcp")
        book.put("strange", entry)
        book.approve(
            "strange",
            entry,
            {row["name"]: {"description": "Repeat.", "parameters": {}} for row in rows},
        )
        yield


@contextmanager
def through_a_pipe(root: Path, answers: dict[str, object], _kind: str) -> Iterator[None]:
    """Approve tools of a server that was started, whose calls are answered with these lines."""
    approved(root, *(tool(name, schema={}) for name in answers), answers=answers)
    yield


WAYS = [
    pytest.param(through_a_pipe, "", id="pipe"),
    pytest.param(at_an_address, JSON, id="address"),
    pytest.param(at_an_address, EVENTS, id="events"),
]
Way: TypeAlias = Callable[[Path, dict[str, object], str], AbstractContextManager[None]]


@pytest.mark.parametrize(("way", "kind"), WAYS)
async def test_a_result_that_came_is_a_result(workspace: Workspace, way: Way, kind: str) -> None:
    answers = {name: sent for name, (sent, _) in RESULTS.items()}
    with way(workspace.root, answers, kind):
        began = time.monotonic()
        assert {name: await called(workspace, name) for name in answers} == {
            name: ("returned", read) for name, (_, read) in RESULTS.items()
        }
        assert time.monotonic() - began < MAX_S


@pytest.mark.parametrize(("way", "kind"), WAYS)
async def test_an_answer_of_a_wrong_form_ends_its_call_with_what_came(
    workspace: Workspace, way: Way, kind: str
) -> None:
    answers = {name: sent for name, (sent, _) in ERRORS.items()}
    with way(workspace.root, answers, kind):
        began = time.monotonic()
        for name, (_, words) in ERRORS.items():
            outcome, text = await called(workspace, name)
            assert (outcome, words in text, "did not answer" in text) == ("raised", True, False), (
                name,
                text,
            )
        assert time.monotonic() - began < MAX_S


async def test_an_answer_without_a_number_is_never_given_to_one_of_several_calls(
    workspace: Workspace,
) -> None:
    answers: dict[str, object] = {"silent": "", "odd": {"result": {"content": "of whom?"}}}
    with through_a_pipe(workspace.root, answers, ""):
        assert (await called(workspace, "odd"))[0] == "returned"
        silent = asyncio.create_task(called(workspace, "silent"))
        while not silent.done():
            odd = asyncio.create_task(called(workspace, "odd"))
            await asyncio.wait({silent, odd}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            odd.cancel()
        outcome, text = await silent
    assert (outcome, "of whom" in text, "without a number" in text) == ("raised", False, True)


async def test_an_error_that_answers_a_notification_ends_no_request(workspace: Workspace) -> None:
    approved(workspace.root, tool("echo"), says="fine", protests=True)
    assert await called(workspace, "echo", text="a") == ("returned", "fine")


def test_an_answer_to_a_request_with_a_name_for_its_number_is_for_no_call() -> None:
    """The package names some of its own requests: an error in answer to one is not that of a call meanwhile."""
    intake = Intake()
    intake.expect("listen-1", "subscriptions/listen")
    intake.expect(2, "tools/call")
    error = {
        "jsonrpc": "2.0",
        "id": "listen-1",
        "error": {"code": -32601, "message": "Method not found"},
    }
    answered = intake.read(json.dumps(error).encode())
    assert isinstance(answered, JSONRPCError)
    assert (answered.id, intake.is_waiting(2)) == ("listen-1", True)
