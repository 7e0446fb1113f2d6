"""`functions check`: a line per function, in order, in the formats for scripts, and with a reader on request."""

import json
import os
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.service.judgment import Judgment
from knapper_ext.exchange.sarif import SarifLog
from tests.interfaces.support import COUNT_VOWELS, FLAWED
from tests.kit import scripted
from tests.kit.desk import HOLLOW, VOWELS
from tests.kit.drawing import sampled
from tests.kit.play import reading
from tests.kit.program import Program, knapper, surroundings
from tests.kit.steps import Seen, Step
from tests.kit.terminal import terminal
from tests.kit.waiting import patience_s

UNHINTED = COUNT_VOWELS.replace("    Args:\n        text: What to look at.\n\n", "").replace(
    "vowels", "more"
)
TWO = f"{COUNT_VOWELS}\n\n{UNHINTED}"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Files of every kind; one contains a function that is rejected."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a file.py").write_text(COUNT_VOWELS)
    (tmp_path / "lib" / "two.py").write_text(TWO)
    lines = [
        json.dumps({"name": "count_vowels", "code": code}) for code in [COUNT_VOWELS] * 5 + [FLAWED]
    ]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_many_paths_are_judged_in_order_and_what_is_found_has_its_line_in_every_form(
    many: Path,
) -> None:
    done = knapper("functions", "check", "lib", "many.jsonl", "--json", cwd=many)
    rows = [json.loads(text) for text in done.stdout.splitlines()]
    assert [row["path"] for row in rows] == [
        "lib/a file.py", "lib/two.py", "lib/two.py", *(f"many.jsonl:{n}" for n in range(1, 7)),
    ]  # fmt: skip
    assert [row["admitted"] for row in rows] == [True, True, False, *[True] * 5, False]
    assert (done.returncode, done.stderr) == (1, "")
    assert {
        "name",
        "module",
        "standing",
        "version",
        "fixes",
        "problems",
        "stages",
        "source",
    } <= set(rows[0])
    assert json.loads(knapper("functions", "list", "--json", cwd=many).stdout)["functions"] == []
    found = {
        (one["path"], one["code"], one["line"], one["severity"])
        for row in rows
        for one in row["problems"]
    }
    table = knapper("functions", "check", "lib/two.py", cwd=many).stdout
    placed, levels = the_sarif_log_is_what_code_scanning_takes(many)
    for code, line, severity in (("weak-examples", 1, "warns"), ("copy", 16, "refuses")):
        assert f"lib/two.py:{line} {code}: " in table
        assert ("lib/two.py", code, line, severity) in found
        assert ("lib/two.py", code, line) in placed
        assert (levels[code] == "error") == (severity == "refuses")


def test_the_row_of_a_function_has_its_own_text_and_not_that_of_its_file(tmp_path: Path) -> None:
    rows = []
    for count in (2, 12):
        text = "".join(
            f"def add_{at}(a: int) -> int:\n    return a + {at}\n\n\n" for at in range(count)
        )
        (tmp_path / "many.py").write_text(text)
        done = knapper("functions", "check", "many.py", "--json", cwd=tmp_path)
        rows.append(done.stdout.splitlines()[1])
    assert json.loads(rows[1])["source"] == "def add_1(a: int) -> int:\n    return a + 1\n"
    assert len(rows[1]) <= 1.2 * len(rows[0])


def test_a_strict_check_refuses_what_a_human_is_only_warned_of_as_does_the_switch_of_a_team(
    many: Path,
) -> None:
    human = ("--policy", "human")
    for options, code, said in (
        (human, 0, ["✓ 2 judged: 2 would be added, 2 warned"]),
        ((*human, "--strict"), 1, ["✗ 2 judged: 1 would be added, 1 refused, 2 warned"]),
        ((*human, "--quiet"), 0, []),
    ):
        done = knapper("functions", "check", "lib/two.py", *options, cwd=many)
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (code, said)
    for wrong in (("--json", "--sarif"), ("--name", "f"), ("--module", "m")):
        assert knapper("functions", "check", "many.jsonl", *wrong, cwd=many).returncode == 2
    (many / "knapper.toml").write_text("[gate]\nstrict = true\n")
    (many / "functions").mkdir(exist_ok=True)
    (many / "functions" / "two.py").write_text(TWO)
    checked = knapper("functions", "check", "functions/two.py", *human, cwd=many)
    (many / "functions" / "two.py").write_text(FLAWED)
    saved = knapper("functions", "reload", "--json", cwd=many)
    assert (checked.returncode, saved.returncode) == (1, 1), checked.stdout


