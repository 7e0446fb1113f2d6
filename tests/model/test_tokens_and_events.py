"""Small things that must hold for all inputs: token estimates, and events cut anywhere."""

from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.tokens import Estimator
from agent_core.model.transport import Decoder


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=5), st.data())
def test_events_are_the_same_wherever_the_network_cuts(events: list[str], data: st.DataObject) -> None:
    text = "".join(f": comment\r\nevent: x\r\ndata: {event}\r\n\r\n" for event in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    decoder, found = Decoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += decoder.feed(text[start:end])
    assert [event.decode() for event in found + decoder.close()] == events


def test_data_over_several_lines_is_one_event() -> None:
    assert Decoder().feed(b"data: {\ndata:}\n\n") == [b"{\n}"]


def test_the_last_event_needs_no_empty_line() -> None:
    decoder = Decoder()
    assert (decoder.feed(b"data: a\n\ndata: b"), decoder.close()) == ([b"a"], [b"b"])


@given(st.integers(1000, 100_000), st.floats(0.5, 3.5))
def test_estimates_come_near_what_the_endpoint_reports(size: int, factor: float) -> None:
    estimator, reported = Estimator(), round(size / 4 * factor)
    for _ in range(60):
        estimator.learn(size, reported)
    assert abs(estimator.tokens(size) - reported) <= max(3, reported * 0.02)


def test_one_low_report_moves_the_estimate_little_and_a_high_one_much() -> None:
    low, high = Estimator(), Estimator()
    low.learn(4000, 100)
    high.learn(4000, 2300)
    assert low.tokens(4000) > 1000
    assert high.tokens(4000) > 1700


def test_text_beyond_ascii_counts_by_its_bytes() -> None:
    assert Estimator(1.0).tokens_of("größe") == Estimator(1.0).tokens(7)
