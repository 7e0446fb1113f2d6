"""Pins at every door: the person sets and lifts them; a token of its own changes nothing that is pinned."""

import asyncio
import json
from typing import Any

import pytest

from agent_core.client.client import Client, HttpWire
from knapper.shell.cli import main
from tests.kit.desk import VOWELS

from .conftest import Serve, Served

NAME = "count_vowels"


async def at_shell(server: Served, *words: str) -> int:
    place = ["-C", str(server.workspace.root)]
    return await asyncio.to_thread(main, [*place, "functions", *words])


async def pinned(served: Serve) -> Served:
    server = await served([])
    await server.save("words.py", VOWELS)
    assert await at_shell(server, "pin", NAME) == 0
    return server


async def test_each_face_pins_and_unpins(served: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = await pinned(served)
    assert f"only you change {NAME}" in capsys.readouterr().out
    assert await at_shell(server, "list", "--json") == 0
    (row,) = [
        row for row in json.loads(capsys.readouterr().out)["functions"] if row["name"] == NAME
    ]
    assert row["pinned"] is True
    answer = await server.client.post("/api/v1/functions/unpin", json={"pattern": NAME})
    assert answer.json() == {"pattern": NAME, "holds": False, "functions": [NAME]}
    async with Client(HttpWire(server.url, server.key)) as client:
        assert (await client.functions.pin("words"))["functions"] == [NAME]
    assert await at_shell(server, "pin", "not_there") != 0
    assert "There is no function or module `not_there`" in capsys.readouterr().err


async def test_a_token_of_its_own_changes_nothing_that_is_pinned(served: Serve) -> None:
    server = await pinned(served)
    program = await server.as_("program", "edit", "read", "chat")
    before = (server.workspace.root / "functions" / "words.py").read_text()
    changed = VOWELS.replace("Count the", "Count all")
    attempts: list[tuple[str, str, dict[str, Any]]] = [
        ("DELETE", f"/functions/{NAME}", {}),
        ("POST", f"/functions/{NAME}/rename", {"new": "other"}),
        ("POST", f"/functions/{NAME}/move", {"module": "other"}),
        ("POST", f"/functions/{NAME}/rollback", {"version": "1"}),
        ("POST", f"/functions/{NAME}/add-example", {"call": f'{NAME}("a")', "expected": "1"}),
        ("PUT", f"/functions/{NAME}", {"source": changed}),
        ("POST", "/functions/unpin", {"pattern": NAME}),
        ("POST", "/functions/join", {"pattern": "*"}),
        ("POST", "/commands", {"words": ["functions", "unpin", NAME]}),
        ("POST", "/commands", {"words": ["functions", "delete", NAME]}),
        (
            "POST",
            "/commands",
            {"words": ["functions", "edit", NAME, "--old", "Count the", "--new", "Count all"]},
        ),
    ]
    told = []
    for method, path, body in attempts:
        answer = await program.request(method, f"/api/v1{path}", json=body or None)
        told.append((path, answer.status_code, answer.text[:200]))
    assert (server.workspace.root / "functions" / "words.py").read_text() == before, told
    assert await server.workspace.functions.pins.holds(NAME), told
    owner = await server.client.request("DELETE", f"/api/v1/functions/{NAME}")
    assert owner.status_code == 200, owner.text
