"""Writing single values into the settings file leaves everything else as its owner wrote it."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.errors import SettingsError
from agent_core.base.settings_file import Value, with_values

KEPT = """\
# my settings
agent = "main"   # who

[turn] # limits
max_steps = 12 # few
strange = [ "a", # one
  "b" ]

[model]
# name = "old"
name = "a#b"  # the # is mine
"""


@pytest.mark.parametrize(
    ("text", "values", "becomes"),
    [
        pytest.param("", {"model.name": "m"}, '[model]\nname = "m"\n', id="empty"),
        pytest.param("# [model]\n", {"model.name": "m"}, '# [model]\n\n[model]\nname = "m"\n', id="commented-out"),
        pytest.param("[model]\n\n[turn]\n", {"model.name": "m"}, '[model]\nname = "m"\n\n[turn]\n', id="in-a-section"),
        pytest.param(KEPT, {"turn.max_steps": 9}, KEPT.replace("= 12", "= 9"), id="comment-stays"),
        pytest.param(KEPT, {"model.name": "n"}, KEPT.replace('"a#b"', '"n"'), id="sharp-in-a-value"),
        pytest.param(KEPT, {"agent": "b"}, KEPT.replace('"main"', '"b"'), id="without-section"),
    ],
)
def test_only_the_value_that_was_meant_changes(text: str, values: dict[str, Value], becomes: str) -> None:
    assert with_values(text, values) == becomes


def test_what_cannot_be_changed_safely_is_left_and_told() -> None:
    inline, dotted, array = 'model = { name = "m" }\n', 'model.name = "m"\n', '[[model]]\nname = "x"\n'
    for text in (inline, dotted, array, "[model\n", 'x = """\n[model]\n"""\n'):
        with pytest.raises(SettingsError, match="Add it manually:\n\\[model\\] name = "):
            with_values(text, {"model.name": "other"})


@given(st.text(), st.integers(1, 1000))
def test_any_text_comes_back_as_it_was_given(name: str, steps: int) -> None:
    changed = with_values(KEPT, {"model.name": name, "turn.max_steps": steps, "sandbox.wall_s": 2.5})
    read = tomllib.loads(changed)
    assert (read["model"]["name"], read["turn"]["max_steps"], read["sandbox"]["wall_s"]) == (name, steps, 2.5)
