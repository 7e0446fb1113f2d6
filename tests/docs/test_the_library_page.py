"""The library page names everything that is public, and each of its programs runs."""

import re
from pathlib import Path

import pytest

import agent_core
from tests.kit import Repeat, Say, scripted
from tests.kit.program import python

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RUN = [program for program in PROGRAMS if "import " in program]  # the others are parts of one


def test_every_public_name_is_in_a_program() -> None:
    programs = "\n".join(PROGRAMS)
    assert [name for name in agent_core.__all__ if not re.search(rf"\b{name}\b", programs)] == []


@pytest.mark.parametrize(
    "program", RUN, ids=lambda program: re.findall(r"import (.+)", program)[-1]
)
def test_a_program_runs_as_it_stands(tmp_path: Path, program: str) -> None:
    (tmp_path / "program.py").write_text(program)
    with scripted([Repeat(Say("I make functions."))]) as model:
        ended = python(tmp_path / "program.py", cwd=tmp_path, environment=model.environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
