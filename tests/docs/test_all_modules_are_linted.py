"""The linter's exclusions leave out no module of the program."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_linter_reads_every_module() -> None:
    rooms = ("agent_core", "meta_functions", "sandbox", "tests", "benchmarks")
    command = [sys.executable, "-m", "ruff", "check", "--show-files", *rooms]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    read = {Path(line) for line in shown.splitlines()}
    assert not [path for room in rooms for path in (ROOT / room).rglob("*.py") if path not in read]
