"""The program without this extension: it starts, a turn runs, and what is missing is said where it is asked for."""

from importlib.metadata import metadata
from pathlib import Path

import pytest

from knapper_ext.local import COMMANDS, EMBEDDERS, MODELS, MODES
from tests.kit import Repeat, Say, scripted
from tests.kit.reduced import reduced, without


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "knapper.toml").touch()
    return without("local", tmp_path)


def test_a_turn_runs_and_nothing_is_offered(root: Path, tmp_path: Path) -> None:
    with scripted([Repeat(Say("Good morning!"))]) as model:
        address = ("--base-url", model.base_url, "--model", "scripted")
        done = reduced(root, "run", *address, "--message", "hi", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Good morning!\n"), done.stderr
    shown = reduced(root, "--help", cwd=tmp_path).stdout.split()
    assert "doctor" in shown
    assert not {*COMMANDS} & {*shown}


def test_a_model_or_a_command_of_it_is_unknown_and_the_extras_are_named(
    root: Path, tmp_path: Path
) -> None:
    extras = metadata("knapper").get_all("Provides-Extra") or []
    (prefix,) = MODELS
    for words, says in (
        (("run", "--model", prefix, "--message", "hi"), f"has the model `{prefix}`"),
        (("run", "--model", f"{prefix}/any", "--message", "hi"), f"has the model `{prefix}/any`"),
        (("models", "list"), "No such command 'models'"),
    ):
        done = reduced(root, *words, cwd=tmp_path)
        said = " ".join(done.stderr.split())
        assert (done.returncode in (1, 2), says in said) == (True, True), said
        assert [extra for extra in extras if extra not in said] == [], said


def test_an_embedding_or_a_mode_of_it_is_unknown_and_those_that_are_here_are_named(
    root: Path, tmp_path: Path
) -> None:
    rows = [
        *(("KNAPPER_MEMORY_EMBEDDING", name, "wordllama, endpoint, none.") for name in EMBEDDERS),
        *(("KNAPPER_MODEL_MODE", name, "auto, native.") for name in MODES),
    ]
    for variable, name, known in rows:
        done = reduced(root, "memory", "show", cwd=tmp_path, environment={variable: name})
        said = done.stderr
        assert (done.returncode, f"expected one of {known}" in said) == (2, True), said


def test_a_small_model_is_sent_its_calls_natively(root: Path, tmp_path: Path) -> None:
    with scripted([Repeat(Say("Good morning!"))], models=["qwen2.5-1.5b"]) as model:
        address = ("--base-url", model.base_url, "--model", "qwen2.5-1.5b")
        done = reduced(root, "run", *address, "--message", "hi", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Good morning!\n"), done.stderr
    assert "tools" in model.requests[-1].body
