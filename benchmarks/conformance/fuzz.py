"""`make fuzz`: send requests generated from the API's own description to our server until enough were sent.

    python -m benchmarks.conformance.fuzz [--requests N] [--seed N]

Schemathesis generates them, in a separate environment below the cache folder. A status of 500 or more is a fault, and
so is an answer that takes more than half a minute; afterwards the state must be intact and the server still running.
Event streams, which never end, are left out. Exits with 1 if there was a fault.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, Final

from agent_core.api.identity import SCOPES
from benchmarks.peers.__main__ import installed
from knapper_ext.server.app import OPERATIONS
from tests.kit import Repeat, Say, scripted

from .__main__ import HERE, ROOT, served

ANSWER_S: Final = 30
_MOST_TURNS: Final = 12
_STREAMS: Final = r"/events$"
_KNOWN: Final = """[parameters]
"path.agent" = "main"
"path.name" = "days_between"
"path.label" = "human"
"""


def main() -> int:
    """Send the requests, print the status counts, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conformance.fuzz", description=__doc__
    )
    parser.add_argument("--requests", type=int, default=10_000, help="at least how many")
    parser.add_argument("--seed", type=int, default=19)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        scripted([Repeat(Say("Yes."))]) as model,
    ):
        root = Path(folder)
        with served(model.base_url, root / "workspace", SCOPES) as (url, token):
            address = url.removesuffix("/v1")
            _set_up(address, token)
            failed, sent = _send(given, root, address, token)
            status = _asked(f"{address}/api/v1/status", token)
        counts = _answered(root / "workspace")
        for log in sorted((root / "workspace" / ".knapper").glob("crash-*.log")):
            print(log.read_text("utf-8"))
        doctor = [
            sys.executable,
            "-m",
            "knapper",
            "-C",
            str(root / "workspace"),
            "doctor",
            "--json",
        ]
        whole = subprocess.run(doctor, cwd=ROOT, capture_output=True, text=True, check=False)
    faults = sum(number for status_code, number in counts.items() if status_code >= 500)
    print(
        f"{sum(counts.values()):,} requests: "
        + ", ".join(f"{n:,} × {code}" for code, n in sorted(counts.items()))
    )
    print(
        f"server: {'there' if status else 'GONE'}; doctor: {whole.returncode}; answers of 500 and more: {faults}"
    )
    return int(bool(faults or failed or whole.returncode or not status or sent < given.requests))


def _send(given: argparse.Namespace, root: Path, address: str, token: str) -> tuple[int, int]:
    """Send at least the requested number of requests; return the number of failed runs and of requests sent."""
    program = installed("schemathesis", HERE).with_name("schemathesis")
    failed = sent = 0
    for turn in range(_MOST_TURNS):
        # Alternate arbitrary and existing names, to reach more than a 404.
        (root / "schemathesis.toml").write_text(_KNOWN if turn % 2 else "")
        options = _options(address, token, given.seed + turn, given.requests - sent)
        command = [str(program), "--config-file", "schemathesis.toml", *options]
        failed += subprocess.run(command, cwd=root, check=False).returncode
        sent = sum(_answered(root / "workspace").values())
        if turn and sent >= given.requests:
            break
    return failed, sent


def _options(address: str, token: str, seed: int, wanted: int) -> list[str]:
    each = max(wanted // len(OPERATIONS) // 2, 1)
    return [
        *("run", f"{address}/openapi.json", "--header", f"Authorization: Bearer {token}"),
        *(
            "--exclude-path-regex",
            _STREAMS,
            "--checks",
            "not_a_server_error",
            "--phases",
            "examples,coverage,fuzzing",
        ),
        *("--max-examples", str(each), "--seed", str(seed), "--request-timeout", str(ANSWER_S)),
        *(
            "--rate-limit",
            "90/s",
            "--continue-on-failure",
            "--no-color",
            "--suppress-health-check",
            "all",
        ),
    ]


def _set_up(address: str, token: str) -> None:
    """Prepare data for the requests to find: a turn, a function, a helper."""
    body = json.dumps({"text": "Hello"}).encode()
    _asked(f"{address}/api/v1/agents/main/messages", token, body)


def _asked(url: str, token: str, body: bytes | None = None) -> Any:  # Any: JSON
    request = urllib.request.Request(url, body, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
        return json.load(answer)


def _answered(workspace: Path) -> Counter[int]:
    """Return how often each status was returned, from the server's access log."""
    logs = sorted((workspace / ".knapper").glob("access.log*"))
    return Counter(
        json.loads(line)["status"] for log in logs for line in log.read_text("utf-8").splitlines()
    )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
