"""`toolwright functions import` and `export` as a person types them."""

import json
import tarfile
from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS
from tests.kit.program import toolwright

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


def test_an_import_that_could_read_no_file_has_failed(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(
        'def three() -> int:\n    """Return three, é."""\n    return 3\n'.encode("latin-1")
    )
    done = toolwright("functions", "import", "latin.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "latin.py encoding: it is not UTF-8" in done.stdout
    assert "✗ latin.py: no function" in done.stdout


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
    tried = toolwright(*words, "--dry-run", cwd=tmp_path)
    assert (tried.returncode, "echo would be added to old.extras" in tried.stdout) == (1, True), (
        tried.stdout + tried.stderr
    )
    assert not list((tmp_path / "functions").rglob("*.py"))
    taken = toolwright(*words, cwd=tmp_path)
    assert taken.returncode == 1
    assert "set.tar.gz:extras.py:27:5 foreign-context" in taken.stdout
    assert "take the text as a parameter and return the new one" in taken.stdout
    assert "unsafe-path" in taken.stdout
    assert taken.stdout.endswith("✗ set.tar.gz: 2 added (1 of them fixed), 1 refused\n")
    again = json.loads(toolwright(*words, "--json", cwd=tmp_path).stdout)
    assert again["summary"] == {"joined": 0, "fixed": 0, "skipped": 2, "refused": 1}
    called = toolwright("functions", "call", "echo", "--args", '{"text": "ab"}', cwd=tmp_path)
    assert called.stdout == "abab\n"
    out = toolwright("functions", "export", "out", "echo", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (0, "✓ 1 function in out, package out\n")
    assert toolwright("functions", "export", "out", cwd=tmp_path).returncode == 2


def test_what_has_no_example_is_a_draft_whoever_imports_it_as_if_it_had_been_saved(tmp_path: Path) -> None:
    text = "def area(r):\n    return 3 * r ** 2\n\n\n" + COUNT_VOWELS.replace("count_vowels", "vowels")
    (tmp_path / "lib.py").write_text(text)
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "saved.py").write_text(text.replace("area", "space").replace("vowels", "sounds"))
    toolwright("functions", "import", "lib.py", "--policy", "human", cwd=tmp_path)
    listed = json.loads(toolwright("functions", "list", "--json", cwd=tmp_path).stdout)
    standings = {row["name"]: row["standing"] for row in listed["functions"]}
    assert standings == {"area": "draft", "vowels": "trial", "space": "draft", "sounds": "trial"}
