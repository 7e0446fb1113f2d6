"""Threads and agents stop at their limits with an honest answer; a person decides when nothing moves."""

from pathlib import Path

import pytest

from agent_core.base.events import CallAnswered, Warned
from agent_core.storage import PauseAgent, Post
from agent_core.workspace.supervision import Supervision
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted
from tests.kit.desk import ended, of

from .team import Part, describe, said_last, team
from .test_messages_between_agents import asking, calling


def telling(other: str) -> Part:
    """Return an agent that sends a new note for each that it gets."""

    def play(seen: Seen) -> Step:
        if seen.messages[-1]["role"] == "tool":
            return Say("Sent.")
        text = f"Number {len(seen.messages) * 7919}: {said_last(seen)[-200:][::-1]}"
        return Ask(Wanted("message_agent", {"agent": other, "message": text}))

    return play


async def test_a_ping_pong_stops_at_its_hops(tmp_path: Path) -> None:
    async with team(
        tmp_path, {"ada": telling("bob"), "bob": telling("ada")}, runner__hops=5
    ) as agents:
        await agents.say("Start.", to="ada")
        await agents.work()
        sent = [event for event in agents.heard if isinstance(event, CallAnswered)]
        assert [event.outcome for event in sent].count("returned") == 4
        assert "The limit of 5 hops is reached" in sent[-1].text
        assert "[runner] of knapper.toml" in sent[-1].text


def endless(seen: Seen) -> Step:
    """Search for one function after another."""
    return Ask(Wanted("list_functions", {"pattern": f"a word {len(seen.messages)}"}))


async def test_an_agent_that_goes_on_and_on_answers_that_its_budget_is_spent(
    tmp_path: Path,
) -> None:
    describe(tmp_path, "editor", 'purpose = "Edits."\nlimits = { steps = 3 }\n')
    async with team(tmp_path, {"main": asking, "editor": endless}) as agents:
        await agents.say("Ask the editor.")
        await agents.work()
        (reply,) = agents.replies("main")
        assert "[from: editor] gave no answer:\nThe limit of 3 steps is reached (3 spent)" in reply
        assert "agents/editor.toml" in reply


async def test_near_same_words_for_the_third_time_wait_for_a_person(tmp_path: Path) -> None:
    def main(seen: Seen) -> Step:
        return Ask(Wanted("ask_agent", {"agent": "editor", "question": "Is it done yet?"}))

    async with team(tmp_path, {"main": main, "editor": lambda _: Say("Nearly.")}) as agents:
        await agents.say("Wait until the editor is done.")
        await agents.work()
        supervision = Supervision(agents.workspace._store, ["main", "editor"])
        states = {state.name: state for state in await supervision.tree()}
        assert states["main"].state == "stuck"
        assert "for the third time" in states["main"].why
        assert len(agents.replies("editor")) == 2
        assert len(await supervision.stop("main", "Enough.")) == 1


async def test_tokens_of_all_agents_count_for_the_thread(tmp_path: Path) -> None:
    async with team(
        tmp_path, {"main": asking, "editor": lambda _: Say("!")}, runner__tokens=10
    ) as agents:
        assert ended(await agents.say("Ask the editor.")).reason == "parked"
        await agents.work()
        assert [
            seen.text for seen in agents.model.requests if "`editor`. A message" in seen.text
        ] == []


async def test_what_a_stopped_thread_waits_for_is_dropped(tmp_path: Path) -> None:
    async with team(tmp_path, {"main": asking, "editor": lambda _: Say("!")}) as agents:
        await agents.say("Ask the editor.")
        await Supervision(agents.workspace._store, ["main", "editor"]).stop("editor", "Not now.")
        await agents.work()
        assert agents.heard == []


async def test_a_person_answers_in_place_of_an_agent_and_routes_to_another(tmp_path: Path) -> None:
    parts: dict[str, Part] = {
        "main": asking,
        "editor": lambda _: Say("late"),
        "critic": lambda _: Say("routed"),
    }
    async with team(tmp_path, parts) as agents:
        supervision = Supervision(agents.workspace._store, ["main", "editor", "critic"])
        await agents.say("Ask the editor.")
        assert await supervision.answer("editor", "It is `teh`.") == 1
        await agents.work()
        assert agents.replies("main")[0].endswith(
            "(A person answers in place of this agent.) It is `teh`."
        )
        await agents.say("Ask again.")
        assert await supervision.route("editor", "critic") == 1
        await agents.work()
        assert agents.replies("editor") == []
        assert agents.replies("main")[1].endswith("[from: critic] answers:\nrouted")


async def test_a_paused_agent_waits_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    parts: dict[str, Part] = {
        "main": calling("message_agent", agent="editor", message="Hi."),
        "editor": asking,
    }
    parts["editor"] = lambda _: Say("Hello.")
    async with team(tmp_path, parts) as agents:
        await agents.workspace._store.apply([PauseAgent("editor", "")])
        await agents.say("Greet the editor.")
        await agents.work()
        assert agents.heard == []
    async with team(tmp_path, parts) as agents:
        await Supervision(agents.workspace._store, ["editor"]).resume("editor")
        await agents.work()
        assert agents.replies("editor") == ["Hello."]


async def test_a_turn_that_was_cut_off_is_begun_again_and_answers_once(tmp_path: Path) -> None:
    async with team(tmp_path, {"main": asking, "editor": lambda _: Say("Once.")}) as agents:
        await agents.say("Ask the editor.")
        assert await agents.workspace._store.next("editor", "a process that dies") is not None
        await agents.work()
        assert len(agents.replies("main")) == 1
        await agents.workspace._store.post(Post("editor", "system", {"text": "x"}))
        await agents.work()
        assert agents.replies("editor") == ["Once."]


@pytest.mark.parametrize("name", ["steps", "tokens"])
async def test_an_agent_alone_stops_at_the_limits_of_a_thread_too(
    at_desk: OpenDesk, name: str
) -> None:
    desk = await at_desk([Repeat(endless)], **{f"runner__{name}": 2})
    told = of(Warned, await desk.say("Go on."))[-1].message
    assert f"The limit of 2 {name} is reached" in told
    assert "[runner] of knapper.toml" in told
    assert len(desk.model.requests) == {"steps": 2, "tokens": 1}[name]


async def test_limits_that_are_saved_in_a_turn_hold_from_its_next_step_on(tmp_path: Path) -> None:
    describe(tmp_path, "editor", "limits = { steps = 50 }\n")

    def narrowed(seen: Seen) -> Step:
        if len(agents.model.requests) == 2:
            describe(tmp_path, "editor", "limits = { steps = 2 }\n")
        return endless(seen)

    async with team(tmp_path, {"editor": narrowed}) as agents:
        await agents.say("Go on.", to="editor")
        assert len(agents.model.requests) == 2


async def test_dollars_are_a_limit_by_the_prices_of_the_settings(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    prices = "[models.scripted]\nprice = { input = 1000, output = 1000 }\n"
    (tmp_path / "knapper.toml").write_text(f"{prices}[runner]\ncost = 0.0000001\n", "utf-8")
    desk = await at_desk([Repeat(endless)])
    assert "cost is reached" in of(Warned, await desk.say("Go on."))[-1].message
    assert len(desk.model.requests) == 1
