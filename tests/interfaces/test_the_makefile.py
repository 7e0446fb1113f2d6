"""`make` in a clone: which model answers, and which folder stores the functions."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def recipe(clone: Path, *arguments: str) -> str:
    """Return what `make` would run in an installed clone."""
    shutil.copy(ROOT / "Makefile", clone)
    installed = ("--assume-old=.venv/.run", "--assume-old=.venv/.serve")
    command = ["make", "--dry-run", *installed, *arguments]
    alone = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        command, cwd=clone, capture_output=True, text=True, check=True, env=alone
    ).stdout


def test_a_model_and_a_folder_that_are_named_are_passed_on(tmp_path: Path) -> None:
    program = f'exec "{tmp_path}/.venv/bin/knapper"'
    for arguments, runs in {
        ("run",): f'cd "workspace" && {program} run',
        ("run", "MODEL=local"): f"cd \"workspace\" && {program} run --model 'local'",
        ("run", "MODEL=gpt 4"): f"cd \"workspace\" && {program} run --model 'gpt 4'",
        ("run", "WORKSPACE=a b"): f'cd "a b" && {program} run',
        ("serve", "MODEL=tour"): "--workspace \"workspace\" serve --model 'tour'",
    }.items():
        assert recipe(tmp_path, *arguments).rstrip().endswith(runs)
    (tmp_path / ".knapper").mkdir()
    (
        tmp_path / ".knapper" / "state.db"
    ).touch()  # a clone that was used as a workspace goes on as one
    assert f'cd "." && {program} run' in recipe(tmp_path, "run")
    demo = recipe(tmp_path, "demo")
    assert demo.index("is removed with all that was made in it when you leave.") < demo.index(
        "--model tour"
    )


def test_what_cannot_be_installed_for_functions_is_told_and_the_rest_is_installed(
    tmp_path: Path,
) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\ncase "$*" in *"[portable]"* | *"import asyncio, sandbox"*) exit 1; esac\n'
    )
    python.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("portable = []\n")
    (tmp_path / "constraints.txt").touch()
    done = subprocess.run(
        ["make", ".venv/.run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, (tmp_path / ".venv" / ".run").exists()) == (0, True), done.stderr
    assert "functions do not run until `.venv/bin/knapper doctor` names a level" in done.stderr
