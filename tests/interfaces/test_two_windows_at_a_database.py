"""What `test_two_windows.py` says of a file holds at a PostgreSQL database, too: the same tests in another place."""

from pathlib import Path

import pytest

from tests.kit import ScriptedModel
from tests.kit.program import knapper

from .test_two_windows import (  # noqa: F401 - collected here, with the `root` of this module
    model,
    test_a_message_that_waited_for_a_process_that_is_killed_is_answered_here,
    test_a_prompt_says_from_where_a_message_came,
    test_a_prompt_takes_over_from_one_that_is_killed_in_its_turn,
    test_a_window_that_is_left_ends_no_turn_of_another_one,
    test_beside_a_running_turn_a_message_begins_its_own_and_is_answered_alone,
    test_beside_an_idle_prompt_a_message_is_answered_and_the_prompt_goes_on_from_it,
    test_ctrl_c_ends_the_turn_that_another_process_runs_for_a_message,
    test_four_threads_of_one_program_are_answered_each_with_its_own,
    test_the_text_of_a_turn_comes_to_the_other_window_while_the_model_writes_it,
    test_two_prompts_show_the_same_turn_and_a_message_typed_in_the_second_joins_it,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def root(
    tmp_path: Path,
    model: ScriptedModel,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    database: str,
) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").write_text(
        f'[storage]\nurl = "{database}"\n[memory]\nembedding = "none"\n'
    )
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # where it is noted what was confirmed
    confirmed = knapper("storage", "confirm", cwd=tmp_path)
    assert confirmed.returncode == 0, confirmed.stderr
    monkeypatch.setenv("KNAPPER_MODEL_BASE_URL", model.base_url)
    monkeypatch.setenv("KNAPPER_MODEL_NAME", "scripted")
    return tmp_path
