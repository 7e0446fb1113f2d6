"""The program of the engine: started by `child`, which sends commands as JSON lines and reads lines back.

    {"model", "threads", "context", …}                first: what to load → {"ready": version} or {"failed": why}
    {"id", "body"}                                    a completion → {"id", "chunk"} …, {"id", "end": true}
    {"id", "action": "save" | "restore", "file"}      the state of what was read → {"id", "end": whether}
    {"stop": id}                                      stop this completion

It imports nothing of this package, so that it starts fast, and ends when nobody can write to it any more.
"""

import json
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

Line = dict[str, Any]  # Any: JSON


class EngineProgram:
    """An executor of commands, one after another; a stop is noticed at any time."""

    def __init__(self, orders: BinaryIO, answers: BinaryIO) -> None:
        self._orders = orders
        self._answers = answers
        self._waiting: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._stopped: set[int] = set()
        self._socket = Path()

    def run(self) -> None:
        """Load what the first command says, then execute the others until the input ends."""
        plan = json.loads(self._orders.readline())
        self._socket = Path(plan["socket"])
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            server, version = load(plan)
        except (ImportError, RuntimeError) as error:
            self._say({"failed": str(error)})
            return
        self._say({"ready": version})
        while True:
            self._obey(server, self._waiting.get())

    def _listen(self) -> None:
        try:
            for line in self._orders:
                order = json.loads(line)
                if "stop" in order:
                    self._stopped.add(order["stop"])
                else:
                    self._waiting.put(order)
        finally:
            self._leave()

    def _obey(self, server: Any, order: Line) -> None:  # Any: an untyped package
        number: int = order["id"]

        def take(chunk: Line) -> bool:
            self._say({"id": number, "chunk": chunk})
            return number in self._stopped

        end: Line = {"end": True}
        if "action" in order:
            end["end"] = keep(self._socket, order["action"], order["file"])
        elif number not in self._stopped:
            end = complete(server, order["body"], take)
        self._say({"id": number, **end})

    def _say(self, line: Line) -> None:
        try:
            self._answers.write(json.dumps(line).encode() + b"\n")
            self._answers.flush()
        except BrokenPipeError:
            self._leave()

    def _leave(self) -> None:
        """Exit because the parent process is gone, without waiting for the engine's own threads."""
        with suppress(OSError):
            self._socket.unlink(missing_ok=True)
            self._socket.parent.rmdir()
        os._exit(0)


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
    # Its endpoints listen at a socket in a private folder, not at a port that every user could speak to.
    parameters.hostnames = [plan["socket"]]
    parameters.slot_save_path = plan["states"]
    parameters.endpoint_slots = bool(plan["states"])
    parameters.n_threads_http = 1
    parameters.warmup = parameters.ui = False
    parameters.verbosity = -1
    return xllamacpp.Server(parameters), str(xllamacpp.__version__)


def complete(server: Any, body: Line, take: Callable[[Line], bool]) -> Line:  # Any: an untyped package
    """Run one completion and return how it ended."""
    try:
        server.handle_chat_completions(body, take)
    except RuntimeError as error:
        return {"failed": str(error)}
    return {"end": True}


def keep(address: Path, action: str, file: str) -> bool:
    """Save or restore the state of what was read; return whether that succeeded."""
    body = json.dumps({"filename": file}).encode()
    head = f"POST /slots/0?action={action} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    if sys.platform != "win32":  # whose Python has no sockets of this kind: nothing is saved there
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(address))
            connection.sendall(head.encode() + body)
            return connection.makefile("rb").readline().split()[1:2] == [b"200"]
    return False


def main() -> None:
    """Keep the engine's own output out of the answers, and run."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with suppress(OSError):  # where memory runs out, this process is the one to go
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")
    EngineProgram(sys.stdin.buffer, answers).run()


if __name__ == "__main__":
    main()
