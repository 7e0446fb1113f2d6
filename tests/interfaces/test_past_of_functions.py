"""A function's history and the pending candidates, from outside: as subprocesses, and at the prompt in a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.support import COUNT_VOWELS, FLAWED
from tests.kit.program import knapper


def functions(cwd: Path, verb: str, *words: str, code: int = 0, given: str = "") -> Any:
    done = knapper("functions", verb, *words, "--json", cwd=cwd, given=given)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_a_script_looks_at_the_past_of_a_function_and_goes_back(grown: Path) -> None:
    change = ("--old", '"aeiou"', "--new", '"aeiouäöü"', "--reason", "umlauts count")
    assert functions(grown, "edit", "count_vowels", *change)["admitted"]
    first, second = functions(grown, "history", "count_vowels")["versions"]
    assert (first["by"], second["reason"], second["current"]) == ("human", "umlauts count", True)
    assert (
        '+    return sum(letter in "aeiouäöü"' in functions(grown, "diff", "count_vowels")["diff"]
    )
    assert functions(grown, "rollback", "count_vowels", first["version"][:8])["admitted"]
    assert (grown / "functions" / "words.py").read_text() == COUNT_VOWELS


def test_a_deleted_function_comes_back_to_its_file_or_by_an_import_and_both_are_in_its_history(
    grown: Path,
) -> None:
    (grown / "words.py").write_text(COUNT_VOWELS)
    knapper("functions", "list", cwd=grown)
    (grown / "functions" / "words.py").rename(grown / "functions" / "letters.py")
    knapper("functions", "list", cwd=grown)
    assert functions(grown, "delete", "count_vowels")["deleted"] == "count_vowels"
    history = knapper("functions", "history", "count_vowels", cwd=grown)
    newest, *_, oldest = history.stdout.splitlines()
    assert (newest.split()[1], oldest.split()[0]) == ("deleted", "1")
    assert history.stderr == "It is deleted. Next: knapper functions rollback count_vowels\n"
    wrong = knapper("functions", "rollback", "count_vowels", "7", cwd=grown)
    assert (
        wrong.returncode,
        "has no version `7`" in wrong.stderr,
        "Its versions: " in wrong.stderr,
    ) == (2, True, True)
    assert "brought back" not in wrong.stdout
    assert functions(grown, "rollback", "count_vowels")["admitted"]
    assert [path.name for path in (grown / "functions").glob("*.py")] == ["letters.py"]
    functions(grown, "delete", "count_vowels")
    knapper("functions", "import", "words.py", cwd=grown)
    versions = functions(grown, "history", "count_vowels")["versions"]
    assert [each["what"] for each in versions][-3:] == ["restored", "deleted", "restored"]
    assert [each["module"] for each in versions][-2:] == ["letters", "words"]


@pytest.mark.slow
def test_each_rollback_goes_one_version_further_back_and_says_to_which_until_there_is_none(
    grown: Path,
) -> None:
    file = grown / "functions" / "words.py"
    texts = [COUNT_VOWELS.replace("aeiou", letters) for letters in ("aeiou", "aeiouy", "aeiouäöü")]
    for text in texts:  # the second one fails an example
        file.write_text(text)
        assert knapper("functions", "reload", cwd=grown).returncode == 0
    for back, mark in ((2, "~"), (1, "✓")):
        done = knapper("functions", "rollback", "count_vowels", cwd=grown)
        headline = done.stdout.splitlines()[0]
        assert (done.returncode, headline[0]) == (0, mark), done.stdout
        assert f" count_vowels: version {back} of 20" in headline
        assert file.read_text() == texts[back - 1]
    last = knapper("functions", "rollback", "count_vowels", cwd=grown)
    assert (last.returncode, "has no version before version 1" in last.stderr) == (2, True)
    assert functions(grown, "rollback", "count_vowels", "3")["back"].startswith("version 3 of 20")
    assert functions(grown, "rollback", "count_vowels")["back"].startswith("version 2 of 20")


def test_a_refused_candidate_is_seen_and_confirmed_by_a_script(tmp_path: Path) -> None:
    create = ("count_vowels", "--module", "words", "--file", "-")
    assert (
        knapper("functions", "pending", cwd=tmp_path).stderr
        == "There are no rejected candidates.\n"
    )
    functions(tmp_path, "create", *create, code=1, given=FLAWED)
    seen = knapper("functions", "pending", "count_vowels", cwd=tmp_path)
    assert "returned `0`" in seen.stdout
    assert "def count_vowels(text: str) -> int:" in seen.stdout
    assert seen.stderr.endswith("knapper functions confirm count_vowels\n")
    assert functions(tmp_path, "confirm", "count_vowels")["confirmed"] == ['count_vowels("xyz")']
    assert functions(tmp_path, "pending") == {}
    nothing = knapper("functions", "confirm", "count_vowels", cwd=tmp_path)
    assert (nothing.returncode, "No candidate named" in nothing.stdout) == (1, True)


def test_an_example_is_added_by_a_script_or_refused_with_both_values(grown: Path) -> None:
    given = ("count_vowels", "--call", 'count_vowels("banana")', "--expected")
    refused = knapper("functions", "add-example", *given, "4", cwd=grown)
    assert (refused.returncode, "returned `3`; the example says `4`" in refused.stdout) == (1, True)
    assert functions(grown, "add-example", *given, "3")["admitted"]
    added = '        >>> count_vowels("banana")\n        3\n'
    assert (grown / "functions" / "words.py").read_text() == COUNT_VOWELS.replace(
        "        0\n", f"        0\n{added}"
    )