def test_ctrl_c_ends_with_what_was_judged_and_a_whole_log(many: Path) -> None:
    slow = "import time\n\n\n" + COUNT_VOWELS.replace(
        "    return", "    time.sleep(0.5)\n    return"
    )
    lines = [json.dumps({"name": "count_vowels", "code": COUNT_VOWELS})] + [
        json.dumps({"name": "count_vowels", "code": slow.replace("0.5", f"0.5 + {n}")})
        for n in range(12)
    ]
    (many / "slow.jsonl").write_text("\n".join(lines))
    command = ["functions", "check", "slow.jsonl", "bad.jsonl", "--json"]
    (many / "bad.jsonl").write_text("{\n")
    ours, theirs = os.pipe()
    with os.fdopen(ours, encoding="utf-8") as out, Path(os.devnull).open("r+") as nothing:
        streams = [nothing.fileno(), theirs, nothing.fileno()]
        program = Program(command, streams, cwd=many, environment=surroundings({}))
        os.close(theirs)
        first = json.loads(out.readline())
        os.kill(program.pid, signal.SIGINT)
        rest = [json.loads(text) for text in out.read().splitlines()]
        assert program.wait(patience_s()) == 1
    assert first["admitted"]
    assert rest[-1]["error"]["code"] == "interrupted"
    assert len(rest) < 12


def the_sarif_log_is_what_code_scanning_takes(
    many: Path,
) -> tuple[set[tuple[str, str, int]], dict[str, str]]:
    """Check a log; return the places of its results, and the level of each rule."""
    (many / "lib" / "fixable.py").write_text(
        COUNT_VOWELS.replace("text: str", "text").replace("vowels", "all")
    )
    (many / "few.jsonl").write_text("\n" + json.dumps({"name": "count_vowels", "code": FLAWED}))
    done = knapper("functions", "check", "lib", "few.jsonl", "--sarif", cwd=many)
    assert (done.returncode, done.stderr) == (1, "")
    log = json.loads(done.stdout)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "Knapper")
    for result in run["results"]:
        check_result(result, rules)
    assert len(
        {result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]}
    ) == len(run["results"])
    assert {result["level"] for result in run["results"]} >= {"error", "warning"}
    refused = [one for one in run["results"] if one["ruleId"] == "example-disagrees"]
    assert refused[0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "few.jsonl", "uriBaseId": "SRCROOT"}, "region": {"startLine": 2},
    }  # fmt: skip
    at = [(one["ruleId"], one["locations"][0]["physicalLocation"]) for one in run["results"]]
    placed = {
        (place["artifactLocation"]["uri"], rule, place["region"]["startLine"]) for rule, place in at
    }
    return placed, {one["ruleId"]: one["level"] for one in run["results"]}


