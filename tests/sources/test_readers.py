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
RECORDS = json.dumps(
    [{"name": f"Person {n}", "home": {"city": "Ulm", "rooms": [1, 2]}} for n in range(40)]
)


def test_a_source_is_cut_at_its_structure() -> None:
    rows: list[tuple[str, str, str, list[str]]] = [
        (
            "markdown by headings",
            "guide.md",
            GUIDE,
            [
                "Guide > Install, lines 1–5",
                "Guide > Use, lines 7–13",
                "Guide > Use > Often, lines 15–17",
            ],
        ),
        (
            "python by functions and methods",
            "a.py",
            PYTHON,
            ["first, lines 1–12", "Big, lines 15–16", "Big.one, lines 18–19"],
        ),
        ("other code by blank lines", "a.go", GO, ["Add, lines 1–7", "Take, lines 9–11"]),
        ("a page by its headings", "a.html", PAGE, ["A page; Herons", "Herons > Where they live"]),
        ("text by paragraphs", "a.txt", "One.\n\nTwo.\nThree.\n", ["lines 1–4"]),
        ("a table by rows", "a.csv", PEOPLE, ["rows 1–38", "rows 39–75", "rows 76–100"]),
        ("a list by records", "a.json", RECORDS, ["records 1–21", "records 22–40"]),
        (
            "a list in an object",
            "a.json",
            f'{{"items": {RECORDS}}}',
            ["items, records 1–21", "items, records 22–40"],
        ),
        ("lines of JSON", "a.jsonl", '{"a": 1.10}\n{"a": 2}\n', ["records 1–2"]),
    ]
    for case, name, text, places in rows:
        found = [chunk.place for chunk in read(name, text.encode()).chunks]
        assert found[: len(places)] == places, case


def test_a_pdf_is_cut_by_pages() -> None:
    found = read("a.pdf", pdf(["Herons fish. " * 25, "They fly. " * 30, "", "The end."]))
    assert [chunk.place for chunk in found.chunks] == ["page 1", "page 2", "page 4"]
    assert found.notes == ("1 of 4 pages hold no text.",)


def test_each_chunk_of_a_table_begins_with_its_header() -> None:
    assert {chunk.text.split("\n")[0] for chunk in read("a.csv", PEOPLE.encode()).chunks} == {
        "name | city | born"
    }


def test_a_long_section_names_its_heading_in_each_chunk() -> None:
    found = read("a.md", f"# Herons\n\n{LONG * 8}".encode())
    assert len(found.chunks) > 1
    assert all(chunk.text.startswith("# Herons\n") for chunk in found.chunks)


def test_a_page_is_read_without_its_scripts_and_with_its_words() -> None:
    text = "\n".join(chunk.text for chunk in read("a.html", PAGE.encode()).chunks)
    assert "no word" not in text
    assert all(
        words in text
        for words in ("A heron & a fish", "Grey heron | 1.7 m", "At lakes\nAt the sea")
    )


def test_numbers_of_records_stay_as_they_are_written() -> None:
    big = "9" * 5_000
    text = read("a.json", f'[{{"price": 1.10, "big": {big}}}]'.encode()).chunks
    assert text[0].text.startswith("price: 1.10; big: 999")


def test_a_text_is_read_in_its_encoding() -> None:
    rows: list[tuple[str, bytes, str, bool]] = [
        ("utf-8", "Löwe".encode(), "Löwe", False),
        ("utf-16 with a mark", "Löwe".encode("utf-16"), "Löwe", False),
        ("utf-16 without one", "Löwe and heron".encode("utf-16-le"), "Löwe and heron", False),
        ("latin-1", "Löwe – 5 €".encode("cp1252"), "Löwe – 5 €", True),
        ("line breaks", b"a\r\nb\rc", "a\nb\nc", False),
    ]
    for case, data, text, note in rows:
        found = read("a.txt", data)
        assert [chunk.text for chunk in found.chunks] == [text], case
        assert bool(found.notes) is note, case


def test_a_page_is_read_in_the_encoding_that_it_says() -> None:
    rows: list[tuple[str, bytes, str]] = [
        ("said by the page", '<meta charset="windows-1251"><p>Привет'.encode("cp1251"), ""),
        ("said by the server", "<p>Привет".encode("koi8-r"), "text/html; charset=KOI8-R"),
        ("said nonsense", "<p>Привет".encode(), "text/html; charset=zip"),
    ]
    for case, data, content_type in rows:
        assert read("a.html", data, content_type).chunks[0].text == "Привет", case


def test_what_a_source_is_read_as() -> None:
    rows: list[tuple[str, str, bytes, str, str]] = [
        (
            "by the server",
            "https://a.org/x",
            b"<!DOCTYPE html>",
            "text/html; charset=utf-8",
            "html",
        ),
        ("by its beginning", "report", b"%PDF-1.7 ", "", "pdf"),
        ("a page without a name", "page", b"\n<!-- x --><html>", "", "html"),
        ("nothing known", "README", b"Hello", "", "text"),
        ("a name in capitals", "A.PY", b"x = 1", "", "python"),
    ]
    for case, name, data, content_type, kind in rows:
        assert kind_of(name, data, content_type) == kind, case


def test_what_is_no_text_is_refused() -> None:
    rows: list[tuple[str, bytes]] = [
        ("a.docx", b"PK\x03\x04" + b"x" * 100),
        ("a.txt", bytes(range(256)) * 10),
        ("a.txt", b" \n\t "),
        ("a.html", b"<script>x = 1</script>"),
        ("a.pdf", b"%PDF-1.7\nno pdf at all"),
        ("a.pdf", pdf([""])),
    ]
    for name, data in rows:
        with pytest.raises(Unreadable):
            read(name, data)
    with pytest.raises(Unreadable, match="It is not a PDF"):
        read("a.pdf", b"short lines\n" * 1000)
