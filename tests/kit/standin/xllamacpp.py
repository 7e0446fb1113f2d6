"""A stand-in for the package of this name in engine tests. Its tokens are words; each message is an instruction.

The weights file holds one word: what happens on load. The message `die 9` ends the process with that signal, `fail`
raises, `slow` takes long to read, `endless` never ends, and `environment` returns the environment variables.
"""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

__version__ = "0.standin"
BATCH = 64


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams, self.cpuparams_batch = (
            SimpleNamespace(n_threads=0),
            SimpleNamespace(n_threads=0),
        )
        self.n_ctx = 0
        self.hostnames: list[str] = []
        self.slot_save_path = ""
        self.endpoint_slots = True


class Server:
    def __init__(self, parameters: CommonParams) -> None:
        with Path(parameters.model.path).open("rb") as weights:
            happens = weights.read(16).decode()
        if happens == "broken":
            raise RuntimeError("Failed to init server")
        if happens.isdigit():
            os.kill(os.getpid(), int(happens))
        self._window = parameters.n_ctx
        self._states = Path(parameters.slot_save_path) if parameters.endpoint_slots else None
        self._read: list[str] = []
        self._one = threading.Lock()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(parameters.hostnames[0])
        listener.listen()
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def _complete(self, body: dict[str, Any], take: Callable[[dict[str, Any]], bool]) -> None:
        print("noise on standard output", flush=True)
        print("noise on standard error", file=sys.stderr, flush=True)
        words = [
            word
            for entry in body["messages"]
            for word in (entry["role"], *entry["content"].split())
        ]
        if len(words) > self._window:
            raise ValueError("request exceeds the available context size")
        same = (
            n for n, pair in enumerate(zip(words, self._read, strict=False)) if pair[0] != pair[1]
        )
        cached = next(same, min(len(words), len(self._read)))
        if not self._take_in(words, cached, take) or body["max_tokens"] == 0:
            take({"choices": [{"delta": {}, "finish_reason": "length"}]})
            return
        text = json.dumps({"thought": "I reply.", "reply": answer(body["messages"][-1]["content"])})
        usage = {"prompt_tokens": len(words), "prompt_tokens_details": {"cached_tokens": cached}}
        take({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})
        take({"choices": [], "usage": usage})

    def _take_in(
        self, words: list[str], cached: int, take: Callable[[dict[str, Any]], bool]
    ) -> bool:
        for processed in [*range(cached, len(words), BATCH), len(words)]:
            self._read = words[:processed]
            if take(
                {"choices": [], "prompt_progress": {"total": len(words), "processed": processed}}
            ):
                return False
            time.sleep(0.03 if "slow" in words else 0)
        while "endless" in words:
            time.sleep(0.01)
            if take({"choices": []}):
                return False
        return True

    def _serve(self, listener: socket.socket) -> None:
        while True:
            threading.Thread(target=self._answer, args=(listener.accept()[0],), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as request:
            head = request.readline()
            length = next(
                int(line.split()[1])
                for line in request
                if line.lower().startswith(b"content-length")
            )
            while request.readline().strip():
                pass
            body = json.loads(request.read(length))
            if b"/slots/" in head:
                self._keep(head, body["filename"], connection)
            else:
                with self._one:
                    self._stream(body, connection)
            connection.recv(
                1
            )  # as the real server may do: a second request finds the connection closed

    def _stream(self, body: dict[str, Any], connection: socket.socket) -> None:
        begun: list[bool] = []

        def take(chunk: dict[str, Any]) -> bool:
            kind = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            try:
                connection.sendall((b"" if begun else kind) + _event(json.dumps(chunk)))
            except OSError:
                return True
            begun.append(True)
            return False

        try:
            self._complete(body, take)
            connection.sendall(_event("[DONE]") + b"0\r\n\r\n")
        except (RuntimeError, ValueError) as error:
            status = 400 if isinstance(error, ValueError) else 500
            failure = {"error": {"code": status, "message": str(error)}}
            if begun:
                connection.sendall(_event(json.dumps(failure)) + b"0\r\n\r\n")
            else:
                _send(connection, status, failure)
        except OSError:
            pass

    def _keep(self, head: bytes, name: str, connection: socket.socket) -> None:
        if self._states is None:
            _send(connection, 501, {"error": {"code": 501, "message": "no slots"}})
            return
        state = self._states / name
        if b"save" in head:
            state.write_text(" ".join(self._read))
        elif state.read_text() == "poison":
            os.abort()
        else:
            self._read = state.read_text().split()
        _send(connection, 200, {"id_slot": 0})


def _event(data: str) -> bytes:
    text = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


def _send(connection: socket.socket, status: int, body: dict[str, Any]) -> None:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    connection.sendall(head.encode() + text)


def answer(message: str) -> str:
    match message.split():
        case ["die", number]:
            os.kill(os.getpid(), int(number))
            time.sleep(60)  # the signal may reach another thread first
        case ["fail"]:
            raise RuntimeError("no more")
        case ["environment"]:
            return " ".join(sorted(os.environ))
    return message
