"""The real program with planted keys and secrets: no process that it or a library starts is given one."""

import os
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.drawing import sampled
from tests.promises.launched import Launched

DEAD = "http://127.0.0.1:9"
NOWHERE = {
    "PIP_INDEX_URL": f"{DEAD}/simple",
    "PIP_RETRIES": "0",
    "HTTPS_PROXY": DEAD,
    "PIP_NO_INDEX": "1",
}


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    folder = tmp_path / "launched"
    folder.mkdir()
    return Launched(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    (made / "functions").mkdir(parents=True)
    (made / "knapper.toml").touch()
    (made / "functions/words.py").write_text(COUNT_VOWELS)
    return made


def test_a_turn_with_a_call_gives_none_of_its_processes_a_secret(
    launched: Launched, folder: Path
) -> None:
    script: Script = [Ask(Wanted("count_vowels", {"text": "queue"})), Say("4")]
    with scripted(script, key="sk-planted-0001") as model:
        done = launched.run(
            "run",
            "--base-url",
            model.base_url,
            "--model",
            "scripted",
            "--message",
            "go",
            cwd=folder,
        )
    assert done.returncode == 0, done.stderr
    assert any("sandbox.processes.zygote" in note for note in launched.notes)
    assert launched.leaks == []
    assert not any("PROGRAM" in note and "uname" in note.split("\n")[0] for note in launched.notes)


def test_fetching_a_model_gives_pip_and_what_pip_starts_none(
    launched: Launched, folder: Path, tmp_path: Path
) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    done = launched.run("models", "get", "qwen2.5-coder-0.5b", cwd=folder, **NOWHERE, **data)
    assert done.returncode == 1
    assert any("-m pip" in note for note in launched.notes)
    assert launched.leaks == []


def test_reading_a_source_gives_its_process_none(launched: Launched, folder: Path) -> None:
    (folder / "notes.md").write_text("# Notes\n\nThe cat sat on the mat.\n")
    done = launched.run("sources", "add", "notes.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert any("sources.kinds" in note for note in launched.notes)
    assert launched.leaks == []


@pytest.mark.slow
def test_judging_many_functions_gives_the_judges_none(launched: Launched, folder: Path) -> None:
    many = folder / "many"
    many.mkdir()
    for number in range(16):
        (many / f"words{number}.py").write_text(
            COUNT_VOWELS.replace("count_vowels", f"count_vowels_{number}")
        )
    launched.run("functions", "check", "many", cwd=folder)
    assert len(launched.notes) > 0
    assert launched.leaks == []


def test_the_editor_has_the_users_variables_but_no_secret_of_its_own_or_its_parents(
    launched: Launched, folder: Path
) -> None:
    """A child may read its parent's initial environment in /proc."""
    editor, parent = (
        folder.parent / "launched" / name for name in ("bin/ed-of-mine", "notes/parent")
    )
    editor.write_text(f"{editor.read_text()}tr '\\0' '\\n' < /proc/$PPID/environ > {parent}\n")
    given = {"EDITOR": "ed-of-mine", "MY_EDITOR_THEME": "dark"}
    done = launched.run("functions", "edit", "count_vowels", cwd=folder, **given)
    note, *_ = [
        note
        for note in launched.notes
        if note.startswith("PROGRAM") and "ed-of-mine" in note.split("\n")[0]
    ]
    assert done.returncode in (0, 1), done.stderr
    assert "MY_EDITOR_THEME" in note
    assert "EDITOR=" in parent.read_text()
    assert launched.leaks == []


def test_fetching_a_model_imports_nothing_of_the_current_folder(
    launched: Launched, folder: Path, tmp_path: Path
) -> None:
    for name in ("pip", "random", "sitecustomize", "usercustomize", "logging", "tempfile"):
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'pwned')!r}, 'w').write({name!r})\n"
        )
    (folder / "pip.conf").write_text("[global]\nno-such-option = 1\n")
    data = {"XDG_DATA_HOME": str(tmp_path / "data"), "PIP_CONFIG_FILE": "pip.conf"}
    launched.run("models", "get", "qwen2.5-coder-0.5b", cwd=folder, **NOWHERE, **data)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "path", sampled([".::bin:{own}", "."], 2)
)  # the first has each kind of entry
def test_an_entry_of_path_that_means_the_folder_executes_nothing_there(
    launched: Launched, folder: Path, tmp_path: Path, path: str
) -> None:
    (folder / "bin").mkdir()
    for name in ("uname", "file", "rustc", "lsb_release", "ldconfig"):
        for place in (folder, folder / "bin"):
            (place / name).write_text(f"#!/bin/sh\necho {name} > {tmp_path}/pwned\n")
            (place / name).chmod(0o755)
    around = {
        "PATH": path.replace("{own}", os.environ["PATH"]),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    with scripted([Say("hello")], key="sk-planted-0001") as model:
        launched.run(
            "run",
            "--base-url",
            model.base_url,
            "--model",
            "scripted",
            "--message",
            "go",
            cwd=folder,
            **around,
        )
    launched.run("models", "get", "qwen2.5-coder-0.5b", cwd=folder, **NOWHERE, **around)
    assert not (tmp_path / "pwned").exists()
