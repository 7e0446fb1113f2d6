"""`knapper cost`, `cap`, `pause` and `resume`, and `knapper run` in a script."""

import json
from pathlib import Path
from typing import Any

from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper

SAYS = Say("Yes.", usage=(900, 100))


def documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents of a run, a line each."""
    return [json.loads(line) for line in text.splitlines()]


def test_a_script_is_stopped_by_the_cap_of_turns_that_nobody_watches(tmp_path: Path) -> None:
    with scripted([Repeat(SAYS)]) as model:
        environment = {
            "KNAPPER_MODEL_BASE_URL": model.base_url,
            "KNAPPER_MODEL_NAME": "scripted",
            "KNAPPER_MODEL_CONTEXT_TOKENS": "16384",
            "KNAPPER_ZONE": "Pacific/Kiritimati",
        }

        def run(*words: str, code: int = 0) -> dict[str, Any]:
            done = knapper(*words, "--json", cwd=tmp_path, environment=environment)
            assert done.returncode == code, done.stderr
            return documents(done.stdout)[-1]

        assert run("cap", "unattended_tokens", "1_000") == {
            "name": "unattended_tokens",
            "most": 1_000,
            "was": 2_000_000,
        }
        first = run("run", "--message", "Hello?")
        assert first["reason"] == "replied"
        second = run("run", "--message", "Hello?", code=1)
        assert second["reason"] == "limits"
        cost = run("cost")
        assert [(row["prompt"], row["steps"]) for row in cost["rows"]] == [(900, 1)]
        assert cost["unpriced"] == ["scripted"]
        (cap,) = cost["caps"]
        assert (cap["name"], cap["spent"], cap["most"]) == ("unattended_tokens", 1_000, 1_000)
        by_turn = run("cost", "turn")
        assert by_turn["rows"][0]["message"] == "Hello?"
        assert [row["agent"] for row in run("cost", "agent")["rows"]] == ["main"]
        assert [row["agent"] for row in run("cost", "conversation")["rows"]] == ["main"]
        run("cap", "unattended_tokens", "usual")
        assert run("run", "--message", "Hello?")["reason"] == "replied"
        run("pause", "holiday")
        assert run("run", "--message", "Hello?", code=1)["reason"] == "interrupted"
        assert run("cost")["paused"] == "holiday"
        assert run("resume") == {"resumed": True}
        assert run("resume") == {"resumed": False}
        assert run("run", "--message", "Hello?")["reason"] == "replied"


def test_a_cap_that_cannot_be_is_refused_and_its_name_is_suggested(tmp_path: Path) -> None:
    for words, said in (
        (("day_token", "5"), "day_tokens"),
        (("day_tokens", "-1"), "from 0"),
        (("day_tokens", "1.5"), "from 0"),
        (("day_tokens", "nan"), "from 0"),
        (("day_tokens", "much"), "from 0"),
        (("day_money", "inf"), "from 0"),
    ):
        done = knapper("cap", "--", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
