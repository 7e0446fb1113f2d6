"""A group answers as an agent does: its members speak one after another, each in its own turn."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.policy import Growth, Mode, Policy
from agent_core.storage import open_store
from tests.kit import Ask, Fail, Repeat, Say, ScriptedModel, Seen, Step, Wanted
from tests.kit.desk import another, ended, of
from tests.kit.program import Program, knapper, surroundings

from .groups import Cast, chosen, group_file, playing, speakers, talk, team

START = Callable[..., ScriptedModel]
GROWING = (
    Wanted(
        "create_function",
        {"function_name": "vowels_of", "function_code_with_docstring": another("vowels_of")},
    ),
)
LINES = {
    "planner": "Step 1: write it. @coder go.",
    "coder": "Written. @critic look.",
    "critic": "It is DONE.",
}


async def reasons(root: Path) -> list[dict[str, object]]:
    """Return the journal's record of each choice."""
    store = open_store(root / ".knapper" / "state.db", clock=Clock())
    try:
        return [entry.payload for entry in await store.history("team", kinds=("speaker",))]
    finally:
        await store.close()


async def test_a_member_hears_what_was_said_since_it_spoke_and_by_whom(
    tmp_path: Path, scripted: START
) -> None:
    lines = iter(["One. @coder", "Two. @planner", "Three. DONE"])
    cast = Cast(lambda *_: next(lines))
    async with team(tmp_path, scripted(playing(cast)), 'stop = { text = "DONE" }') as group:
        await talk(group, "@planner count.")
    said = [
        message["content"] for message in cast.heard[2][1].messages if message["role"] == "user"
    ]
    assert said[0].startswith("@planner count.")
    assert any(text.startswith("[from: coder] Two. @planner") for text in said)
    assert not any("[from: planner]" in text and "One." in text for text in said)
    assert sum("Two. @planner" in text for text in said) == 1


COUNTS = '''\
def is_over(self, said: list[str]) -> bool:
    """Return whether it is over, and count how often that was asked.

    Args:
        said: What was said.
    """
    self.state["asked"] = self.state.get("asked", 0) + 1
    return len(said) > 9
'''


@pytest.mark.parametrize(("mode", "growth"), [("plan", "off"), ("plan", "on"), ("ask", "on")])
async def test_the_turns_of_members_have_the_policy_of_the_groups_turn(
    tmp_path: Path, scripted: START, mode: Mode, growth: Growth
) -> None:
    lines = iter(["One. @coder", "Two. DONE"])
    cast = Cast(lambda *_: next(lines))
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "counts.py").write_text(COUNTS)
    rules = 'stop = { text = "DONE", function = "function is_over" }'
    async with team(tmp_path, scripted(playing(cast)), rules) as group:
        group.policy = Policy(mode=mode, growth=growth)
        assert ended(await talk(group, "@planner, what would you do?")).reason == "replied"
    store = open_store(tmp_path / ".knapper" / "state.db", clock=Clock())
    try:
        first = [(await store.history(name))[0].payload for name in ("planner", "coder")]
        counts = await store.states("is_over")
    finally:
        await store.close()
    given = [Policy.from_json(payload["policy"]) for payload in first]
    assert [(policy.mode, policy.growth) for policy in given] == [(mode, growth)] * 2
    offered = ["create_function" in seen.functions for _, seen in cast.heard]
    assert offered == [growth == "on"] * 2
    assert bool(counts) == (mode != "plan")


async def test_a_model_is_asked_at_most_once_a_turn_and_its_name_counts(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, number: f"Speech {number} of {name}.", lambda *_: chosen("critic"))
    async with team(
        tmp_path, scripted(playing(cast)), 'choose = "model"\nstop = { turns = 4 }'
    ) as group:
        heard = await talk(group, "Talk.")
    assert speakers(heard) == ["critic", "planner", "critic", "coder"]
    assert len(cast.choices) == 4
    tool = cast.choices[1].body["tools"][0]["function"]
    assert tool["parameters"]["properties"]["name"]["enum"] == ["planner", "coder"]
    assert ["critic" in str(choice.get("passed", "")) for choice in await reasons(tmp_path)] == [
        False,
        True,
    ] * 2


