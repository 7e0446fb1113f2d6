"""`make cluster`: workers at a separate database, a folder for the prompt, and a clean end at Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.program import knapper, surroundings

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.usefixtures("postgres")  # skipped where no PostgreSQL can be started
def test_a_function_grown_at_the_prompt_of_a_cluster_is_called_by_a_worker(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "KNAPPER_MEMORY_EMBEDDING": "none"}
    command = [sys.executable, "-m", "benchmarks.cluster", "--workers", "2", "--model", "tour"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    cluster = subprocess.Popen(
        command, cwd=ROOT, env=surroundings(environment), text=True, **streams
    )  # type: ignore[call-overload]
    try:
        said = heard(cluster, r"cd (\S+) && KNAPPER_STORAGE_URL='(\S+)' KNAPPER_MODEL_NAME='tour'")
        environment |= {"KNAPPER_STORAGE_URL": said[2], "KNAPPER_MODEL_NAME": "tour"}
        question = ("run", "--message", "how many vowels are in queueing?")
        assert "5 vowels" in knapper(*question, cwd=Path(said[1]), environment=environment).stdout
        cluster.stdin.write("clerk: how many vowels are in banana?\n")
        cluster.stdin.flush()
        assert heard(cluster, r'worker \d \|   clerk .*3 in "banana"')
        cluster.send_signal(signal.SIGINT)
        assert "Ended." in cluster.communicate(timeout=60)[0]
        assert cluster.returncode == 0
        assert not [
            path
            for path in tmp_path.iterdir()
            if path.name.startswith(("knapper-cluster", "tw-pg"))
        ]
    finally:
        if cluster.poll() is None:
            os.kill(cluster.pid, signal.SIGTERM)
            cluster.wait(60)


def heard(cluster: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Return the next line that matches."""
    assert cluster.stdout is not None
    before: list[str] = []
    for line in cluster.stdout:
        if found := re.search(pattern, line):
            return found
        before.append(line)
    raise AssertionError("".join(before))
