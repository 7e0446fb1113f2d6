"""`functions check` on many files: streamed in order, on all cores, in the formats for scripts and services."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.service.judgment import Judgment
from agent_core.interfaces.commands.checking import SarifLog
from tests.interfaces.support import COUNT_VOWELS, FLAWED, HERE
from tests.kit.program import knapper
from tests.kit.terminal import KNAPPER

UNHINTED = COUNT_VOWELS.replace("    Args:\n        text: What to look at.\n\n", "").replace("vowels", "more")
TWO = f"{COUNT_VOWELS}\n\n{UNHINTED}"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Files of every kind; one contains a function that is rejected."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a file.py").write_text(COUNT_VOWELS)
    (tmp_path / "lib" / "two.py").write_text(TWO)
    lines = [json.dumps({"name": "count_vowels", "code": code}) for code in [COUNT_VOWELS] * 5 + [FLAWED]]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_many_paths_are_judged_in_order_and_what_is_found_has_its_line_in_every_form(many: Path) -> None:
    done = knapper("functions", "check", "lib", "many.jsonl", "--json", cwd=many)
    rows = [json.loads(text) for text in done.stdout.splitlines()]
    assert [row["path"] for row in rows] == [
        "lib/a file.py", "lib/two.py", "lib/two.py", *(f"many.jsonl:{n}" for n in range(1, 7)),
    ]  # fmt: skip
    assert [row["admitted"] for row in rows] == [True, True, False, *[True] * 5, False]
    assert (done.returncode, done.stderr) == (1, "")
    assert {"name", "module", "standing", "version", "fixes", "problems", "stages", "source"} <= set(rows[0])
    assert json.loads(knapper("functions", "list", "--json", cwd=many).stdout)["functions"] == []
    found = {(one["path"], one["code"], one["line"], one["severity"]) for row in rows for one in row["problems"]}
    table = knapper("functions", "check", "lib/two.py", cwd=many).stdout
    placed, levels = the_sarif_log_is_what_code_scanning_takes(many)
    for code, line, severity in (("weak-examples", 1, "warns"), ("copy", 16, "refuses")):
        assert f"lib/two.py:{line} {code}: " in table
        assert ("lib/two.py", code, line, severity) in found
        assert ("lib/two.py", code, line) in placed
        assert (levels[code] == "error") == (severity == "refuses")


def test_a_strict_check_refuses_what_a_human_is_only_warned_of_as_does_the_switch_of_a_team(many: Path) -> None:
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
    saved = knapper("functions", "reload", "--json", cwd=many)
    assert (checked.returncode, saved.returncode) == (1, 1), checked.stdout


def test_ctrl_c_ends_with_what_was_judged_and_a_whole_log(many: Path) -> None:
    slow = "import time\n\n\n" + COUNT_VOWELS.replace("    return", "    time.sleep(0.5)\n    return")
    lines = [json.dumps({"name": "count_vowels", "code": COUNT_VOWELS})] + [
        json.dumps({"name": "count_vowels", "code": slow.replace("0.5", f"0.5 + {n}")}) for n in range(30)
    ]
    (many / "slow.jsonl").write_text("\n".join(lines))
    command = [*KNAPPER, "functions", "check", "slow.jsonl", "bad.jsonl", "--json"]
    (many / "bad.jsonl").write_text("{\n")
    with subprocess.Popen(
        command, cwd=many, text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": HERE}
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = [json.loads(text) for text in process.stdout.read().splitlines()]
        assert process.wait(timeout=20) == 1
    assert first["admitted"]
    assert rest[-1]["error"]["code"] == "interrupted"
    assert len(rest) < 30


def the_sarif_log_is_what_code_scanning_takes(many: Path) -> tuple[set[tuple[str, str, int]], dict[str, str]]:
    """Check a log; return the places of its results, and the level of each rule."""
    (many / "lib" / "fixable.py").write_text(COUNT_VOWELS.replace("text: str", "text").replace("vowels", "all"))
    (many / "few.jsonl").write_text("\n" + json.dumps({"name": "count_vowels", "code": FLAWED}))
    done = knapper("functions", "check", "lib", "few.jsonl", "--sarif", cwd=many)
    assert (done.returncode, done.stderr) == (1, "")
    log = json.loads(done.stdout)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "Knapper")
    for result in run["results"]:
        check_result(result, rules)
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]}) == len(
        run["results"]
    )
    assert {result["level"] for result in run["results"]} >= {"error", "warning"}
    refused = [one for one in run["results"] if one["ruleId"] == "example-disagrees"]
    assert refused[0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "few.jsonl", "uriBaseId": "SRCROOT"}, "region": {"startLine": 2},
    }  # fmt: skip
    at = [(one["ruleId"], one["locations"][0]["physicalLocation"]) for one in run["results"]]
    placed = {(place["artifactLocation"]["uri"], rule, place["region"]["startLine"]) for rule, place in at}
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
