"""The program of the engine: started by `server`, which sends one JSON line with the plan and reads one line back.

    {"model", "threads", "context", "socket", …}  →  {"ready": version} or {"failed": why}

After that, the engine serves the usual endpoints at the socket. It imports nothing of this package, so that it starts
fast, and ends when its parent process is gone.
"""

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

Line = dict[str, Any]  # Any: JSON


def load(plan: Line) -> tuple[Any, str]:
    """Return the engine with its weights, and its version."""
    import xllamacpp  # noqa: PLC0415 - a failure to import it is reported

    parameters = xllamacpp.CommonParams()
    parameters.model.path = plan["model"]
    parameters.n_ctx = plan["context"]
    parameters.n_parallel = 1
    parameters.n_batch = parameters.n_ubatch = plan["batch"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = plan["threads"]
    parameters.cache_ram_mib = plan["cache_mib"]
    # Its endpoints listen at a socket in a private folder, not at a port that every user can reach.
    parameters.hostnames = [plan["socket"]]
    parameters.slot_save_path = plan["states"]
    parameters.endpoint_slots = bool(plan["states"])
    parameters.n_threads_http = 3  # for a reply, a state, and an abandoned request
    parameters.warmup = parameters.ui = False
    parameters.verbosity = -1
    return xllamacpp.Server(parameters), str(xllamacpp.__version__)


def leave_with_the_host(address: Path) -> None:
    """Exit when the input ends because the parent process is gone, without waiting for the engine's threads."""
    sys.stdin.buffer.read()
    with suppress(OSError):
        address.unlink(missing_ok=True)
        address.parent.rmdir()
    os._exit(0)


def main() -> None:
    """Redirect the engine's own output, load the weights from the first line, and serve."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with suppress(OSError):  # if memory runs out, the kernel should kill this process first
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")
    plan = json.loads(sys.stdin.buffer.readline())
    leaving = threading.Thread(
        target=leave_with_the_host, args=(Path(plan["socket"]),), daemon=True
    )
    leaving.start()
    server: Any = None  # Any: an untyped package; the server runs as long as it is referenced
    try:
        server, version = load(plan)
        answer: Line = {"ready": version}
    except (ImportError, RuntimeError) as error:
        answer = {"failed": str(error)}
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
    if server is not None:
        leaving.join()


if __name__ == "__main__":
    main()
