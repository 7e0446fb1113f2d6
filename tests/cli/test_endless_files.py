"""An endless file that the user names is rejected with a clear error before it fills the memory."""

from pathlib import Path

import pytest

from tests.interfaces.asking import home
from tests.kit.program import knapper

ENDLESS = "/dev/zero"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("functions", "create", "f", "--file", ENDLESS), id="a function's source"),
        pytest.param(("agents", "import", ENDLESS), id="an agent's file"),
        pytest.param(("memory", "edit", "human", "--file", ENDLESS), id="a memory block"),
        pytest.param(("run", "--persona", ENDLESS, "--message", "hi"), id="a persona"),
        pytest.param(("run", "--approve", ENDLESS, "--message", "hi"), id="a list of grants"),
    ],
)
def test_it_is_rejected_by_its_size(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = knapper(*arguments, cwd=tmp_path, environment=home(tmp_path))
    assert done.returncode in (1, 2)
    assert "File larger than 256 MiB" in done.stderr