def check_result(result: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    """Check a result and its rule against the published schema and GitHub's page on SARIF."""
    rule = rules[result["ruleIndex"]]
    assert rule["id"] == result["ruleId"]
    for key in ("shortDescription", "fullDescription", "help"):
        assert rule[key]["text"]
    assert result["level"] in {"error", "warning", "note"}
    assert result["message"]["text"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert place["region"]["startLine"] >= 1
    assert place["region"].get("startColumn", 1) >= 1
    assert not place["artifactLocation"]["uri"].startswith(("/", ".."))
    assert " " not in place["artifactLocation"]["uri"]
    assert result["partialFingerprints"]["primaryLocationLineHash"]
    for fix in result.get("fixes", ()):
        assert fix["artifactChanges"][0]["replacements"][0]["deletedRegion"]["startLine"] >= 1


def test_the_fix_of_a_fix_gives_the_text_that_the_gate_judged(tmp_path: Path) -> None:
    (file := tmp_path / "a.py").write_text("import os\n\ndef f(x):\n    return x\n")
    source = "import os\n\n\ndef f(x: int) -> int:\n    return x\n"
    fix = {"code": "hint", "message": "wrote hints", "diff": ""}
    verdict = {"name": "f", "path": str(file), "problems": [], "fixes": [fix], "source": source}
    log = SarifLog(tmp_path)
    log.add(Judgment.from_json(verdict))
    (result,) = json.loads(log.text())["runs"][0]["results"]
    lines = file.read_text().splitlines(keepends=True)
    for change in reversed(result["fixes"][0]["artifactChanges"][0]["replacements"]):
        region = change["deletedRegion"]
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [change["insertedContent"]["text"]]
    assert "".join(lines) == source


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
        (tmp_path / "lib" / f"{name}.py").write_text(
            f"# Of {name} things.\n\n\n{PLAIN.format(name)}"
        )
    (tmp_path / "lib" / "vowels.py").write_text(COUNT_VOWELS)
    return tmp_path


def test_each_function_has_a_line_and_each_code_is_explained_once(library: Path) -> None:
    done = knapper("functions", "check", "lib", "--policy", "import", cwd=library)
    lines = done.stdout.splitlines()
    assert (done.returncode, [line.split()[1] for line in lines[:3]]) == (
        0,
        ["first", "second", "count_vowels"],
    )
    assert lines[0].startswith("✓ first would be added to first, as a draft  lib/first.py:4 ")
    (row,) = [line for line in lines if "no-docstring: " in line]
    assert row.startswith(
        "  lib/first.py:4 no-docstring: `first` has no docstring, so the model cannot know"
    )
    assert " ×2 — " in row
    assert lines[-1].startswith("✓ 3 judged: 3 would be added (3 as draft)")
    assert (
        "knapper functions import lib --dry-run" in done.stderr
    )  # judges a library with its dependencies


def test_details_come_with_a_switch_and_count_what_is_listed(library: Path) -> None:
    done = knapper("functions", "check", "lib/first.py", "-v", cwd=library)
    headline, *others = done.stdout.splitlines()
    count = sum(line.startswith("  lib/first.py:") for line in others)
    assert (done.returncode, f"✗ first refused: {count} problems" in headline) == (1, True), (
        done.stdout
    )
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
    done = knapper(
        "functions", "check", "lib/fixed.py", "lib/alone.py", "lib/mixed.py", cwd=library
    )
    at = (library / "lib" / "fixed.py").read_text().splitlines().index("LIMIT = unknown_name") + 1
    assert f"lib/fixed.py:{at} undefined-name: " in done.stdout, done.stdout
    for name in ("alone", "mixed"):
        added = (
            f"✓ line_count would be added to {name}, as a draft  lib/{name}.py:1 · warns: unproven"
        )
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
        done = knapper(
            "functions", "check", "lib/inner/letters.py", "--policy", "human", cwd=tmp_path
        )
        assert ("added to inner.letters" in done.stdout, "import-fails" in done.stdout) == (
            True,
            False,
        )


def test_a_function_whose_name_another_file_has_is_refused_by_the_check_as_by_the_folder(
    folder: Path,
) -> None:
    (folder / "functions" / "first.py").write_text(COUNT_VOWELS)
    assert knapper("functions", "list", cwd=folder).returncode == 0
    for beside in ("", f"{THEM}\n\n"):
        (folder / "functions" / "second.py").write_text(beside + COUNT_VOWELS)
        done = knapper("functions", "check", "functions", "--policy", "human", cwd=folder)
        assert (done.returncode, "✗ count_vowels refused: name-clash" in done.stdout) == (
            1,
            True,
        ), done.stdout
        assert "is already the function at functions/first.py:" in done.stdout
        assert done.stdout.count("refused: ") == 1


def by_description(seen: Seen) -> Step:
    return reading("network" if "Send a mail" in seen.text else "nothing")(seen)


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mails.py").write_text(f"{HOLLOW}\n\n{VOWELS}")
    (tmp_path / "lib" / "mail.py").write_text(HOLLOW)
    (tmp_path / "knapper.toml").touch()
    return tmp_path


def judged(root: Path, *command: str) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the verdicts by function, and how many descriptions the reader was shown."""
    with scripted([], reader=by_description) as model:
        done = knapper("functions", *command, "--json", cwd=root, environment=model.environment)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}, len(model.readings)


def found(row: dict[str, Any]) -> dict[str, str]:
    return {problem["code"]: problem["severity"] for problem in row["problems"]}


@pytest.mark.sampled
def test_a_check_asks_the_reader_if_it_is_told_to_and_reports_what_it_said(lib: Path) -> None:
    policies = {"human": "warns", "import": "warns", "agent": "refuses"}
    for policy, file in sampled(product(policies, ("lib/mail.py", "lib/mails.py", "")), 2):
        reader = ("--reader",) if file else ()
        rows, asked = judged(lib, "check", file or "lib/mails.py", "--policy", policy, *reader)
        assert found(rows["send_mail"]).get("reaches-nothing") == (
            policies[policy] if file else None
        )
        assert (rows["send_mail"].get("reader") or {}).get("reach") == ("network" if file else None)
        assert asked == (len(rows) if file else 0)


@pytest.mark.parametrize(
    ("flags", "standing", "asked"), [((), "trial", 0), (("--reader",), "draft", 2)]
)
def test_an_import_makes_a_draft_of_what_the_reader_doubts(
    lib: Path, flags: tuple[str, ...], standing: str, asked: int
) -> None:
    with scripted([], reader=by_description) as model:
        done = knapper(
            "functions", "import", "lib/mails.py", *flags, cwd=lib, environment=model.environment
        )
        listed = knapper("functions", "list", "--json", cwd=lib)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["standing"] for row in json.loads(listed.stdout)["functions"]}
    assert (rows["send_mail"], len(model.readings)) == (standing, asked)


def test_a_reader_that_is_off_cannot_be_asked_for(lib: Path) -> None:
    (lib / "knapper.toml").write_text('[gate]\nreader = "off"\n')
    for command in ("check", "import"):
        done = knapper("functions", command, "lib/mail.py", "--reader", cwd=lib)
        assert (done.returncode, "No reader can be asked: gate.reader is off." in done.stderr) == (
            2,
            True,
        )
        assert 'Set gate.reader to "same" or to a model' in done.stderr


@pytest.mark.slow
def test_a_bar_on_a_terminal_tells_how_far_it_is_and_goes(many: Path) -> None:
    with terminal("functions", "check", "-q", "many.jsonl", cwd=many) as screen:
        screen.wait_for("of 6 judged")
        assert screen.exit_code() == 1
        text = "\n".join(screen.screen())
    assert "6 judged: 5 would be added, 1 refused" in text
    assert "░" not in text
