"""Servers cache the longest unchanged prefix: a step of a turn leaves everything sent before unchanged."""

from benchmarks.context import changed


async def test_a_step_sends_all_of_the_step_before_it_again_unchanged_also_after_edits_of_memory() -> None:
    usual, most = await changed(20)
    assert usual <= 0.05
    assert most <= 0.05
