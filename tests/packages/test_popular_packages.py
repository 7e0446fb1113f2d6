"""The packages that people request most often, each doing its typical task, from the real index."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages.popular import PAGE, Task, pattern, tasks, tried


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip if packages cannot be downloaded."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "tabulate",
    ]
    fetched = subprocess.run(
        command, cwd=tmp_path_factory.mktemp("index"), capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        pytest.skip(f"the package index of pip cannot be reached: {fetched.stderr.strip()[-200:]}")


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.name)
async def test_a_popular_package_does_what_people_ask_of_it_and_nothing_else_is_said(
    task: Task, tmp_path: Path
) -> None:
    trial = await asyncio.to_thread(tried, task, tmp_path)
    assert (trial.problem, trial.printed) == ("", ())


def test_the_page_has_a_row_of_each_task_with_its_result() -> None:
    text = PAGE.read_text()
    assert [task.name for task in tasks() if not pattern(task).search(text)] == []
