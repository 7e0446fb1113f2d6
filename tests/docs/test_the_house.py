"""`python -m tests.kit.house`: each rule by a text that breaks it, and a list that only shrinks."""

import ast
from pathlib import Path

import pytest

from tests.kit import house


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("nested", "a = b if c else d if e else f"),
        ("nested", "a = (b if c else d) if e else f"),
        ("unpacked", "a, b = 1, 2"),
        ("unpacked", "first = a, b = [1, 2]"),
        ("starred", "f(*[1, 2])"),
        ("seam", "def f(): pass\n\na = 1\nb = 2"),
        ("constant", "_LONGEST_NAME = 1"),
        ("constant", "AFTER: int = 1"),
        ("heavy", "a = f(g(h(i(j()))))"),
        ("conditional", "a = b if c else d"),
        ("comprehension", "a = {b for b in c}"),
        ("lambda", "a = lambda: 1"),
    ],
)
def test_a_rule_finds_what_breaks_it(rule: str, text: str) -> None:
    assert rule in {found for found, _line in house.read_places(ast.parse(text))}


@pytest.mark.parametrize(
    "text",
    [
        "a, b = b, a",
        "a, b = f()",
        "f(*args)",
        "LIMIT = 1\nWIDTH = 2\n\ndef f(): pass\n\na = 1",
        "NAME_LIMIT = 1",
        "for a in b:\n    c = f(a)\n    d = g(h(c))",
    ],
)
def test_a_rule_passes_what_is_plain(text: str) -> None:
    assert not list(house.read_places(ast.parse(text)))


def test_a_list_shrinks_and_never_grows(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "knapper/one.py"
    file.write_text("a, b = 1, 2\nc, d = 3, 4\n")
    assert _run(monkeypatch, project) == 1
    assert "knapper/one.py:2" in capsys.readouterr().out
    assert _run(monkeypatch, project, "--renew") == 1
    assert "the list may only shrink" in capsys.readouterr().out
    (project / house.BREACHES_FILE).write_text("knapper/two.py unpacked 3\n")
    assert _run(monkeypatch, project, "--renew") == 0  # it moved, and there is one less
    assert (project / house.BREACHES_FILE).read_text() == "knapper/one.py unpacked 2\n"
    assert _run(monkeypatch, project) == 0
    file.write_text("a, b = 1, 2\n")
    assert _run(monkeypatch, project) == 1
    assert "the list can shrink" in capsys.readouterr().out


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "knapper").mkdir()
    (tmp_path / house.BREACHES_FILE).parent.mkdir(parents=True)
    (tmp_path / house.BREACHES_FILE).touch()
    return tmp_path


def _run(monkeypatch: pytest.MonkeyPatch, project: Path, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["house", *arguments])
    return house.main(project)
