"""An endless file that the user names is rejected with a clear error before it fills the memory."""

from pathlib import Path

from tests.interfaces.asking import home
from tests.kit.program import knapper

ENDLESS = "/dev/zero"


def test_it_is_rejected_by_its_size(tmp_path: Path) -> None:
    for arguments in (
        ("functions", "create", "f", "--file", ENDLESS),
        ("agents", "import", ENDLESS),
        ("memory", "edit", "human", "--file", ENDLESS),
        ("run", "--persona", ENDLESS, "--message", "hi"),
        ("run", "--approve", ENDLESS, "--message", "hi"),
    ):
        done = knapper(*arguments, cwd=tmp_path, environment=home(tmp_path))
        assert done.returncode in (1, 2)
        assert "File larger than 256 MiB" in done.stderr, arguments
