"""A source contains only what reads as it runs: anything else is rejected with its line, column and name."""

import ast
import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.problem import Problem
from agent_core.base.syntax import flaw_of, name_flaw_of
from agent_core.registry.source import ModuleSource, parse, read_file
from sandbox.wire.lines import bare_lines, lines_of
from tests.kit.drawing import crossed

ODD = (
    "\x00\x01\x07\x08\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x85\x9b\xad\u034f\u061c\u0600\u06dd\u115f\u180b\u180e\u200b\u200c"
    "\u200d\u200e\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\uffff\ud800\ue000"
    "\U0001d173\U000e0001\U000e0041\U000e0100\U000f0000\U0010fffe"
)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("char", "around"),
    crossed(
        [pytest.param(char, id=f"U+{ord(char):04X}") for char in ODD],
        [
            pytest.param("x = 1\ny = 'a{}b'\n", id="in-a-text"),
            pytest.param("x = 1\ny = 'a'  # a{}b\n", id="in-a-comment"),
            pytest.param("x = 1\n'''{}'''\n", id="in-a-docstring"),
        ],
    ),
)
def test_what_does_not_read_as_it_runs_is_rejected_with_its_place(char: str, around: str) -> None:
    problem = parse(ModuleSource.of("lib", around.format(char)))
    assert isinstance(problem, Problem)
    assert (problem.where.line, problem.where.column) == (2, around.splitlines()[1].index("{}") + 1)
    assert f"U+{ord(char):04X}" in problem.message
    assert problem.fix


def test_letters_signs_and_emoji_are_plain_text() -> None:
    for text in [
        "é ñ Ω ж 漢字 日本 हिन्दी ไทย",
        "😀 ☀\ufe0f ⚠\ufe0f © … “quoted” ½",
        "a\u00a0b\u3000c",
        "e\u0301",
        "\t",
    ]:
        assert isinstance(parse(ModuleSource.of("lib", f"x = '{text}'  # {text}\n")), ast.Module), (
            text
        )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "👩\u200d👩\u200d👧",
            "👩🏽\u200d💻",
            "🏳\ufe0f\u200d🌈",
            "❤\ufe0f\u200d🔥",
            "🏋🏾\u200d♀\ufe0f",
            "1\ufe0f\u20e3",
            "👩\u200d❤\u200d👨",
        ),
        *(
            "می\u200cخواهم",
            "کتاب\u200cها",
            "بَ\u200cبِ",
            "ܒ\u200cܒ",
            "ᠠ\u200cᠠ",
            "𞤀\u200c𞤀",
        ),  # letters that would join
        *(
            "क\u094d\u200dष",
            "क\u094d\u200cष",
            "ශ\u0dca\u200dරී",
            "ന\u0d4d\u200d",
            "র\u200d\u09cdযাম",
        ),  # viramas
    ],
    ids=ascii,
)
def test_a_joiner_that_makes_an_emoji_or_a_word_is_a_letter(text: str) -> None:
    assert isinstance(parse(ModuleSource.of("lib", f"x = '{text}'  # {text}\n")), ast.Module)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "pass\u200cword",
            "a\u200db",
            "1\u200d2",
            "а\u200dб",
            "漢\u200d字",
            "א\u200cב",
        ),  # letters that never join
        *(
            "👩\u200d",
            "\u200d👩",
            "👩\u200d\u200d👩",
            "👩\u200da",
            "→\u200d→",
            "👩\u200c👩",
        ),  # half an emoji, or none
        *("ی\u200c\u200cخ", "می\u200dخ", "ی\u200ca", "دارو\u200cها", "ی\u200cܒ"),  # nothing changes
        *("©\u200d®", "™\u200d™", "↔\u200d↔", "क\u094d\u200c", "क\u094d\u200ca"),
        *("a\u094d\u200db", "क\u094d\u200d\u200dष", "क\u200dष", "1\ufe0f2", "a\ufe0f\u20e3"),
        *("می\u202eخواهم", "می\u200bخواهم", "👩\u2060👩"),  # other characters, at such a place, too
    ],
    ids=ascii,
)
def test_a_joiner_that_changes_no_letter_is_hidden(text: str) -> None:
    problem = parse(ModuleSource.of("lib", f"x = '{text}'\n"))
    assert isinstance(problem, Problem)
    assert problem.code == "hidden-characters"


def test_a_joiner_is_no_part_of_a_name() -> None:
    for name in ("می\u200cخواهم", "क\u094d\u200dष", "a\u200db"):
        assert isinstance(parse(ModuleSource.of("lib", f"{name} = 1\n")), Problem), ascii(name)


def test_the_same_characters_are_welcome_as_escapes() -> None:
    read = {char: parse(ModuleSource.of("lib", f"x = {char!a}\n")) for char in ODD}
    assert [ascii(char) for char, found in read.items() if not isinstance(found, ast.Module)] == []


