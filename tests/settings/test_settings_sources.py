"""Where a setting comes from, which source wins, and how single values are written into the file."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Workspace
from agent_core.base.errors import SettingsError
from agent_core.base.settings import (
    FILE_NAME,
    PREFIX,
    Settings,
    Value,
    known_keys,
    load,
    with_values,
)
from agent_core.base.workspace_folder import is_workspace


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def write(root: Path, text: str) -> None:
    (root / FILE_NAME).write_text(text, encoding="utf-8")


def test_without_any_source_the_defaults_hold(root: Path) -> None:
    found = load(root)
    assert found == Settings()
    with pytest.raises(ValueError, match="frozen"):
        setattr(found.turn, "max_steps", 99)  # noqa: B010 the type says read-only already


@pytest.mark.parametrize(
    ("section", "key"),
    [
        pytest.param("storage", "url", id="address-of-a-database"),
        pytest.param("model", "base_url", id="address-of-a-model"),
        pytest.param("model", "name", id="name-of-a-model"),
        pytest.param("memory", "embedding_model", id="embedding"),
        pytest.param("growth", "maker", id="maker"),
    ],
)
def test_a_value_longer_than_its_bound_is_refused_with_its_beginning(
    root: Path, section: str, key: str
) -> None:
    write(root, f'[{section}]\n{key} = "{"a:" * 30_000}"\n')
    with pytest.raises(SettingsError, match="at most 2000 characters") as refused:
        load(root)
    assert len(str(refused.value)) < 500


def test_a_text_for_a_model_may_be_long(root: Path) -> None:
    write(
        root, f'instructions = "{"Be kind, " * 5_000}"\n[memory]\npersona = "{"Kind, " * 5_000}"\n'
    )
    assert len(load(root).instructions or "") == 45_000


def test_a_folder_in_the_files_place_is_no_file_and_is_told_by_every_command(root: Path) -> None:
    (root / FILE_NAME).mkdir()
    assert is_workspace(root)
    with pytest.raises(
        SettingsError, match=r"knapper\.toml cannot be read: Is a directory\. Make it an ordinary"
    ):
        load(root)


def test_each_source_wins_over_the_ones_below_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        root,
        '[turn]\nmax_steps = 1\nanswer_chars = 501\nparallel = 1\n[model]\nname = "from the file"\n',
    )
    monkeypatch.setenv("KNAPPER_TURN_ANSWER_CHARS", "502")
    monkeypatch.setenv("KNAPPER_TURN_PARALLEL", "2")
    found = load(root, {"turn.parallel": 3, "model.mode": "native"})
    assert (found.turn.max_steps, found.turn.answer_chars, found.turn.parallel) == (1, 502, 3)
    assert (found.model.name, found.model.mode) == ("from the file", "native")


_EITHER = ("model.stream", "gate.fixes", "turn.first_thought")  # whose value equals the default


def test_every_setting_has_a_variable_that_reaches_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "agent": "scout",
        "model.mode": "native",
        "model.api": "chat",
        "model.programs": "off",
        "growth.mode": "off",
        "turn.mode": "plan",
        "growth.pin": "mine",
        "tend.apply": "proved",
        "sandbox.packages": '["numpy"]',
    }
    values |= {"grants.ask": "never", "grants.unattended": "file", "sandbox.level": "core"}
    values |= {"memory.embedding": "none", "memory.compaction": "spr", "memory.warn_at": "0.5"}
    values |= {"models": '{"fast": {"name": "small"}}', "model.key_variable": "MY_API_KEY"}
    values |= {
        "zone": "Europe/Berlin",
        "repl.keys": "vi",
        "repl.show": "full",
        "mcp.standings": '["trusted"]',
    }
    for key in known_keys():
        usual = "1000" if key.endswith(("tokens", "chars", "mib")) else "1"
        with monkeypatch.context() as patch:
            patch.setenv(PREFIX + key.replace(".", "_").upper(), values.get(key, usual))
            found = load(root)
        section, _, name = key.rpartition(".")
        holder, default = (
            getattr(each, section) if section else each for each in (found, Settings())
        )
        assert getattr(holder, name or key) != getattr(default, name or key) or key in _EITHER, key


def test_a_file_that_does_not_fit_is_told_with_the_key_and_a_way_out(root: Path) -> None:
    for text, named in {
        "[turn]\nmax_step = 3\n": "Did you mean `turn.max_steps`?",
        "[tern]\nmax_steps = 3\n": "Did you mean `turn`?",
        "[grwoth]\nmode = 1\n": "Did you mean `growth`?",
        "[elsewhere]\nx = 3\n": "The tables are: agent",
        "[models.m]\ninput_price = 3\n": "Did you mean `models.m.price`?",
        "[turn]\nmax_steps = 0\n": "`turn.max_steps` cannot be 0: expected at least 1",
        '[turn]\nmax_steps = "many"\n': "`turn.max_steps` cannot be 'many': expected a whole number",
        'agent = "../main"\n': "`agent` cannot be '../main': expected up to 64 letters",
        '[model]\nmode = "fast"\n': "expected one of auto, native, constrained",
        '[model]\nkey_variable = "PATH"\n': "expected a name such as `OPENAI_API_KEY`",
        '[model]\nkey_variable = "KNAPPER_SECRET_BANK_API_KEY"\n': "and none of this program's own",
        "[turn\n": "is not valid TOML",
        'agent = "é"': "is not valid TOML",  # for it is not UTF-8
    }.items():
        (root / FILE_NAME).write_bytes(text.encode("latin-1"))
        with pytest.raises(SettingsError) as caught:
            load(root)
        assert named in str(caught.value), text
        assert "Input" not in str(caught.value), "the library's words"
        assert caught.value.fix, text


def test_a_variable_or_a_flag_that_does_not_fit_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=r"Did you mean `model\.base_url`"):
        load(root, {"model.base_uri": "http://localhost"})
    for name, value, says in (
        ("MODEL_NAMES", "x", "Did you mean `KNAPPER_MODEL_NAME`"),
        ("SANDBOX_PACKAGES", "not a list", "packages"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"KNAPPER_{name}", value)
            with pytest.raises(SettingsError, match=says):
                load(root)


def test_a_level_of_an_extension_can_be_chosen_and_an_unknown_one_lists_what_is_here(
    root: Path,
) -> None:
    assert load(root, {"sandbox.level": "portable"}).sandbox.level == "portable"
    with pytest.raises(SettingsError, match="expected one of auto, full, core, portable") as caught:
        load(root, {"sandbox.level": "padded"})
    assert "`sandbox.level` cannot be 'padded'" in caught.value.message
    assert "extras of this program: " in caught.value.fix


def test_a_file_that_travels_with_the_folder_cannot_take_the_walls_down(root: Path) -> None:
    for text, variable in {
        "[sandbox]\nunsafe = true\n": "KNAPPER_SANDBOX_UNSAFE",
        '[grants]\nunattended = "file"\n': "KNAPPER_GRANTS_UNATTENDED",
        '[memory]\nclass_name = "a:B"\n': "KNAPPER_MEMORY_CLASS_NAME",
    }.items():
        write(root, text)
        with pytest.raises(SettingsError, match=variable):
            load(root)


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
        pytest.param(
            "[model]\n\n[turn]\n",
            {"model.name": "m"},
            '[model]\nname = "m"\n\n[turn]\n',
            id="in-a-section",
        ),
        pytest.param(KEPT, {"turn.max_steps": 9}, KEPT.replace("= 12", "= 9"), id="comment-stays"),
        pytest.param(
            KEPT, {"model.name": "n"}, KEPT.replace('"a#b"', '"n"'), id="sharp-in-a-value"
        ),
    ],
)
def test_only_the_value_that_was_meant_changes(
    text: str, values: dict[str, Value], becomes: str
) -> None:
    assert with_values(text, values) == becomes


def test_what_cannot_be_changed_safely_is_left_and_told() -> None:
    inline, dotted, array = (
        'model = { name = "m" }\n',
        'model.name = "m"\n',
        '[[model]]\nname = "x"\n',
    )
    for text in (inline, dotted, array, "[model\n", 'x = """\n[model]\n"""\n'):
        with pytest.raises(SettingsError, match="Add it manually:\n\\[model\\] name = "):
            with_values(text, {"model.name": "other"})


@given(st.text(), st.integers(1, 1000))
def test_any_text_comes_back_as_it_was_given(name: str, steps: int) -> None:
    changed = with_values(
        KEPT, {"model.name": name, "turn.max_steps": steps, "sandbox.wall_s": 2.5}
    )
    read = tomllib.loads(changed)
    assert (read["model"]["name"], read["turn"]["max_steps"], read["sandbox"]["wall_s"]) == (
        name,
        steps,
        2.5,
    )


@pytest.mark.parametrize("label", ["persona", "human"])
async def test_a_first_memory_that_is_longer_than_its_block_is_told(
    tmp_path: Path, label: str
) -> None:
    write(tmp_path, f'[memory]\n{label} = "{"word " * 2_000}"\n')
    async with Workspace.open(tmp_path) as workspace:
        with pytest.raises(SettingsError, match=f"`{label}` may hold 2,000 characters"):
            await workspace.agent("main")
