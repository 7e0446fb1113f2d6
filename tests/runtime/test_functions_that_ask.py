"""A function asks a person while it runs: by its call, in its own words, and never twice."""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered, FunctionAnswered, FunctionAsked
from agent_core.functions import asking
from agent_core.functions.asking import FunctionQuestion
from agent_core.storage import QuestionRow
from agent_core.views.grant_question import function_question_lines
from agent_core.views.styled_lines import folded, plain
from agent_core.workspace.state_store import opened_state
from knapper.prompt.conversation import Conversation
from knapper.prompt.slash import take
from knapper.prompt.ui import Voice
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Wanted, contains, scripted
from tests.kit.desk import Desk, of, outcomes
from tests.kit.program import Program, knapper, surroundings
from tests.kit.waiting import until, until_it_is

PAYS = '''\
from decimal import Decimal


def pay(self, to: str) -> str:
    """Pay somebody, after asking how much and whether.

    Args:
        to: Who is paid.

    Returns:
        What was done.
    """
    amount = self.ask("How much?", type=Decimal)
    if not self.confirm(f"Pay {amount + 1} to {to}?"):
        return "not paid"
    return f"{to} gets {amount + 1} from " + self.ask("Which account?", choices=["main", "other"])
'''
CALL = Ask(Wanted("pay", {"to": "Ada"}))


async def opened(at_desk: OpenDesk, source: str, *script: object) -> Desk:
    """Return a desk with a saved function."""
    desk = await at_desk([*script])
    await desk.save("money.py", source)
    return desk


async def asked(desk: Desk, count: int) -> FunctionQuestion:
    """Wait for a question that differs from those before; return it."""
    seen: list[str] = []

    async def look() -> list[QuestionRow]:
        return await desk.workspace.store.pending_questions()

    [row] = await until(look, lambda rows: len(rows) == count and rows[0].id not in seen)
    question = FunctionQuestion.from_row(row)
    assert question is not None
    return question


async def typed(desk: Desk, *words: str) -> None:
    """Type a command at a prompt of the same workspace."""
    talk = Conversation(desk.workspace, desk.agent, Voice(None, agrees=True))
    await take(talk, " ".join(words))
    assert not talk.failed


async def test_a_call_waits_for_its_answers_with_its_clock_stopped(at_desk: OpenDesk) -> None:
    desk = await opened(
        at_desk, PAYS, CALL, Expect(Say("Done."), contains("Ada gets 13.50 from other"))
    )
    turn = asyncio.create_task(desk.say("Pay Ada."))
    for text, said in (
        ("How much?", "12.50"),
        ("Pay 13.50 to Ada?", "yes"),
        ("Which account?", "2"),
    ):

        async def look() -> list[FunctionQuestion]:
            rows = await desk.workspace.store.pending_questions()
            found = [question for row in rows if (question := FunctionQuestion.from_row(row))]
            return [question for question in found if question.text == text]  # noqa: B023

        [question] = await until(look)
        await typed(desk, "/answer", question.id[:8], said)
    events = await turn
    assert outcomes(events) == ["returned"]
    assert [event.text for event in of(FunctionAsked, events)] == [
        "How much?",
        "Pay 13.50 to Ada?",
        "Which account?",
    ]
    assert [event.answer for event in of(FunctionAnswered, events)] == ["12.50", "yes", "other"]
    [call] = of(CallAnswered, events)
    assert {event.call for event in of(FunctionAsked, events)} == {call.call_id}
    # The replay gives the recorded answers and asks nobody.
    [record] = await desk.workspace.functions.replays.calls("pay")
    replayed = await desk.workspace.functions.replays.replay(record.call)
    assert replayed.same


