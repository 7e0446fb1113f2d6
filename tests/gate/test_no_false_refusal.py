"""What a careful author writes joins: what opens, fetches, draws or greets, and what Python's doctest passes."""

import contextlib
import doctest
import io
import random
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.registry.registry import Snapshot

from .support import judge, name_of, snapshot_of


def described(head: str, body: str, *examples: str, top: str = "") -> str:
    """Return the text of a function with a docstring that describes its parameters."""
    names = [
        part.split(":")[0].strip()
        for part in head[head.index("(") + 1 : head.rindex(")")].split(", ")
    ]
    entries = "\n".join(
        f"        {name}: What it is given." for name in names if name not in ("self", "")
    )
    arguments = f"\n    Args:\n{entries}\n" if entries else ""
    shown = "".join(f"\n    {line}" for example in examples for line in example.split("\n"))
    lines = body.replace("\n", "\n    ")
    return (
        f'{top}\n\ndef {head}:\n    """Do what it is for, as its name says.\n'
        f'{arguments}{shown}\n    """\n    {lines}\n'
    )


OPENING = [
    pytest.param(
        described("load_book(path: str) -> list[str]", "return [s.title for s in openpyxl.load_workbook(path)]",
                  top="import openpyxl"),
        id="a-workbook",
    ),
    pytest.param(
        described("mean_of(path: str) -> float", "with open(path) as file:\n    return pd.read_csv(file)['a'].mean()",
                  top="import pandas as pd"),
        id="opened-and-handed-on",
    ),
    pytest.param(
        described("exchange_rate(code: str) -> float",
                  "return requests.get(f'https://api.example.org/{code}').json()['rate']", top="import requests"),
        id="a-host",
    ),
    pytest.param(
        described("draw_bars(values: list[float], path: str) -> str",
                  "fig, axes = plt.subplots()\naxes.bar(range(len(values)), values)\nfig.savefig(path)\nreturn path",
                  top="import matplotlib.pyplot as plt"),
        id="a-picture",
    ),
    pytest.param(
        described("save_table(rows: list[list[str]], path: str) -> None",
                  "book = openpyxl.Workbook()\nfor row in rows:\n    book.active.append(row)\nbook.save(path)",
                  top="import openpyxl"),
        id="a-file-that-is-written",
    ),
    pytest.param(
        described("count_names(path: str) -> int", "with zipfile.ZipFile(path) as file:\n    return len(file.filelist)",
                  top="import zipfile"),
        id="an-archive",
    ),
    pytest.param(
        described("page_title(url: str) -> str",
                  "text = urllib.request.urlopen(url).read().decode()\nreturn text.partition('<title>')[2]",
                  top="import urllib.request"),
        id="an-address",
    ),
    pytest.param(
        described("item_names(path: str) -> list[str]",
                  "return [node.tag for node in ElementTree.parse(path).getroot()]",
                  top="from xml.etree import ElementTree"),
        id="a-document",
    ),
    pytest.param(
        described("section_names(path: str) -> list[str]",
                  "settings = configparser.ConfigParser()\nsettings.read(path)\nreturn settings.sections()",
                  top="import configparser"),
        id="settings",
    ),
    pytest.param(
        described("write_note(path: str, text: str) -> bool", "Path(path).write_text(text)\nreturn True",
                  top="from pathlib import Path"),
        id="a-note-whose-result-is-always-the-same",
    ),
    pytest.param(
        described("sizes_of(folder: str) -> dict[str, int]",
                  "return {path.name: path.stat().st_size for path in Path(folder).rglob('*')}",
                  top="from pathlib import Path"),
        id="a-folder",
    ),
    pytest.param(
        described("hello_world() -> str", "return 'Hello World'", ">>> hello_world()\n'Hello World'"),
        id="a-greeting",
    ),
    pytest.param(
        described("opening_hours() -> dict[str, str]", "return {'mo': '9-17', 'tu': '9-17'}",
                  ">>> opening_hours()\n{'tu': '9-17', 'mo': '9-17'}"),
        id="a-table-that-its-example-shows",
    ),
    pytest.param(
        described("greet(self) -> str", "return 'hello'", ">>> greet()\n'hello'"), id="a-greeting-with-self"
    ),
    pytest.param(
        described("heading(title: str) -> str", "return f'# {title}\\n'",
                  '>>> print(heading("Week 1"))\n# Week 1\n<BLANKLINE>', '>>> print(heading("A"))\n# A\n<BLANKLINE>'),
        id="blank-lines",
    ),
    pytest.param(
        described("count_lines(path: str) -> int", "with open(path) as file:\n    return len(file.readlines())",
                  ">>> import tempfile\n>>> path = tempfile.mkdtemp() + '/a'\n>>> _ = open(path, 'w').write('1\\\\n2')",
                  ">>> count_lines(path)\n2", ">>> _ = open(path, 'w').write('1')", ">>> count_lines(path)\n1"),
        id="one-call-with-another-file",
    ),
    pytest.param(
        described("push(stack: list[int], item: int) -> list[int]", "stack.append(item)\nreturn stack",
                  ">>> stack = []", ">>> push(stack, 1)\n[1]", ">>> push(stack, 1)\n[1, 1]"),
        id="one-call-after-another",
    ),
    pytest.param(
        described("sum_of(path: str) -> float", "with open(path) as file:\n    return sum(map(float, file))",
                  ">>> import tempfile; path = tempfile.mkdtemp() + '/a'\n>>> _ = open(path, 'w').write('1\\n2\\n')",
                  ">>> sum_of(path)\n3.0", ">>> _ = open(path, 'w').write('4\\n')", ">>> sum_of(path)\n4.0"),
        id="a-line-break-in-a-docstring-that-is-not-raw",
    ),
    pytest.param(
        described("total_of(path: str) -> float", "with open(path) as file:\n    return sum(map(float, file))",
                  ">>> import tempfile; path = tempfile.mkdtemp() + '/a'\n>>> _ = open(path, 'w').write('1\\n2\\n')",
                  ">>> total_of(path)\n3.0"),
        id="one-example-that-writes-its-file",
    ),
    pytest.param(
        described("write_lines(path: str, lines: list[str]) -> int",
                  "with open(path, 'w') as file:\n    file.writelines(lines)\nreturn len(lines)",
                  ">>> write_lines('a', ['x'])\n1", ">>> write_lines('b', ['y'])\n1"),
        id="two-examples-with-one-result",
    ),
    pytest.param(
        described("add_row(path: str, row: str) -> str",
                  "base = sqlite3.connect(path)\nbase.execute('create table if not exists t (a)')\n"
                  "base.execute('insert into t values (?)', [row])\nbase.commit()\nreturn path",
                  ">>> add_row('a.db', 'x')\n'a.db'", top="import sqlite3"),
        id="a-database-whose-path-comes-back",
    ),
    pytest.param(
        described("draw_line(values: list[float], path: str) -> str",
                  "plt.plot(values)\nplt.savefig(path)\nreturn path",
                  top="import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt"),
        id="a-package-that-is-set-up",
    ),
    pytest.param(
        described("vowels_in(text: str) -> int", "return sum(letter in 'aeiou' for letter in text.lower())",
                  ">>> vowels_in('queueing')\n5", ">>> vowels_in('a')\n1", ">>> vowels_in('rhythm')\n0"
                  ).replace("text: What it is given.", "text:"),
        id="a-parameter-without-a-description",
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", OPENING)
async def test_what_opens_fetches_draws_or_greets_is_refused_for_nothing_but_a_grant(
    gate: Gate, text: str
) -> None:
    verdict = await judge(gate, text, name_of(text))
    refusals = {problem.code for problem in verdict.refusals}
    assert refusals <= {"needs-packages", "needs-network"}, [
        problem.message for problem in verdict.refusals
    ]
    assert len(verdict.refusals) == len(refusals)


HOLLOW = [
    pytest.param(described("send_report() -> str", "return 'sent'"), "constant", id="no-example"),
    pytest.param(
        described("send_report() -> str", "return 'sent'", ">>> send_report()\n'mailed'"), "constant", id="another"
    ),
    pytest.param(
        described("send_to(name: str) -> str", "return 'sent'", ">>> send_to('a')\n'sent'"), "constant", id="of-a-name"
    ),
    pytest.param(
        described("mean_of(values: list[float]) -> float", "return float(np.mean(values))", top="import numpy as np"),
        "too-few-examples",
        id="a-package-that-only-computes",
    ),
    pytest.param(
        described("price_of(name: str) -> int", "return 42", top="import requests"), "constant", id="an-unused-package"
    ),
    pytest.param(
        described("double(n: int) -> int", "return n + n", ">>> double(2)  # doctest: +SKIP\n4", ">>> double(3)\n6"),
        "too-few-examples",
        id="a-skipped-example",
    ),
    pytest.param(
        described("twice(text: str) -> str", "return text + text", ">>> twice('a')  # doctest: +ELLIPSIS\n'...'",
                  ">>> twice('b')\n'bb'"),
        "too-few-examples",
        id="an-ellipsis-for-a-whole-result",
    ),
    pytest.param(
        described("double(n: int) -> int", "return n + n", ">>> double(2)\n4", ">>> double(2)\n4"),
        "too-few-examples",
        id="one-example-twice",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), HOLLOW)
async def test_what_proves_nothing_or_does_nothing_is_still_refused(
    gate: Gate, text: str, code: str
) -> None:
    verdict = await judge(gate, text, name_of(text))
    assert code in {problem.code for problem in verdict.refusals}, verdict.problems


async def test_the_worst_is_told_first_and_each_thing_once(gate: Gate) -> None:
    text = (
        "import matplotlib\nimport matplotlib.pyplot as plt\nif matplotlib:\n    matplotlib.use('Agg')\n\n\n"
        'def draw(values: list[float], path) -> str:\n    """Draw a curve."""\n'
        "    plt.plot(values)\n    plt.savefig(path)\n    return missing(path)\n"
    )
    codes = [problem.code for problem in (await judge(gate, text, name_of(text))).refusals]
    assert codes[0] == "top-level-statement"
    assert codes[-1] == "needs-packages"
    assert len(codes) == len({*codes})


async def test_a_confirmed_result_with_blank_lines_passes_in_doctest_too(gate: Gate) -> None:
    text = described("heading(title: str) -> str", "return f'\\n# {title}\\n'",
                     '>>> print(heading("Week 1"))\n# Week', '>>> heading("A")\n\'\\\\n# A\\\\n\'')  # fmt: skip
    candidate = Candidate("heading", text, "words")
    verdict = await gate.judge(candidate, Snapshot.empty())
    assert verdict.can_be_confirmed, verdict.problems
    after = await gate.confirm(candidate, verdict, Snapshot.empty())
    assert after.admitted, after.problems
    assert all(passed for _, passed in _doctested(after.source, "heading")), after.source


_BODY = '''
import os
from pathlib import Path


def act(what, more=1):
    """Act.

{examples}
    """
    if what == "fail":
        raise ValueError("no way\\n")
    if what == "print":
        print("one")
        print()
        print("two\\n")
        return more
    if what == "flag":
        return more == 1
    if what == "read":
        with open("a.txt") as file:
            return file.read()
    if what == "add":
        more.append(len(more))
        return more
    return [what] * more
'''
_ENTRIES = (
    ">>> act('x')\n['x']",
    ">>> act('fail')\nTraceback (most recent call last):\n    ...\nValueError: no way\n<BLANKLINE>",
    ">>> act('print', 3)\none\n<BLANKLINE>\ntwo\n<BLANKLINE>\n3",
    ">>> act('flag')\n1",
    ">>> act('flag')\nTrue",
    ">>> Path('a.txt').write_text('hi')\n2",
    ">>> Path('a.txt').write_text('abc')\n3",
    ">>> act('read')\n'hi'",
    ">>> act('read')\n'abc'",
    ">>> os.remove('a.txt')",
    ">>> xs = []",
    ">>> xs = [5]",
    ">>> act('add', xs)\n[0]",
    ">>> act('add', xs)\n[0, 1]",
    ">>> act('add', xs)\n[5, 1]",
    ">>> xs\n[0]",
    ">>> x = act('x')",
    ">>> x\n['x']",
    ">>> x = 3",
    ">>> x\n3",
    ">>> (x := act('w'))\n['w']",
    ">>> x\n['w']",
    ">>> act = act",
    ">>> act('y', 30)  # doctest: +ELLIPSIS\n['y', ..., 'y']",
    ">>> act('x', 3)  # doctest: +NORMALIZE_WHITESPACE\n['x',\n  'x', 'x']",
    ">>> for number in range(2):\n...     print(act('z', number))\n[]\n['z']",
    ">>> def twice(what): return act(what, 2)\n>>> twice('k')\n['k', 'k']",
)


class _Recorder(doctest.DocTestRunner):
    """Runs examples as Python's doctest does, and records which pass."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.passed: list[tuple[int, bool]] = []

    def report_start(self, out: Any, test: doctest.DocTest, example: doctest.Example) -> None:
        pass

    def report_success(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        self.passed.append((example.lineno, True))

    def report_failure(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        self.passed.append((example.lineno, False))

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self.passed.append((example.lineno, False))


def _doctested(text: str, name: str) -> list[tuple[int, bool]]:
    """Return the line of each example of a test's own text, and whether Python's doctest passes it."""
    space: dict[str, Any] = {"__name__": "drawn"}
    exec(compile(text, "drawn", "exec"), space)
    recorder = _Recorder()
    parsed = doctest.DocTestParser().get_doctest(space[name].__doc__, space, name, "drawn", 0)
    with contextlib.redirect_stdout(io.StringIO()):
        recorder.run(parsed)
    return recorder.passed


def _drawn(seed: int) -> str:
    draw = random.Random(seed)
    entries = [draw.choice(_ENTRIES) for _ in range(draw.randint(2, 6))]
    return _BODY.replace(
        "{examples}", "\n".join(f"    {line}" for entry in entries for line in entry.split("\n"))
    )


async def test_what_pythons_doctest_passes_agrees(gate: Gate, tmp_path: Path) -> None:
    tried = 0
    for seed in range(400):
        text = _drawn(seed)
        (tmp_path / "a.txt").unlink(missing_ok=True)
        with contextlib.chdir(tmp_path):
            passed = _doctested(text, "act")
        if not all(is_passed for _, is_passed in passed):
            continue
        tried += 1
        snapshot = snapshot_of(drawn=text)
        results = await gate.run_examples(snapshot.functions["act"], snapshot)
        assert all(result.agreed for result in results), text
    assert tried > 30
