"""Properties of token estimates that hold for all inputs."""

from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.tokens import Estimator


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
