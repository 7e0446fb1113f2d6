"""Where a setting comes from, which source wins, and the error if it is invalid."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from agent_core.base import settings
from agent_core.base.errors import SettingsError
from agent_core.base.settings import FILE_NAME, PREFIX, Settings, address_of_file, known_keys, load


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
    assert load(root) == Settings()


def test_each_source_wins_over_the_ones_below_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, '[turn]\nmax_steps = 1\nmax_calls = 1\nparallel = 1\n[model]\nname = "from the file"\n')
    monkeypatch.setenv("KNAPPER_TURN_MAX_CALLS", "2")
    monkeypatch.setenv("KNAPPER_TURN_PARALLEL", "2")
    found = load(root, {"turn.parallel": 3, "model.mode": "native"})
    assert (found.turn.max_steps, found.turn.max_calls, found.turn.parallel) == (1, 2, 3)
    assert (found.model.name, found.model.mode) == ("from the file", "native")


def test_a_flag_that_was_not_given_changes_nothing(root: Path) -> None:
    write(root, 'agent = "scout"\n')
    assert load(root, {"agent": None, "turn.max_steps": None}).agent == "scout"


def test_a_false_or_empty_flag_counts_as_given(root: Path) -> None:
    found = load(root, {"model.stream": False, "instructions": ""})
    assert (found.model.stream, found.instructions) == (False, "")


_EITHER = ("model.stream", "gate.fixes", "turn.first_thought")  # whose value equals the default


def test_every_setting_has_a_variable_that_reaches_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "agent": "scout",
        "model.mode": "native",
        "model.api": "chat",
        "model.programs": "off",
        "growth.create": "false",
        "growth.mask": "0.5",
        "tend.apply": "proved",
        "sandbox.packages": '["numpy"]',
        "gate.fixes_off": '["prompts"]',
        "turn.shown_functions": "20",
    }
    values |= {"grants.ask": "always", "grants.unattended": "file", "sandbox.level": "core"}
    values |= {"memory.embedding": "none", "memory.compaction": "spr", "memory.tidy": "false", "memory.warn_at": "0.5"}
    values |= {"models": '{"fast": {"name": "small"}}', "model.key_variable": "MY_API_KEY"}
    values |= {"repl.keys": "vi", "repl.theme": "light", "repl.show": "full", "mcp.standings": '["trusted"]'}
    for key in known_keys():
        usual = "1000" if key.endswith(("tokens", "chars", "mib")) else "1"
        with monkeypatch.context() as patch:
            patch.setenv(PREFIX + key.replace(".", "_").upper(), values.get(key, usual))
            found = load(root)
        section, _, name = key.rpartition(".")
        holder, default = (getattr(each, section) if section else each for each in (found, Settings()))
        assert getattr(holder, name or key) != getattr(default, name or key) or key in _EITHER, key


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("[turn]\nmax_step = 3\n", "Did you mean `turn.max_steps`?", id="a slip"),
        pytest.param("[tern]\nmax_steps = 3\n", "`tern` is not a setting.", id="an unknown section"),
        pytest.param("[repl]\nzzzzzz = 3\n", "Known are: repl.bell, repl.keys", id="nothing near in a section"),
        pytest.param("[models.m]\ninput_price = 3\n", "Did you mean `models.m.price`?", id="a slip in a named model"),
        pytest.param("zzzzzz = 1\n", "Known are: agent, gate.candidate_kib", id="nothing near"),
        pytest.param("[turn]\nmax_steps = 0\n", "`turn.max_steps` cannot be 0: expected at least 1", id="out of range"),
        pytest.param(
            '[turn]\nmax_steps = "many"\n',
            "`turn.max_steps` cannot be 'many': expected a whole number",
            id="wrong type",
        ),
        pytest.param("turn = 3\n", "`turn` cannot be 3: expected a table", id="a value for a section"),
        pytest.param(
            'agent = "../main"\n', "`agent` cannot be '../main': expected up to 64 letters", id="a name that climbs"
        ),
        pytest.param("[model]\nstream = 3\n", "expected true or false", id="no truth"),
        pytest.param('[model]\nmode = "fast"\n', "expected 'auto', 'native' or 'constrained'", id="no choice"),
        pytest.param('[model]\nkey_variable = "PATH"\n', "expected a name such as `OPENAI_API_KEY`", id="no key"),
        pytest.param("[turn\n", "is not valid TOML", id="not TOML"),
    ],
)
def test_a_file_that_does_not_fit_is_told_with_the_key_and_a_way_out(root: Path, text: str, named: str) -> None:
    write(root, text)
    with pytest.raises(SettingsError) as caught:
        load(root)
    assert named in str(caught.value)
    assert "Input" not in str(caught.value), "the library's words"
    assert caught.value.fix


def test_a_file_in_another_encoding_is_told_as_no_toml(root: Path) -> None:
    (root / FILE_NAME).write_bytes('agent = "é"'.encode("latin-1"))
    with pytest.raises(SettingsError, match="is not valid TOML"):
        load(root)


def test_a_folder_in_the_files_place_is_not_read_as_settings(root: Path) -> None:
    (root / FILE_NAME).mkdir()
    assert load(root) == Settings()


def test_a_variable_that_nobody_reads_is_told_with_the_nearest_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNAPPER_MODEL_NAMES", "x")
    with pytest.raises(SettingsError, match="Did you mean `KNAPPER_MODEL_NAME`"):
        load(root)


def test_a_flag_that_does_not_exist_is_told_like_any_other_key(root: Path) -> None:
    with pytest.raises(SettingsError, match=r"Did you mean `model\.base_url`"):
        load(root, {"model.base_uri": "http://localhost"})


@pytest.mark.parametrize("value", ["not a list", "[1"])
def test_a_variable_that_cannot_be_read_is_told_in_words(
    root: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("KNAPPER_SANDBOX_PACKAGES", value)
    with pytest.raises(SettingsError, match="packages"):
        load(root)


def test_settings_cannot_be_changed_after_they_were_read(root: Path) -> None:
    found = load(root)
    with pytest.raises(ValueError, match="frozen"):
        setattr(found.turn, "max_steps", 99)  # noqa: B010 the type says read-only already


def test_every_setting_says_what_it_is_for() -> None:
    sections = [value for value in vars(settings).values() if isinstance(value, type)]
    described = [
        field.description
        for section in sections
        if issubclass(section, BaseModel) and section.__module__.startswith("agent_core.base.setting")
        for field in section.model_fields.values()
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))
    ]
    assert all(described)
    assert len(described) >= len(known_keys())


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        pytest.param("[sandbox]\nunsafe = true\n", "KNAPPER_SANDBOX_UNSAFE", id="the walls"),
        pytest.param('[grants]\nunattended = "file"\n', "KNAPPER_GRANTS_UNATTENDED", id="the yes"),
        pytest.param('[memory]\nclass_name = "a:B"\n', "KNAPPER_MEMORY_CLASS_NAME", id="code to be imported"),
    ],
)
def test_a_file_that_travels_with_the_folder_cannot_take_the_walls_down(root: Path, text: str, variable: str) -> None:
    (root / "knapper.toml").write_text(text)
    with pytest.raises(SettingsError, match=variable):
        load(root)


ELSEWHERE = "https://elsewhere.example/v1"


@pytest.mark.parametrize(
    ("address", "environment", "is_of_file"),
    [
        pytest.param("https://elsewhere.example/v1", {}, True, id="elsewhere"),
        pytest.param(
            "https://elsewhere.example/v1", {"OPENAI_BASE_URL": "https://elsewhere.example/v1"}, False, id="known"
        ),
        pytest.param("http://127.0.0.1:11434/v1", {}, True, id="this-machine"),
        pytest.param("http://127.0.0.1@elsewhere.example/v1", {}, True, id="dressed-up"),
    ],
)
def test_an_address_that_only_the_file_names_is_known_as_such(
    root: Path, address: str, environment: dict[str, str], is_of_file: bool
) -> None:
    (root / "knapper.toml").write_text(f'[model]\nbase_url = "{address}"\n')
    assert address_of_file(load(root), environment) == ((root, address) if is_of_file else None)
    assert address_of_file(load(root, {"model.base_url": address}), environment) is None
