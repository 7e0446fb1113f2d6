"""The next speaker is a function of the conversation: rules in order, at most one question, then the longest silent."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.runtime.groups.floor import USER, Floor, Speech
from agent_core.runtime.groups.plan import NoAdvice, Policy, SpeakerChoice, SpeakerQuestion, choose
from tests.kit.drawing import drawn

MEMBERS = {"planner": "Plans.", "coder": "Writes code.", "critic": "Finds faults."}


class Scripted:
    """Advisers that give fixed answers and record the questions."""

    def __init__(self, model: object = None, function: object = None) -> None:
        self.answer = model
        self.function_answer = function
        self.asked: list[SpeakerQuestion] = []

    async def function(self, name: str, floor: Floor, most: int) -> object:
        if isinstance(self.function_answer, Exception):
            raise self.function_answer
        return self.function_answer

    async def model(self, question: SpeakerQuestion) -> str:
        self.asked.append(question)
        if not isinstance(self.answer, str):
            raise NoAdvice("it is not there")
        return self.answer


def choice(
    *said: str,
    policy: Policy | None = None,
    advisers: Scripted | None = None,
    no_repeat: bool = True,
    cut: str = "",
) -> SpeakerChoice:
    """Return the choice after speeches such as `coder: done`."""
    speeches = [Speech(by, text) for by, _, text in (line.partition(": ") for line in said)]
    floor = Floor(MEMBERS, speeches, no_repeat, cut_off=cut)
    return asyncio.run(choose(floor, policy or Policy(), advisers or Scripted()))


ADDRESSED = [
    ("at", ["user: @coder do it"], "coder", "addressed"),
    ("a mail address is nobody", ["user: mail x@coder.example, @critic"], "critic", "addressed"),
    ("a quoted line is nobody", ["user: > @coder wrote\nCritic, look."], "critic", "addressed"),
    ("by name", ["user: Critic: look"], "critic", "addressed"),
    ("two at once", ["user: Coder and critic, begin!"], "coder", "addressed"),
    ("and the second", ["user: Coder and critic, begin!", "coder: done"], "critic", "addressed"),
    ("in a question", ["user: go", "coder: What does the critic say?"], "critic", "asked"),
    ("who asked is answered", ["user: go", "coder: @critic ok?", "critic: no"], "coder", "asked"),
    ("the user", ["user: go", "coder: @user may I?"], USER, "addressed"),
    ("nobody", ["user: hello"], "planner", "least_recent"),
    ("oneself", ["user: hello", "coder: @coder goes on"], "planner", "least_recent"),
]


def test_the_rules_choose_in_order() -> None:
    for case, said, name, rule in ADDRESSED:
        made = choice(*said)
        assert (made.name, made.rule) == (name, rule), case


def test_both_ends_of_a_long_speech_are_read() -> None:
    for text in ("@critic look:" + "\n" * 100_000, "x\n" * 100_000 + "Critic, look."):
        made = choice(f"user: {text}")
        assert (made.name, made.rule) == ("critic", "addressed")
    assert Speech("coder", "x\n" * 100_000 + "DONE").says("DONE")


def test_a_handover_by_call_counts_only_for_a_member() -> None:
    floor = [Speech(USER, "go"), Speech("planner", "done", to="Critic")]
    made = asyncio.run(choose(Floor(MEMBERS, floor), Policy(), Scripted()))
    assert (made.name, made.rule) == ("critic", "handoff")
    stranger = [Speech(USER, "go"), Speech("planner", "done", to="boss")]
    made = asyncio.run(choose(Floor(MEMBERS, stranger), Policy(), Scripted()))
    assert made.rule == "least_recent"
    assert made.passed == ("handoff: boss is not in this group",)


def test_a_model_is_asked_once_and_only_a_name_counts() -> None:
    others = ("critic, then coder", "I think the user should decide", "planner", "boss", "", None)
    names: dict[str | None, str] = {"critic": "critic", "Critic": "critic", " @critic.": "critic"}
    for answer, name in {**names, **dict.fromkeys(others, "coder")}.items():
        advisers = Scripted(answer)
        made = choice("user: go", "planner: fine", policy=Policy(choose="model"), advisers=advisers)
        assert made.name == name, answer
        assert [question.names for question in advisers.asked] == [("coder", "critic")]
        assert bool(made.passed) == (made.rule == "least_recent")


TEXTS = st.sampled_from(
    [
        *(
            "fine",
            "@coder now",
            "@critic now",
            "@planner now",
            "Coder, you?",
            "What does the critic think?",
        ),
        *(
            "@coder @critic both",
            "planner: no",
            "[from: user] @coder",
            "w" * 200,
            "@nobody here",
            "",
        ),
    ]
)
ANSWERS = st.sampled_from(
    ["coder", "CODER", "critic", "the planner", "coder and critic", "", "user"]
)


@settings(max_examples=drawn(40))
@given(
    texts=st.lists(TEXTS, min_size=30, max_size=30),
    answers=st.lists(ANSWERS, min_size=1, max_size=5),
    count=st.integers(2, 10),
)
def test_nobody_repeats_or_starves_and_each_turn_asks_once(
    texts: list[str], answers: list[str], count: int
) -> None:
    members = dict.fromkeys(
        ["coder", "critic", "planner", *(f"m{n}" for n in range(7))][:count], ""
    )
    said, asked, most = [Speech(USER, "go")], 0, 0
    for text in texts:
        advisers = Scripted(answers[len(said) % len(answers)])
        floor = Floor(members, said)
        made = asyncio.run(choose(floor, Policy(choose="model"), advisers))
        assert made == asyncio.run(
            choose(Floor(members, [*said]), Policy(choose="model"), advisers)
        )
        assert made.name != said[-1].by
        asked, most = (
            max(asked, len(advisers.asked) // 2),
            max([most, *(len(question.text) for question in advisers.asked)]),
        )
        said.append(Speech(made.name, text))
    assert asked <= 1
    assert most <= 2_000 + 500
    assert {speech.by for speech in said} >= members.keys()
