"""The package is slow to import: only code that calls a model or embeds texts at an endpoint loads it."""

import subprocess
import sys
from pathlib import Path

import pytest

ASKED = "import sys, runpy\nsys.argv[1:] = {arguments}\ntry:\n    runpy.run_module('agent_core', run_name='__main__')\n"
LOADED = "finally:\n    print('loaded', {'openai', 'httpx2'} & set(sys.modules), file=sys.stderr)\n"


@pytest.mark.parametrize("arguments", [["--version"], ["functions", "list"]])
def test_a_command_that_asks_no_model_imports_no_client(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    program = ASKED.format(arguments=arguments) + LOADED
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "loaded set()"
