"""`knapper functions import` and `export` as a person types them."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS
from tests.kit.program import knapper
from tests.kit.sources import function_text

THOUGHTS = '''from memgpt.agent import Agent


def echo(self: Agent, text: str, width: int = 3) -> str:
    """
    Repeat the first letters of a text.

    Args:
        text (str): What to look at.
        width (int): How many letters.

    >>> echo("abcdef")
    'abcabc'
    >>> echo("xy", 1)
    'xx'
    """
    self.interface.internal_monologue(f"looking at {text}")
    return text[:width] * 2


def remember(self, content: str) -> None:
    """Keep a fact.

    Args:
        content (str): The fact.
    """
    self.memory.edit_append("human", content)
'''


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> None:
    """Make the test's folder a workspace."""
    (tmp_path / "knapper.toml").touch()


def an_archive(folder: Path) -> Path:
    for name, text in {"words.py": COUNT_VOWELS, "extras.py": THOUGHTS}.items():
        (folder / name).write_text(text)
    with tarfile.open(folder / "set.tar.gz", "w:gz") as archive:
        for name in ("words.py", "extras.py"):
            archive.add(folder / name, f"set-1.0/{name}")
            (folder / name).unlink()
        archive.addfile(tarfile.TarInfo("../../evil.py"))
    return folder / "set.tar.gz"


def test_an_archive_is_tried_taken_taken_again_and_handed_out(tmp_path: Path) -> None:
    an_archive(tmp_path)
    words = ("functions", "import", "set.tar.gz", "--module-prefix", "old")
    tried = knapper(*words, "--dry-run", cwd=tmp_path)
    assert (tried.returncode, "echo would be added to old.extras" in tried.stdout) == (1, True), (
        tried.stdout + tried.stderr
    )
    assert not list((tmp_path / "functions").rglob("*.py"))
    taken = knapper(*words, cwd=tmp_path)
    assert taken.returncode == 1
    assert "set.tar.gz:extras.py:27:5 foreign-context" in taken.stdout
    assert "take the text as a parameter and return the new one" in taken.stdout
    assert "unsafe-path" in taken.stdout
    assert taken.stdout.endswith("✗ set.tar.gz: 2 added (1 of them fixed), 1 refused\n")
    again = json.loads(knapper(*words, "--json", cwd=tmp_path).stdout)
    assert again["summary"] == {"joined": 0, "fixed": 0, "skipped": 2, "refused": 1}
    called = knapper("functions", "call", "echo", "--args", '{"text": "ab"}', cwd=tmp_path)
    assert called.stdout == "abab\n"
    out = knapper("functions", "export", "out", "echo", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (0, "✓ 1 function in out, package out\n")
    assert 'Next: pip install ./out && python -c "from out import echo"' in out.stderr
    assert knapper("functions", "export", "out", cwd=tmp_path).returncode == 2


def test_an_export_names_the_persons_own_functions_before_the_starters(tmp_path: Path) -> None:
    knapper("init", ".", cwd=tmp_path)
    text = function_text(
        "rows(text: str) -> list", "Give lines.", "return text.split()", "rows('a b') → ['a', 'b']"
    )
    more = function_text(
        "total(text: str) -> int", "Count lines.", "return len(rows(text))", "total('a b') → 2"
    )
    (tmp_path / "functions" / "zones.py").write_text(f"{text}\n\n{more}")
    out = knapper("functions", "export", "out", cwd=tmp_path)
    assert 'Next: pip install ./out && python -c "from out import total"' in out.stderr, out.stderr
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "from out import total\n" in readme
    assert "`pip install .`" in readme
    own, _, starters = readme.partition("## Starters")
    assert "`total(text)`" in own
    assert "`evaluate(" in starters
    assert "`evaluate(" not in own