def test_a_name_that_python_reads_as_another_is_rejected() -> None:
    rows: list[tuple[str, str]] = [
        ("ｏpen('x')", "open"),
        ("self.ｆetch('u')", "fetch"),
        ("𝐞xec('1')", "exec"),
        ("def ﬁx(): pass", "fix"),
        ("f(ｋey=1)", "key"),
        ("from ｏs import path", "os"),
        ("self︳x = 1", "self_x"),
        ("x = f'{ｏpen(1)}'", "open"),
        ("cafe\u0301 = 1", "café"),
        ("def f():\n    global ｎame", "name"),
    ]
    for code, read in rows:
        problem = parse(ModuleSource.of("lib", code))
        assert isinstance(problem, Problem), code
        assert (problem.code, problem.fix) == ("name-spelling", f"write `{read}`"), code
        assert problem.where.line, code


def test_a_spelling_in_a_text_is_no_name() -> None:
    for text in [
        "x = 'ｏpen'; open",
        "open  # ｏpen",
        "x = f'ｏpen {1}'",
        "größe = 漢 = 1",
        "'…'; x.y",
    ]:
        assert isinstance(parse(ModuleSource.of("lib", text)), ast.Module), text


COOKIES = [
    "# coding: latin-1",
    "# -*- coding: unicode_escape -*-",
    "# vim: set fileencoding=utf-7 :",
    "#coding=UTF-16",
    "\n# coding: cp1252",
    "#!/bin/x\r# coding: utf-7",
    "\r# coding: raw_unicode_escape",
    "# " + "x" * 20_000 + " coding: rot13",
    "# coding: coding: utf_7",
    "# coding: utf-7-sig",
]


def test_every_encoding_but_utf8_is_rejected_in_texts_and_files(tmp_path: Path) -> None:
    for end in ["\n", "\r\n"]:
        for head in COOKIES:
            text = head.replace("\n", end) + end + "x = 1" + end
            (tmp_path / "lib.py").write_bytes(text.encode())
            for found in (
                parse(ModuleSource.of("lib", text)),
                read_file(tmp_path, tmp_path / "lib.py"),
            ):
                assert isinstance(found, Problem), end
                assert (found.code, found.where.line) == (
                    "encoding",
                    1 + head.startswith(("\n", "\r", "#!")),
                ), end
                assert found.fix == "save it as UTF-8 and remove that comment", end


def test_utf8_by_any_name_and_words_that_are_no_declaration_are_taken() -> None:
    for head in [
        *("# coding: utf-8", "# -*- coding: UTF8 -*-", "# coding: utf_8_unix", "#coding=ascii"),
        *(
            "x = 1\n# coding: utf-7",
            "\n\n# coding: utf-7",
            '"""coding: utf-7"""',
            "# encoding is latin-1",
        ),
    ]:
        assert flaw_of(head + "\ny = 1\n") is None, head


def _python_takes(text: str) -> tokenize.TokenInfo | bool:
    try:
        return tokenize.detect_encoding(io.BytesIO(text.encode()).readline)[0] == "utf-8"
    except SyntaxError:
        return False


@given(
    st.lists(
        st.sampled_from(
            ["#", " ", "\t", "\n", "x", "coding", ":", "=", "utf-8", "latin-1", "utf-7"]
        )
    )
)
def test_an_encoding_is_found_wherever_python_finds_it(parts: list[str]) -> None:
    text = "".join(parts) + "\n"
    assert (flaw_of(text) is None) == _python_takes(text)


ALPHABET = st.sampled_from(
    [*ODD, *"\r\n \t#'\"()x1=:", "\r\n", "'''", "def f():", "é", "漢", "😀", "pass"]
)


@given(st.lists(ALPHABET, max_size=40))
def test_a_text_is_rejected_with_its_place_or_its_lines_are_those_of_python(
    parts: list[str],
) -> None:
    text = "".join(parts)
    found = parse(ModuleSource.of("lib", text))
    if isinstance(found, Problem):
        assert found.where.line or found.code in ("syntax", "too-deep")
        return
    assert "".join(lines_of(text)) == text
    last = max((node.end_lineno or 0 for node in found.body), default=0)
    assert last <= len(bare_lines(text))
    for node in found.body:
        assert bare_lines(text)[node.lineno - 1][node.col_offset :].strip()


@given(
    st.text(st.sampled_from(ODD.replace("\x00", "").replace("\ud800", "") + "\r\n x"), max_size=60)
)
def test_lines_are_counted_as_the_parser_counts_them(inside: str) -> None:
    text = f"'''{inside}'''\nlast"
    tree = ast.parse(text)
    assert tree.body[-1].lineno == len(lines_of(text))


def test_name_flaws_are_looked_for_in_code_alone() -> None:
    text = "# ｏpen\nopen\n"
    assert name_flaw_of(text, ast.parse(text)) is None
