"""Shared by the tests of grants: functions that need something, a human who answers, a small server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent_core.access.grants import Decision, Grants, Question
from agent_core.functions.service import Author
from tests.functions.support import Room
from tests.kit.levels import IS_PORTABLE
from tests.kit.sources import function_text

AGENT = Author("agent", "main", "turn", "scripted")
STOPPED = (
    "raised" if IS_PORTABLE else "killed"
)  # a call that makes what nobody can grant: the host refuses each change
READS = "\n\n".join(
    [
        "from pathlib import Path\n",
        function_text(
            "total() -> int",
            "Add up the numbers in the folder data.\n\nReturns:\n    Their sum.\n\nExamples:\n    >>> total()\n    6",
            'return sum(int(one.read_text()) for one in Path("data").iterdir())',
        ),
    ]
)
FETCHES = function_text(
    "weather(self, city: str) -> str",
    "Say what the weather is.\n\nArgs:\n    city: The name of a city.\n\nReturns:\n    "
    "The weather as the service tells it.",
    'return self.fetch(f"http://{HOST}/{city}").text()',
)
PLAIN = function_text(
    "double(number: int) -> int",
    "Double a number.\n\nArgs:\n    number: Any whole number.\n\nReturns:\n    Twice the number.\n\nExamples:\n    "
    ">>> double(2)\n    4\n    >>> double(5)\n    10",
    "return number + number",
)


@dataclass
class Human:
    """Answers questions in order, repeating the last answer, and records them."""

    answers: list[Decision]
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> Decision:
        self.asked.append(question)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def human(*answers: str) -> Human:
    """Return a human with these answers in order: `yes`, `once`, `no`, or `no: a word`."""
    return Human([_decision(one) for one in answers])


def _decision(text: str) -> Decision:
    answer, _, word = text.partition(": ")
    return Decision(answer, word)  # type: ignore[arg-type]  # one of the three


class _Weather(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"rain in " + self.path[1:].encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


async def now(here: Room, name: str = "weather") -> Grants:
    """Return what a function may reach now."""
    snapshot = here.shop.registry.snapshot()
    return await here.shop.granting.book.allowed(snapshot.functions[name], snapshot)


@contextmanager
def weather_service() -> Iterator[str]:
    """Run a server on this machine; yield its host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Weather) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()