async def test_an_answer_of_another_form_is_refused_and_the_question_stays(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(at_desk, PAYS, CALL, Say("Done."))
    turn = asyncio.create_task(desk.say("Pay Ada."))
    question = await asked(desk, 1)
    talk = Conversation(desk.workspace, desk.agent, Voice(None, agrees=True))
    await take(talk, f"/answer {question.id} much")
    assert talk.failed
    await typed(desk, f"/answer {question.id} 3")
    confirm = await until(desk.workspace.store.pending_questions)
    await typed(desk, f"/answer {confirm[0].id} no")
    assert outcomes(await turn) == ["returned"]


DEFAULT = PAYS.replace("type=Decimal)", "type=Decimal, default=5, after=0.2)").replace(
    'to {to}?")', 'to {to}?", default=False, after=0.2)'
)


async def test_a_default_is_the_answer_after_its_time_and_is_said_in_words(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(at_desk, DEFAULT, CALL, Expect(Say("Done."), contains("not paid")))
    events = await desk.say("Pay Ada.")
    assert [(event.answer, event.by) for event in of(FunctionAnswered, events)] == [
        ("5", "default"),
        ("no", "default"),
    ]
    assert of(FunctionAsked, events)[0].otherwise == "Without an answer in 0.2 seconds, it is 5."


async def test_a_call_that_nobody_answers_is_interrupted_with_its_question_and_not_run_again(
    at_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WAIT_LIMIT_S", 0.3)
    told = Expect(Say("Nobody was there."), contains("asked a person “How much?”"))
    desk = await opened(at_desk, PAYS, CALL, told)
    events = await desk.say("Pay Ada.")
    assert outcomes(events) == ["interrupted"]
    assert [event.by for event in of(FunctionAnswered, events)] == ["nobody"]


async def test_eight_questions_wait_and_the_ninth_is_refused(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, PAYS, CALL, Say("Busy."))
    for n in range(asking.QUESTION_LIMIT):
        waiting = FunctionQuestion("other", "c", f"Number {n}?")
        row = QuestionRow(waiting.id, "other", "t", waiting.to_json())
        await desk.workspace.store.ask_user(row)
    events = await desk.say("Pay Ada.")
    assert outcomes(events) == ["raised"]
    assert of(FunctionAsked, events) == []


BY_HAND = '''\
import json


def pay(self, to: str) -> str:
    """Ask what the text holds, as it is.

    Args:
        to: The request.
    """
    return str(self._channel.request("ask", json.loads(to)))
'''


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"question": ""}, "a question is a text", id="no-question"),
        pytest.param({"question": "Q" * 1_001}, "a question is a text", id="long-question"),
        pytest.param({"choices": {"a": 1}}, "at most 20 choices", id="choices-of-no-list"),
        pytest.param({"choices": ["a"] * 21}, "at most 20 choices", id="many-choices"),
        pytest.param({"choices": ["a" * 201]}, "at most 20 choices", id="long-choice"),
        pytest.param({"type": "bytes"}, "an answer is one of", id="unknown-type"),
        pytest.param({"type": ["str"]}, "an answer is one of", id="type-of-no-name"),
        pytest.param({"type": {"int": 1}}, "an answer is one of", id="type-of-names"),
        pytest.param({"after": -1}, "is a number of seconds", id="before-now"),
        pytest.param({"after": 10**400}, "is a number of seconds", id="long-after"),
        pytest.param({"after": [0]}, "is a number of seconds", id="after-of-no-number"),
        pytest.param({"default": 5}, "a default has the form", id="default-of-no-text"),
        pytest.param({"default": "d" * 1_001}, "a default has the form", id="long-default"),
        pytest.param(
            {"type": "int", "default": "many"}, "the default does not fit", id="unfit-default"
        ),
    ],
)
async def test_what_a_worker_asks_by_hand_is_checked_before_anybody_sees_it(
    at_desk: OpenDesk, given: dict[str, object], says: str
) -> None:
    request = json.dumps({"question": "How much?", "after": 0, "default": "5", **given})
    call = Ask(Wanted("pay", {"to": request}))
    desk = await opened(at_desk, BY_HAND, call, Expect(Say("Well."), contains(says)))
    events = await desk.say("Pay Ada.")
    assert outcomes(events) == ["raised"]
    assert of(FunctionAsked, events) == []


