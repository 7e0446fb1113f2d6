"""How each kind of source is split, and the place that an answer cites."""

import json

import pytest

from agent_core.memory.sources import Unreadable
from agent_core.memory.sources.kinds import kind_of, read

from .support import pdf

LONG = "The path goes on along the river and nobody is there to see it. " * 5
GUIDE = f"""# Guide

## Install

{LONG}

## Use

{LONG}

```sh
# no heading
```

### Often

{LONG}
"""
PYTHON = f'''"""A module."""

import os

LIMIT = 3


# What it is for.
@cached
def first(x):
    """{LONG}"""
    return x


class Big:
    """{LONG}"""

    def one(self):
        """{LONG}{LONG}"""

    async def two(self):
        """{LONG}"""


LAST = """{LONG}"""
'''
GO = f"""package main

// Adds. {LONG}
func Add(a, b int) int {{

	return a + b
}}

// Takes. {LONG}
func (t *Tree) Take() {{
}}
"""
PAGE = f"""<!doctype html><title>A page</title><style>p {{}}</style><script>alert("no word")</script>
<h1>Herons</h1><p>{LONG}<h2>Where they <em>live</em></h2><ul><li>At lakes<li>At the sea</ul><p>{LONG}
<table><tr><th>Name<th>Wings</tr><tr><td>Grey heron<td>1.7 m</tr></table><img src=x alt="A heron &amp; a fish"></p>"""
PEOPLE = "name,city,born\n" + "".join(f"Person {n},City {n},{1900 + n}\n" for n in range(100))
RECORDS = json.dumps([{"name": f"Person {n}", "home": {"city": "Ulm", "rooms": [1, 2]}} for n in range(40)])


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        pytest.param(
            "guide.md",
            GUIDE,
            ["Guide > Install, lines 1–5", "Guide > Use, lines 7–13", "Guide > Use > Often, lines 15–17"],
            id="markdown by headings",
        ),
        pytest.param(
            "a.py",
            PYTHON,
            ["first, lines 1–12", "Big, lines 15–16", "Big.one, lines 18–19"],
            id="python by functions and methods",
        ),
        pytest.param("a.go", GO, ["Add, lines 1–7", "Take, lines 9–11"], id="other code by blank lines"),
        pytest.param("a.html", PAGE, ["A page; Herons", "Herons > Where they live"], id="a page by its headings"),
        pytest.param("a.txt", "One.\n\nTwo.\nThree.\n", ["lines 1–4"], id="text by paragraphs"),
        pytest.param("a.csv", PEOPLE, ["rows 1–38", "rows 39–75", "rows 76–100"], id="a table by rows"),
        pytest.param("a.json", RECORDS, ["records 1–21", "records 22–40"], id="a list by records"),
        pytest.param(
            "a.json",
            f'{{"items": {RECORDS}}}',
            ["items, records 1–21", "items, records 22–40"],
            id="a list in an object",
        ),
        pytest.param("a.jsonl", '{"a": 1.10}\n{"a": 2}\n', ["records 1–2"], id="lines of JSON"),
    ],
)
def test_a_source_is_cut_at_its_structure(name: str, text: str, places: list[str]) -> None:
    found = [chunk.place for chunk in read(name, text.encode()).chunks]
    assert found[: len(places)] == places


def test_a_pdf_is_cut_by_pages() -> None:
    found = read("a.pdf", pdf(["Herons fish. " * 25, "They fly. " * 30, "", "The end."]))
    assert [chunk.place for chunk in found.chunks] == ["page 1", "page 2", "page 4"]
    assert found.notes == ("1 of 4 pages hold no text.",)


def test_each_chunk_of_a_table_begins_with_its_header() -> None:
    assert {chunk.text.split("\n")[0] for chunk in read("a.csv", PEOPLE.encode()).chunks} == {"name | city | born"}


def test_a_long_section_names_its_heading_in_each_chunk() -> None:
    found = read("a.md", f"# Herons\n\n{LONG * 8}".encode())
    assert len(found.chunks) > 1
    assert all(chunk.text.startswith("# Herons\n") for chunk in found.chunks)


