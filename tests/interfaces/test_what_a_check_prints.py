"""`functions check` at a terminal: a line per function, each code explained once, and everything with `-v`."""

from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS
from tests.kit.program import knapper

PLAIN = """def {0}(text, width=3):
    return text[:width] * 2
"""
READS = '''def line_count(path: str) -> int:
    """Count the lines of a file.

    Args:
        path: The file.

    Returns:
        How many there are.
    """
    with open(path) as file:
        return sum(1 for _ in file)
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    for name in ("first", "second"):
        (tmp_path / "lib" / f"{name}.py").write_text(f"# Of {name} things.\n\n\n{PLAIN.format(name)}")
    (tmp_path / "lib" / "vowels.py").write_text(COUNT_VOWELS)
    return tmp_path


def test_each_function_has_a_line_and_each_code_is_explained_once(library: Path) -> None:
    done = knapper("functions", "check", "lib", "--policy", "import", cwd=library)
    lines = done.stdout.splitlines()
    assert (done.returncode, [line.split()[1] for line in lines[:3]]) == (0, ["first", "second", "count_vowels"])
    assert lines[0].startswith("✓ first would be added to first, as a draft  lib/first.py:4 ")
    (row,) = [line for line in lines if "no-docstring: " in line]
    assert row.startswith("  lib/first.py:4 no-docstring: `first` has no docstring, so the model cannot know")
    assert " ×2 — " in row
    assert lines[-1].startswith("✓ 3 judged: 3 would be added (3 as draft)")
    assert "knapper functions import lib --dry-run" in done.stderr  # judges a library with its dependencies


def test_details_come_with_a_switch_and_count_what_is_listed(library: Path) -> None:
    done = knapper("functions", "check", "lib/first.py", "-v", cwd=library)
    headline, *others = done.stdout.splitlines()
    count = sum(line.startswith("  lib/first.py:") for line in others)
    assert (done.returncode, f"✗ first refused: {count} problems" in headline) == (1, True), done.stdout
    assert "lib/first.py:4:11 no-type: " in done.stdout
    assert "`width: int`, as its default is" in done.stdout
    assert "`text: …`" in done.stdout


def test_lines_are_those_of_the_file_and_what_reads_a_file_needs_no_examples_in_a_file_of_several_either(
    library: Path,
) -> None:
    text = '"""Things."""\n\n\n' + COUNT_VOWELS.replace("text: str", "text").replace("-> int", "")
    (library / "lib" / "fixed.py").write_text("\n\n\n" + text + "\n\nLIMIT = unknown_name\n")
    (library / "lib" / "alone.py").write_text(READS)
    (library / "lib" / "mixed.py").write_text(f"{READS}\n\n{COUNT_VOWELS}")
    done = knapper("functions", "check", "lib/fixed.py", "lib/alone.py", "lib/mixed.py", cwd=library)
    at = (library / "lib" / "fixed.py").read_text().splitlines().index("LIMIT = unknown_name") + 1
    assert f"lib/fixed.py:{at} undefined-name: " in done.stdout, done.stdout
    for name in ("alone", "mixed"):
        added = f"✓ line_count would be added to {name}, as a draft  lib/{name}.py:1 · warns: unproven"
        assert added in done.stdout, done.stdout
    assert "too-few-examples" not in done.stdout


THEM = COUNT_VOWELS.replace("_vowels", "_them")


def test_a_file_of_a_package_finds_its_neighbors_though_it_is_given_alone(tmp_path: Path) -> None:
    (inner := tmp_path / "lib" / "inner").mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    (tmp_path / "lib" / "sounds.py").write_text("VOWELS = 'aeiou'\n")
    for functions in (COUNT_VOWELS, f"{COUNT_VOWELS}\n\n{THEM}"):
        text = functions.replace('"aeiou"', "VOWELS")
        (inner / "letters.py").write_text(f"from ..sounds import VOWELS\n\n\n{text}")
        done = knapper("functions", "check", "lib/inner/letters.py", "--policy", "human", cwd=tmp_path)
        assert ("added to inner.letters" in done.stdout, "import-fails" in done.stdout) == (True, False)


def test_a_function_whose_name_another_file_has_is_refused_by_the_check_as_by_the_folder(folder: Path) -> None:
    (folder / "functions" / "first.py").write_text(COUNT_VOWELS)
    assert knapper("functions", "list", cwd=folder).returncode == 0
    for beside in ("", f"{THEM}\n\n"):
        (folder / "functions" / "second.py").write_text(beside + COUNT_VOWELS)
        done = knapper("functions", "check", "functions", "--policy", "human", cwd=folder)
        assert (done.returncode, "✗ count_vowels refused: name-clash" in done.stdout) == (1, True), done.stdout
        assert "is already the function at functions/first.py:" in done.stdout
        assert done.stdout.count("refused: ") == 1
