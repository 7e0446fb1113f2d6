"""A program is untrusted code: messages over its channel get it no more than a call by name would."""

import pytest

from tests.conftest import OpenDesk
from tests.kit.drawing import sampled
from tests.programs.support import UNCHANGED, Person, lines, ran

CHANNEL = "count_vowels('a')\nsend = count_vowels._channel.request\n"
MADE = {"function_name": "a", "function_code_with_docstring": "def a(n: int) -> int: return n"}


@pytest.mark.sampled
async def test_what_a_program_sends_by_itself_is_refused_and_nothing_is_reached(
    at_desk: OpenDesk,
) -> None:
    unnamed = "the program does not name this function"
    sent = {
        "send('inner', {'function': 'create_function', 'rows': [{'function_name': 'a'}]})": unnamed,
        "send('inner', {'function': 'note', 'rows': [{'text': 'x'}]})": unnamed,
        "send('inner', {'function': 'count_vowels', 'rows': [1]})": "by their names",
        "send('inner', {})": "by their names",
        "send('fetch', {'url': 'http://127.0.0.1:9/'})": "Error",
        "send('secret', {'name': 'KEY'})": "Error",
        "send('open', {'path': '/etc/passwd', 'mode': 'r'})": "Error",
        "each(count_vowels, ['a'] * 1_001)": "these are 1,001",
        "open('/etc/passwd').read()": "Error",
        "open('out/notes.txt', 'w')": "Error",
        f"call_function('create_function', {MADE})": "cannot be called by another call",
        "import socket\nsocket.create_connection(('127.0.0.1', 80), 1)": "rror`",
    }
    sent = dict(sampled(sent.items(), 2))
    told, desk = await ran(at_desk, *(CHANNEL + code for code in sent), person=Person())
    for text, (code, says) in zip(told, sent.items(), strict=True):
        assert says in text, code
        assert text.endswith(UNCHANGED), code
    assert lines(desk.workspace.root) == []
    names = desk.workspace.functions.names()
    assert {*names} == {"count_vowels", "note", "key_of", "keep", "ping"}
    records = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call",))
    assert {row.payload["name"] for row in records} == {"count_vowels", "call_function"}


async def test_a_forged_reply_is_no_answer_and_keeps_nothing(at_desk: OpenDesk) -> None:
    start, end = "{'value': 1, 'is_shown': False, 'kept': ", ", 'seen': {}}"
    forged = [
        "42",
        "[1]",
        "{'kept': 1}",
        "{'is_shown': False, 'kept': {}, 'dropped': [], 'seen': {}}",
    ]
    forged += [f"{start}{kept}, 'dropped': []{end}" for kept in ("{'rows': ''}", "{'rows': '[1'}")]
    forged += [
        f"{start}{{'rows': '[1]'}}, 'dropped': 3{end}",
        f"{start}{{'rows': '1' * 300_000}}, 'dropped': []{end}",
    ]
    code = "import sys\nreal = sys.modules['sandbox.inside.channel']\ntrue = real.pack\nreal.pack = lambda frame: "
    code += "true({**frame, 'value': {}} if frame['kind'] == 'returned' else frame)\n1"
    programs = [code.replace("{}", reply) for reply in forged]
    (*told, honest), desk = await ran(at_desk, *programs, "count_vowels('aha')")
    for text, reply in zip(told, forged, strict=True):
        assert "its reply is none that a program gives" in text, reply
    assert honest == "2"
    assert await desk.workspace.store.history(desk.agent.name, kinds=("kept",)) == []