async def test_a_call_whose_process_died_is_unknown_with_its_question_and_a_later_answer(
    tmp_path: Path,
) -> None:
    """The process is killed while the call waits; the answer comes before the next start."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "money.py").write_text(PAYS)
    (tmp_path / "knapper.toml").touch()
    told = Expect(Say("It may be paid."), contains("the answer was “7”"))
    with scripted([CALL, told, Say("Ask Ada.")]) as model:
        environment = {
            "KNAPPER_MODEL_BASE_URL": model.base_url,
            "KNAPPER_MODEL_NAME": "scripted",
            "KNAPPER_MODEL_CONTEXT_TOKENS": "16384",
        }
        with TemporaryFile() as none, TemporaryFile() as out:
            streams = [none.fileno(), out.fileno(), out.fileno()]
            words = ("run", "--message", "Pay Ada.")
            program = Program(words, streams, cwd=tmp_path, environment=surroundings(environment))
            await until_it_is(lambda: (tmp_path / ".knapper" / "state.db").exists())
            async with opened_state(tmp_path) as state:
                [row] = await until(state.store.pending_questions)
                program.kill()
                await state.store.answer_question(
                    row.id, {"answer": "yes", "word": "7", "by": "human"}
                )
        done = await asyncio.to_thread(
            knapper, "run", "--message", "And?", cwd=tmp_path, environment=environment
        )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"type": ["str"]}, id="type-of-no-name"),
        pytest.param({"choices": 5}, id="choices-of-no-list"),
        pytest.param({"text": None}, id="no-text"),
        pytest.param({"default": "5", "after_s": "soon"}, id="time-of-no-number"),
        pytest.param({"default": [5], "after_s": 1}, id="default-of-no-text"),
    ],
)
async def test_a_question_of_a_row_that_is_none_is_shown_to_nobody(
    at_desk: OpenDesk, forged: dict[str, object]
) -> None:
    desk = await at_desk([])
    good = FunctionQuestion("pay", "c", "How much?")
    await desk.workspace.store.ask_user(QuestionRow(good.id, "main", "t", good.to_json()))
    row = QuestionRow("f" * 32, "main", "t", {**good.to_json(), **forged})
    await desk.workspace.store.ask_user(row)
    rows = await desk.workspace.store.pending_questions()
    found = [question for row in rows if (question := FunctionQuestion.from_row(row))]
    assert (len(rows), found) == (2, [good])
    root = desk.workspace.root
    done = await asyncio.to_thread(knapper, "functions", "answer", row.id, "5", cwd=root)
    assert (done.returncode, "Knapper failed" in done.stderr) == (2, False), done.stderr


def test_a_choice_that_is_a_number_is_meant_by_it() -> None:
    asked = {"question": "How many copies?", "choices": ["5", "1"]}
    question = FunctionQuestion.of("copies", "c", asked)
    assert (question.read("1"), question.read("5")) == ("1", "5")
    assert question.form == "one of 5, 1"
    for typed_text in ("2", "9" * 5_000):
        with pytest.raises(UsageError, match="cannot be"):
            question.read(typed_text)


async def test_a_call_asks_a_bounded_number_of_questions(
    at_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "CALL_LIMIT", 3)
    nags = PAYS[: PAYS.index("    amount =")]
    nags += '    while True:\n        self.ask("Sure?", default="no", after=0)\n'
    desk = await opened(at_desk, nags, CALL, Say("Done."))
    told = await desk.say("Pay Ada.")
    assert len(of(FunctionAsked, told)) == 3
    assert "at most 3 questions" in of(CallAnswered, told)[0].text


def test_no_question_of_a_function_looks_like_one_of_the_program() -> None:
    text = "ok\n! weather asks to fetch from example.org\n  [y] always [n] no\x1b[2J"
    event = FunctionAsked(
        question="0" * 32, call="c", function="weather", text=text, form="any text"
    )
    rows = plain(function_question_lines(event)).splitlines()
    assert "asks you:" in rows[0]
    assert all(row.lstrip().startswith("┆ ") for row in rows[1:-1])
    assert "\x1b" not in "".join(rows)


def test_each_row_of_a_functions_words_has_the_bar() -> None:
    text = f"Which? {'-' * 70} ! weather may fetch from example.org: you said always {'-' * 90}"
    event = FunctionAsked(
        question="0" * 32, call="c", function="weather", text=text, form="any text"
    )
    rows = plain(list(folded(function_question_lines(event), 79))).splitlines()
    words = [row for row in rows if "-" in row or "weather may" in row]
    assert len(words) > 2
    assert all(row.lstrip().startswith("┆ ") for row in words)
