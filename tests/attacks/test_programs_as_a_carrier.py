"""A program is untrusted code: messages over its channel get it no more than a call by name would."""

from pathlib import Path

import pytest

from agent_core import Decision
from tests.conftest import OpenDesk
from tests.programs.support import Person, lines, ran

CHANNEL = "count_vowels('a')\nsend = count_vowels._channel.request\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param(
            "send('inner', {'function': 'create_function', 'rows': [{'function_name': 'a'}]})",
            "the program does not name this function",
            id="a-function-that-makes-others",
        ),
        pytest.param(
            "send('inner', {'function': 'note', 'rows': [{'text': 'x'}]})",
            "the program does not name this function",
            id="a-function-that-was-not-looked-at",
        ),
        pytest.param("send('inner', {'function': 'count_vowels', 'rows': [1]})", "by their names", id="no-arguments"),
        pytest.param("send('inner', {})", "by their names", id="no-function"),
        pytest.param("send('fetch', {'url': 'http://127.0.0.1:9/'})", "Error", id="an-address"),
        pytest.param("send('secret', {'name': 'KEY'})", "Error", id="a-secret"),
        pytest.param("send('open', {'path': '/etc/passwd', 'mode': 'r'})", "Error", id="a-file"),
        pytest.param("each(count_vowels, ['a'] * 1_001)", "these are 1,001", id="more-rows-than-calls"),
        pytest.param("open('/etc/passwd').read()", "Error", id="a-file-of-the-machine"),
        pytest.param("open('out/notes.txt', 'w')", "Error", id="a-file-of-the-workspace"),
        pytest.param("import socket\nsocket.create_connection(('127.0.0.1', 80), 1)", "Error", id="a-connection"),
    ],
)
async def test_what_a_program_sends_by_itself_is_refused_and_nothing_is_reached(
    at_desk: OpenDesk, code: str, says: str
) -> None:
    (told,), desk = await ran(at_desk, CHANNEL + code, person=Person())
    assert says in told
    assert told.endswith("Nothing was changed outside.")
    assert lines(desk.workspace.root) == []
    names = desk.workspace.functions.names()
    assert {*names} == {"count_vowels", "note", "key_of", "keep", "ping"}
    records = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call",))
    assert {row.payload["name"] for row in records} == {"count_vowels"}


async def test_a_program_cannot_make_a_function_by_call_function(at_desk: OpenDesk) -> None:
    code = """code = 'def a(n: int) -> int: return n'
call_function('create_function', {'function_name': 'a', 'function_code_with_docstring': code})"""
    (told,), desk = await ran(at_desk, code, person=Person())
    assert "cannot be called by another call" in told
    assert "a" not in desk.workspace.functions.names()


async def test_a_no_keeps_every_call_of_the_program_from_the_file(at_desk: OpenDesk) -> None:
    person = Person(Decision("no"))
    (told,), desk = await ran(at_desk, "note('x')\nnote('y')", person=person)
    assert len(person.asked) == 1
    assert lines(desk.workspace.root) == []
    assert "note" in told


async def test_a_yes_to_one_text_is_no_yes_to_another(at_desk: OpenDesk, tmp_path: Path) -> None:
    person = Person()
    _, desk = await ran(at_desk, "note('x')", "note('x')\nnote('y')", person=person)
    assert len(person.asked) == 2
    assert lines(desk.workspace.root) == ["x", "x", "y"]


@pytest.mark.parametrize(
    "forged",
    [
        "42",
        "[1]",
        "{'kept': 1}",
        "{'value': 1, 'is_shown': False, 'kept': {'rows': ''}, 'dropped': [], 'seen': {}}",
        "{'value': 1, 'is_shown': False, 'kept': {'rows': '[1'}, 'dropped': [], 'seen': {}}",
        "{'value': 1, 'is_shown': False, 'kept': {'rows': '[1]'}, 'dropped': 3, 'seen': {}}",
        "{'value': 1, 'is_shown': False, 'kept': {'rows': '1' * 300_000}, 'dropped': [], 'seen': {}}",
        "{'is_shown': False, 'kept': {}, 'dropped': [], 'seen': {}}",
    ],
)
async def test_a_forged_reply_is_no_answer_and_keeps_nothing(at_desk: OpenDesk, forged: str) -> None:
    code = "import sys\nreal = sys.modules['sandbox.inside.programs']\ntrue = real.encode\n"
    code += (
        f"real.encode = lambda value, *more: true({forged}, *more) if 'seen' in str(value) else true(value, *more)\n1"
    )
    told, desk = await ran(at_desk, code, "count_vowels('aha')")
    assert "its reply is none that a program gives" in told[0]
    assert told[1] == "2"
    assert await desk.workspace.store.history(desk.agent.name, kinds=("kept",)) == []