def test_a_page_is_read_without_its_scripts_and_with_its_words() -> None:
    text = "\n".join(chunk.text for chunk in read("a.html", PAGE.encode()).chunks)
    assert "no word" not in text
    assert all(words in text for words in ("A heron & a fish", "Grey heron | 1.7 m", "At lakes\nAt the sea"))


def test_numbers_of_records_stay_as_they_are_written() -> None:
    big = "9" * 5_000
    text = read("a.json", f'[{{"price": 1.10, "big": {big}}}]'.encode()).chunks
    assert text[0].text.startswith("price: 1.10; big: 999")


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        pytest.param("Löwe".encode(), "Löwe", False, id="utf-8"),
        pytest.param("Löwe".encode("utf-8-sig"), "Löwe", False, id="utf-8 with a mark"),
        pytest.param("Löwe".encode("utf-16"), "Löwe", False, id="utf-16 with a mark"),
        pytest.param("Löwe and heron".encode("utf-16-le"), "Löwe and heron", False, id="utf-16 without one"),
        pytest.param("Löwe and heron".encode("utf-16-be"), "Löwe and heron", False, id="utf-16 the other way"),
        pytest.param("Löwe – 5 €".encode("cp1252"), "Löwe – 5 €", True, id="latin-1"),
        pytest.param(b"a\r\nb\rc", "a\nb\nc", False, id="line breaks"),
    ],
)
def test_a_text_is_read_in_its_encoding(data: bytes, text: str, note: bool) -> None:
    found = read("a.txt", data)
    assert [chunk.text for chunk in found.chunks] == [text]
    assert bool(found.notes) is note


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        pytest.param('<meta charset="windows-1251"><p>Привет'.encode("cp1251"), "", id="said by the page"),
        pytest.param("<p>Привет".encode("koi8-r"), "text/html; charset=KOI8-R", id="said by the server"),
        pytest.param("<p>Привет".encode(), "text/html; charset=zip", id="said nonsense"),
        pytest.param("<p>Привет".encode(), "text/html; charset=rot13", id="said no encoding of text"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_says(data: bytes, content_type: str) -> None:
    assert read("a.html", data, content_type).chunks[0].text == "Привет"


@pytest.mark.parametrize(
    ("name", "data", "content_type", "kind"),
    [
        pytest.param("https://a.org/x", b"<!DOCTYPE html>", "text/html; charset=utf-8", "html", id="by the server"),
        pytest.param("https://a.org/x.md", b"# A", "text/plain", "markdown", id="by the name of a page"),
        pytest.param("report", b"%PDF-1.7 ", "", "pdf", id="by its beginning"),
        pytest.param("page", b"\n<!-- x --><html>", "", "html", id="a page without a name"),
        pytest.param("data", b"{}", "application/ld+json", "json", id="a kind of JSON"),
        pytest.param("README", b"Hello", "", "text", id="nothing known"),
        pytest.param("A.PY", b"x = 1", "", "python", id="a name in capitals"),
    ],
)
def test_what_a_source_is_read_as(name: str, data: bytes, content_type: str, kind: str) -> None:
    assert kind_of(name, data, content_type) == kind


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.docx", b"PK\x03\x04" + b"x" * 100, id="an office file"),
        pytest.param("a.txt", b"\x7fELF\x02" + b"\x00" * 100, id="a program that is named a text"),
        pytest.param("a.txt", bytes(range(256)) * 10, id="any bytes"),
        pytest.param("a.bin", b"\x00" * 1000, id="zeros"),
        pytest.param("a.txt", b" \n\t ", id="blanks alone"),
        pytest.param("a.txt", b"", id="nothing"),
        pytest.param("a.html", b"<script>x = 1</script>", id="a page without a word"),
        pytest.param("a.pdf", b"%PDF-1.7\nno pdf at all", id="a PDF that is none"),
        pytest.param("a.pdf", pdf([""]), id="a PDF of pictures"),
    ],
)
def test_what_is_no_text_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(name, data)