async def test_under_a_schema_the_model_can_only_choose_and_sees_no_talk(
    tmp_path: Path, scripted: START
) -> None:
    asked: list[Seen] = []

    def answer(seen: Seen) -> Step:
        if '"choose"' in json.dumps(seen.body["response_format"]):
            asked.append(seen)
            call = {"name": "choose", "arguments": {"name": "coder"}}
            return Say(json.dumps({"thought": "Code.", "call": call}))
        return Say(json.dumps({"thought": "So.", "reply": "Fine."}))

    (tmp_path / "knapper.toml").write_text('[model]\nmode = "constrained"\n')
    async with team(
        tmp_path, scripted([Repeat(answer)]), 'choose = "model"\nstop = { turns = 1 }'
    ) as group:
        assert speakers(await talk(group, "It is slow.")) == ["coder"]
    assert [message["role"] for message in asked[0].messages] == ["system", "user"]
    assert '"reply"' not in json.dumps(asked[0].body["response_format"])


@pytest.mark.parametrize(
    ("stop", "spoken"),
    [
        pytest.param("stop = { turns = 2 }", 2, id="turns"),
        pytest.param("", 7, id="no progress"),
        pytest.param(
            "stop = { turns = 9, no_progress = false }",
            9,
            id="progress not wanted",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_a_group_stops(tmp_path: Path, scripted: START, stop: str, spoken: int) -> None:
    cast = Cast(lambda *_: "Well, well.")
    group_file(tmp_path, stop)
    async with team(tmp_path, scripted(playing(cast))) as group:
        heard = await talk(group, "Talk.")
    assert len(speakers(heard)) == spoken
    assert ended(heard).reason == ("replied" if stop else "repeated")
    assert of(events.Warned, heard)


async def test_a_group_hands_back_to_a_user_who_is_asked_and_goes_on(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, number: ["@user on which day?", "Booked for Monday. DONE"][number])
    async with team(tmp_path, scripted(playing(cast)), 'stop = { text = "DONE" }') as group:
        first = await talk(group, "@coder book.")
        second = await talk(group, "@coder on Monday.")
    assert speakers(first) == ["coder", "user"]
    assert ended(first).reply == "@user on which day?"
    assert speakers(second) == ["coder"]


POLICY = '''\
def next_one(names: list[str], last: str) -> str:
    """Choose who comes next.

    Args:
        names: Who may speak.
        last: Who has just spoken.
    """
    return {}


def is_agreed(said: list[str]) -> bool:
    """Check whether a talk is over.

    Args:
        said: What was said.
    """
    return "Speech 2" in said[-1]
'''


@pytest.mark.parametrize(
    ("body", "expected", "rule"),
    [
        pytest.param("names[-1]", ["critic", "coder", "critic"], "next_one", id="it chooses"),
        pytest.param(
            "str(1 / (len(names) - len(names)))",
            ["planner", "coder", "critic"],
            "least_recent",
            id="it fails",
        ),
    ],
)
async def test_a_grown_function_chooses_in_the_sandbox_and_says_when_it_is_over(
    tmp_path: Path, scripted: START, body: str, expected: list[str], rule: str
) -> None:
    workspace(tmp_path)
    (tmp_path / "functions" / "policy.py").write_text(POLICY.format(body))
    cast = Cast(lambda name, number: f"Speech {number} of {name}.")
    text = 'rules = ["function next_one"]\nstop = { function = "function is_agreed", turns = 9 }'
    async with team(tmp_path, scripted(playing(cast)), text) as group:
        heard = await talk(group, "Talk.")
    assert speakers(heard) == expected
    assert "is_agreed says that it is over." in [
        event.message for event in of(events.Warned, heard)
    ]
    why = await reasons(tmp_path)
    assert {choice["rule"] for choice in why} == {rule}
    assert all(bool(choice.get("passed")) == (rule == "least_recent") for choice in why)


def workspace(root: Path) -> None:
    """Make the folder a workspace."""
    (root / "functions").mkdir()
    (root / "knapper.toml").touch()


def command(model: ScriptedModel, *more: str) -> tuple[str, ...]:
    """Return the words of a command that talks to the group."""
    return ("run", "--base-url", model.base_url, "--model", "scripted", "--agent", "team", *more)


def test_a_group_answers_on_the_command_line_and_says_why_who_spoke(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, _: LINES[name])
    group_file(tmp_path, 'stop = { text = "DONE" }')
    workspace(tmp_path)
    words = command(scripted(playing(cast)), "--message", "@planner build a cache.")
    told = [json.loads(row) for row in knapper(*words, "--json", cwd=tmp_path).stdout.splitlines()]
    assert [event["agent"] for event in told if event["type"] == "speaker"] == [*LINES]
    assert {event["agent"] for event in told if event["type"] in ("text", "usage")} == {*LINES}
    assert {event["agent"] for event in told} == {*LINES, "team"}
    assert (told[-1]["reason"], told[-1]["reply"]) == ("replied", "It is DONE.")
    assert cast.choices == []
    first, *_ = why = asyncio.run(reasons(tmp_path))
    by = ["user addressed planner", "planner addressed coder", "coder addressed critic"]
    assert [choice["reason"] for choice in why] == by
    chosen_by_rule = {"rule": "addressed", "asked_model": False, "step": 1}
    assert first == {"name": "planner", "reason": by[0], **chosen_by_rule}
    shown = knapper(*words, cwd=tmp_path)
    assert shown.stdout.splitlines() == [f"{name}: {text}" for name, text in LINES.items()]


def test_a_handoff_within_a_group_gives_the_floor_and_the_brief(
    tmp_path: Path, scripted: START
) -> None:
    brief = {
        "to": "critic",
        "goal": "Judge the plan.",
        "facts": ["It has three steps."],
        "references": ["plan.md"],
    }

    def says(name: str, number: int) -> str | Step:
        return (
            Ask(Wanted("hand_off", brief))
            if name == "planner"
            else f"Speech {number} of {name}. DONE"
        )

    cast = Cast(says)
    model = scripted(playing(cast))
    group_file(tmp_path, 'stop = { text = "DONE" }')
    workspace(tmp_path)
    done = knapper(
        *command(model, "--json", "--message", "A secret. Planner, begin."), cwd=tmp_path
    )
    told = [json.loads(row) for row in done.stdout.splitlines()]
    chosen_ones = [(event["agent"], event["rule"]) for event in told if event["type"] == "speaker"]
    assert chosen_ones == [("planner", "addressed"), ("critic", "handoff")]
    (heard,) = [seen.text for name, seen in cast.heard if name == "critic"]
    parts = "Goal: Judge the plan.\nFacts:\n- It has three steps.\nReferences:\n- plan.md"
    assert f"[from: planner] hands this over to you:\n{parts}" in heard
    assert heard.count("Judge the plan.") == 1
    behind = knapper("agents", "run", "--until-idle", "--json", cwd=tmp_path)
    assert json.loads(behind.stdout) == {"turns": 0}  # no member gets it again outside of the group


def test_after_a_kill_the_same_member_is_chosen_and_no_model_is_asked_again(
    tmp_path: Path, scripted: START
) -> None:
    slowly = [True]

    def says(name: str, number: int) -> str | Step:
        return (
            Say("slowly " * 200, pause_s=0.05)
            if name == "critic" and slowly
            else f"Speech {number}. DONE"
        )

    cast = Cast(says, lambda *_: chosen("critic"))
    model = scripted(playing(cast))
    group_file(tmp_path, 'choose = "model"\nstop = { text = "DONE" }')
    workspace(tmp_path)
    reading, writing = os.pipe()
    talking = command(model, "--message", "Talk.")
    killed = Program(talking, [0, writing, 2], cwd=tmp_path, environment=surroundings({}))
    os.close(writing)
    assert os.read(reading, 40).startswith(b"critic: ")
    killed.kill()
    killed.wait()
    os.close(reading)
    slowly.clear()
    done = knapper(*command(model, "--resume"), cwd=tmp_path)
    assert done.stdout.startswith("critic: Speech "), done.stderr
    assert len(cast.choices) == 1
    assert [choice["rule"] for choice in asyncio.run(reasons(tmp_path))] == ["model", "cut_off"]


async def test_who_failed_does_not_speak_before_the_one_who_is_addressed_next(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, _: Fail(400, "flagged") if name == "critic" else LINES[name])
    async with team(tmp_path, scripted(playing(cast)), "stop = { turns = 1 }") as group:
        failed = await talk(group, "@critic look.")
        assert (speakers(failed), ended(failed).reason) == (["critic"], "failed")
        assert speakers(await talk(group, "@planner begin.")) == ["planner"]


async def test_what_its_members_did_is_in_the_receipt_of_the_group(
    tmp_path: Path, scripted: START
) -> None:
    def says(name: str, _: int) -> str | Step:
        is_first = not any(who == "coder" for who, _ in cast.heard[:-1])
        return Ask(*GROWING) if name == "coder" and is_first else LINES[name]

    cast = Cast(says)
    async with team(tmp_path, scripted(playing(cast)), 'stop = { text = "DONE" }') as group:
        heard = await talk(group, "@planner build a cache.")
        assert ended(heard).made == group.receipt.to_json() == {"created": ["vowels_of"]}
