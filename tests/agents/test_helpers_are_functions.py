"""A helper is a function to its caller: a schema from its file, a result of its type, and nothing else."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.events import CallAnswered, CallStarted, FunctionsChanged, TurnEnded
from agent_core.views.call_log import helper_spent
from agent_core.workspace.state_store import opened_state
from sandbox import Sandbox
from tests.agents.helper_files import FINDER, call, give, is_helper, one_call, put, write
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, ScriptedModel, Seen, Wanted, contains, shows
from tests.kit.desk import answers, ended, of
from tests.kit.desk import desk as open_desk
from tests.kit.program import knapper
from tests.kit.waiting import until_it_is


async def test_only_the_result_enters_the_context_of_the_caller(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    work = Expect(
        Ask(Wanted("count_vowels", {"text": "queueing"})),
        contains('"most": 3'),
        contains("queueing sky"),
    )
    desk = await at_desk(
        [Expect(call(), shows("vowel_finder")), work, give(["queueing"]), Say("It is queueing.")]
    )
    events = await desk.say("Which words?")
    assert answers(events) == ['["queueing"]']
    assert ended(events).reply == "It is queueing."
    assert desk.model.requests[1].functions == ["give_result", "count_vowels"]
    last = desk.model.requests[-1]
    assert [message["role"] for message in last.messages][-3:] == ["user", "assistant", "tool"]
    assert "give_result" not in json.dumps(last.messages)


async def test_a_result_of_another_type_is_fixed_once_by_its_own_functions(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    fixed = [give({"a": 1}), Expect(give(["sky"]), contains("last chance"))]
    no_result = [give({"a": 1}), give({"a": 2})]
    prose = [Say("I cannot do that."), Say("Sorry, I cannot.")]
    strange = [Ask(Wanted("slug", {"text": "A b"})), Expect(give([]), contains("no function"))]
    replies: list[list[Any]] = [
        fixed,
        no_result,
        prose,
        strange,
        [Say('["sky"]')],
        [Say('```json\n["sky"]\n```')],
    ]
    desk = await at_desk([step for reply in replies for step in one_call(*reply)])
    told = [
        of(CallAnswered, await desk.say(f"Which words? {number}"))[0]
        for number in range(len(replies))
    ]
    assert [answer.outcome == "returned" for answer in told] == [
        True,
        False,
        False,
        True,
        True,
        True,
    ]
    assert [answer.text for answer in told if answer.outcome == "returned"] == [
        '["sky"]',
        "[]",
        '["sky"]',
        '["sky"]',
    ]
    assert told[1].outcome == told[2].outcome == "raised"
    assert [
        part in told[1].text for part in ("gave no result", "`list[str]`", "result: expected")
    ] == [True] * 3


async def test_a_helper_that_loops_stops_at_its_budget(tmp_path: Path, at_desk: OpenDesk) -> None:
    put(tmp_path)
    steps = [Ask(Wanted("count_vowels", {"text": f"word {n}"})) for n in range(4)]
    desk = await at_desk(one_call(*steps, reply="It did not work."))
    [answer] = of(CallAnswered, await desk.say("Which words?"))
    assert "gave no result" in answer.text
    assert "4 steps" in answer.text
    assert answer.detail["helper"]["steps"] == 4
    assert sum(map(is_helper, desk.model.requests)) == 4


@pytest.mark.parametrize(("limit", "asks"), [("tokens = 10", 1), ("steps = 0", 0)])
async def test_a_limit_ends_a_run_before_more_requests(
    tmp_path: Path, at_desk: OpenDesk, limit: str, asks: int
) -> None:
    name, _, most = limit.partition(" = ")
    put(tmp_path, text=re.sub(rf"{name} = \d+", limit, FINDER))
    desk = await at_desk(one_call(*[Ask(Wanted("count_vowels", {"text": "word"}))] * asks))
    [answer] = of(CallAnswered, await desk.say("Which words?"))
    assert f"The limit of {most} {name} is reached" in answer.text
    assert "helpers/vowel_finder.toml" in answer.text
    assert sum(map(is_helper, desk.model.requests)) == asks


async def test_seconds_end_a_run_in_the_middle_of_a_reply(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path, text=FINDER.replace("seconds = 60", "seconds = 0.5"))
    slow = Say("thinking " * 40, pause_s=0.2)
    desk = await at_desk(one_call(slow), model__stream=True)
    [answer] = of(CallAnswered, await desk.say("Which words?"))
    assert "The limit of 0.5 seconds is reached" in answer.text


async def test_helpers_of_one_reply_run_at_the_same_time(tmp_path: Path, at_desk: OpenDesk) -> None:
    put(tmp_path)
    both = Ask(Wanted("vowel_finder", {"text": "one"}), Wanted("vowel_finder", {"text": "two"}))
    desk = await at_desk([both, _named, _named, Say("Done.")])
    events = [
        event for event in await desk.say("Both.") if isinstance(event, CallStarted | CallAnswered)
    ]
    first, second, *ends = [event for event in events if event.name == "vowel_finder"]
    assert isinstance(first, CallStarted)
    assert isinstance(second, CallStarted)  # both start before either is answered
    texts = {end.call_id: end.text for end in ends if isinstance(end, CallAnswered)}
    assert texts == {first.call_id: '["one"]', second.call_id: '["two"]'}


def _named(seen: Seen) -> Ask:
    return give(["one" if '"one"' in seen.text else "two"])


async def test_a_helper_below_a_helper_needs_the_word_of_its_file(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    upper = FINDER.replace("steps = 4", "steps = 4, depth = 2").replace(
        "functions", 'helpers = ["*"]\nfunctions'
    )
    put(tmp_path, "upper", upper)
    write(tmp_path, "lower", FINDER)
    below = Expect(Ask(Wanted("lower", {"text": "below"})), shows("lower"))
    desk = await at_desk([call("upper"), below, give(["low"]), give(["high"]), Say("Done.")])
    assert answers(await desk.say("Which words?")) == ['["high"]']
    shown = [seen.functions for seen in desk.model.requests[1:3]]
    assert shown == [["give_result", "count_vowels", "lower"], ["give_result", "count_vowels"]]


async def test_what_a_helper_used_is_on_the_line_of_its_caller(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    (tmp_path / "knapper.toml").write_text(
        "[models.scripted]\nprice = { input = 1000, output = 2000 }\n", "utf-8"
    )
    desk = await at_desk(one_call(Say('["sky"]', usage=(100, 7))))
    events = await desk.say("Which words?")
    [answer] = of(CallAnswered, events)
    assert (answer.detail["helper"]["steps"], answer.detail["helper"]["tokens"]) == (1, 107)
    assert helper_spent(answer.detail["helper"]) == "1 step, 107 tokens, $0.1140"
    [last] = of(TurnEnded, events)
    assert last.usage["prompt_tokens"] > 100


async def test_the_transcript_is_kept_under_a_name_of_its_own(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    desk = await at_desk(one_call(give(["sky"])))
    [answer] = of(CallAnswered, await desk.say("Which words?"))
    name = answer.detail["helper"]["agent"]
    assert name.startswith("helper--vowel_finder-")
    assert await desk.workspace.helpers.runs() == {"vowel_finder": [name]}
    document = json.loads(await desk.workspace.export_agent(name))
    assert "queueing sky" in json.dumps(document)
    await desk.agent.aclose()
    async with opened_state(tmp_path) as state:
        await state.moves.delete("main")
        assert await state.store.agent_names() == []


SHOWN = shows("new_helper"), shows("vowel_finder")


async def test_the_model_is_told_of_helpers_that_others_save(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    heard: list[FunctionsChanged] = []
    desk = await at_desk(
        [
            Say("Hi."),
            Expect(
                Say("Hm."), contains("appeared: new_helper(text"), contains("loads again"), *SHOWN
            ),
        ]
    )
    desk.agent.functions.on_change(heard.append)
    await desk.say("Hello")
    write(tmp_path, "vowel_finder", FINDER.replace('"list[str]"', '"lits[str]"'))
    await until_it_is(lambda: bool(heard))
    assert "helpers/vowel_finder.toml:3 inexpressible-type" in heard[0].rejected[0]
    assert heard[0].lines == {heard[0].rejected[0]: 'result = "lits[str]"'}
    assert [*desk.workspace.helpers.helpers] == ["vowel_finder"], "the last good version"
    write(tmp_path, "vowel_finder", FINDER)
    await until_it_is(lambda: len(heard) > 1)
    write(tmp_path, "new_helper", FINDER.replace("many vowels", "few letters"))
    await until_it_is(lambda: len(heard) > 2)
    assert heard[1].fixed == ("helpers/vowel_finder.toml",)
    assert heard[2].loaded == ("new_helper",)
    await desk.say("Hello again")


async def test_what_was_done_to_helpers_meanwhile_is_told_at_the_next_start(
    tmp_path: Path, at_desk: OpenDesk, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    put(tmp_path)
    write(tmp_path, "other", FINDER.replace("many vowels", "few letters"))
    async with open_desk(tmp_path, scripted([]), one_sandbox):
        pass
    write(tmp_path, "vowel_finder", FINDER.replace("steps = 4", "steps = -4"))
    (tmp_path / "helpers" / "other.toml").unlink()
    again = await at_desk([Expect(Say("Hi."), shows("vowel_finder"))])
    await again.say("Hello")
    since = again.workspace.helpers.since
    assert since is not None
    assert (since.loaded, since.removed) == ((), ("other",))
    assert "helpers/vowel_finder.toml:5 budget" in since.rejected[0]
    told = knapper("helpers", "history", "other", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["versions"][-1]["reason"] == "its file was removed"


def _step(name: str, **arguments: object) -> Say:
    """Return one call as a model under a schema writes it."""
    return Say(json.dumps({"thought": "So.", "call": {"name": name, "arguments": arguments}}))


async def test_under_a_schema_a_helper_has_its_functions_and_its_result(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    offered: list[str] = []

    def work(seen: Seen) -> Say:
        offered.append(json.dumps(seen.body["response_format"]))
        done = (
            "Result of count_vowels: 5\nIf you have what was asked for, call give_result"
            in seen.text
        )
        return (
            _step("give_result", result=["sky"]) if done else _step("count_vowels", text="queueing")
        )

    primary = (
        _step("vowel_finder", text="queueing sky"),
        Say(json.dumps({"thought": "So.", "reply": "Sky."})),
    )
    desk = await at_desk([primary[0], work, work, primary[1]], model__mode="constrained")
    events = await desk.say("Which words have many vowels?")
    assert answers(events) == ['["sky"]']
    assert ended(events).reply == "Sky."
    assert all('"count_vowels"' in schema and '"give_result"' in schema for schema in offered)
