"""The cut between what is summarized and what stays: anywhere in a turn, but never between a call and its result."""

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.messages import Answer, Assistant, Call, Message, User
from agent_core.context import PRESSURE, History, Summary
from agent_core.context.compaction import cut

_SIZES = st.integers(0, 300)
_PLAIN = st.builds(
    lambda size, says: [says("x" * size)], _SIZES, st.sampled_from([User, Assistant])
)
_CALLS = st.lists(_SIZES, min_size=1, max_size=4)


def step(sizes: list[int], number: int) -> list[Message]:
    """Return a reply with calls, and their results."""
    calls = tuple(Call(f"call{number}_{n}", "look", "{}") for n in range(len(sizes)))
    return [
        Assistant("", calls),
        *(Answer(call.id, "look", "y" * size) for call, size in zip(calls, sizes, strict=True)),
    ]


@st.composite
def histories(draw: st.DrawFn) -> History:
    history, seq = History(), 0
    for number in range(draw(st.integers(1, 12))):
        messages = step(draw(_CALLS), number) if draw(st.booleans()) else draw(_PLAIN)
        for message in messages:
            seq += 1
            history.add(f"turn{number // 3}", [message], seq)
    return history


@given(histories(), st.integers(0, 3_000))
def test_what_stays_begins_with_no_answer_and_holds_every_answer_to_its_calls(
    history: History, tail: int
) -> None:
    stays = [item.whole for item in history.items[cut(history.items, tail) :]]
    asked = {call.id for each in stays if isinstance(each, Assistant) for call in each.calls}
    assert stays
    assert {each.call_id for each in stays if isinstance(each, Answer)} == asked


@given(histories(), st.integers(0, 3_000))
def test_what_stays_is_no_longer_than_allowed_but_for_the_last_messages(
    history: History, tail: int
) -> None:
    stays = history.items[cut(history.items, tail) :]
    groups = sum(not isinstance(item.whole, Answer) for item in stays)
    assert sum(item.size for item in stays) <= tail or groups == 1


@given(histories(), st.integers(0, 3_000))
def test_something_is_summed_up_unless_all_of_it_is_one_reply_and_its_answers(
    history: History, tail: int
) -> None:
    groups = sum(not isinstance(item.whole, Answer) for item in history.items)
    assert (cut(history.items, tail) > 0) == (groups > 1)


@given(histories())
def test_upto_divides_what_is_covered_from_what_stays(history: History) -> None:
    place = cut(history.items, history.size // 2)
    covered, stays = history.items[:place], history.items[place:]
    assert max((item.seq for item in covered), default=0) < min(item.seq for item in stays)


def test_a_warning_counts_for_the_period_in_which_it_was_said_and_for_no_other() -> None:
    history, found = History(), []
    history.compact(Summary("Before.", 10, upto=30, seq=50))
    for seq in (40, 60):
        history.add("turn", [PRESSURE], seq)
        found.append(history.warned)
    history.compact(Summary("After.", 12, upto=55, seq=70))
    assert [*found, history.warned] == [False, True, False]
