"""Scripts as data: what the scripted model does at each request, and what it expects of the request."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    body: dict[str, Any]
    headers: dict[str, str]
    raw: dict[str, Any] = field(default_factory=dict)
    """The original request, if it came through the Responses API."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        found = self.body.get("messages")
        return found if isinstance(found, list) else []

    @property
    def functions(self) -> list[str]:
        """The function names shown: the tools, and the index in the system message."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or []] + listed(
            self.body
        )

    @property
    def text(self) -> str:
        """All message contents, joined by newlines."""
        return "\n".join(text_in(message.get("content")) for message in self.messages)

    @property
    def answers(self) -> list[str]:
        """The results after the last call."""
        last = [message for message in self.messages if message["role"] == "assistant"][-1:]
        after = self.messages[self.messages.index(last[0]) :] if last else []
        return [message["content"] for message in after if message["role"] == "tool"]


def text_in(content: object) -> str:
    """Return the text of a message's content, which may have pictures, too."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content or "")


@dataclass(frozen=True)
class Wanted:
    """A call that the model requests; `arguments` may be text, to send malformed JSON."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Say:
    """Answer with text; `pause_s` is the pause between the pieces, or before the whole if it is not streamed."""

    text: str
    thought: str = ""
    finish: str = "stop"
    usage: tuple[int, int] | None = None
    pause_s: float = 0.0


class Ask:
    """Request calls, all in one reply."""

    def __init__(
        self,
        *calls: Wanted,
        text: str = "",
        finish: str = "tool_calls",
        pause_s: float = 0.0,
        thought: str = "",
        usage: tuple[int, int] | None = None,
    ) -> None:
        """`thought` is a summary of the reasoning before the calls; only the Responses API shows it."""
        self.usage = usage
        self.calls = calls
        self.thought = thought
        self.text = text
        self.finish = finish
        self.pause_s = pause_s


@dataclass(frozen=True)
class Fail:
    """Reject the request; a text body becomes the message of an error in the usual shape."""

    status: int
    body: str | dict[str, Any] | bytes = "scripted failure"
    headers: dict[str, str] = field(default_factory=dict)
    code: str | None = None


@dataclass(frozen=True)
class Cut:
    """Send this text, then break the connection."""

    after: str = ""


@dataclass(frozen=True)
class Stall:
    """Send this text, then stall, then break the connection."""

    seconds: float
    after: str = ""


@dataclass(frozen=True)
class Raw:
    """Send these bytes as the body of the response."""

    body: bytes
    content_type: str = "text/event-stream"


Predicate: TypeAlias = Callable[[Seen], "str | None"]
"""Returns what is missing in a request, or None."""


class Expect:
    """A step that checks the request first."""

    def __init__(self, step: "Step | Choose", *predicates: Predicate) -> None:
        self.step = step
        self.predicates = predicates


@dataclass(frozen=True)
class Repeat:
    """A step for a number of requests; None: for all further requests."""

    step: "Step | Choose | Expect"
    times: int | None = None


Step: TypeAlias = Say | Ask | Fail | Cut | Stall | Raw
Choose: TypeAlias = Callable[[Seen], Step]
Script: TypeAlias = Sequence[Step | Choose | Expect | Repeat]


def contains(text: str) -> Predicate:
    """Expect the request to contain this text."""
    return lambda seen: (
        None if text in seen.text else f"the request does not contain {text!r}: {seen.text[-2000:]}"
    )


def shows(name: str) -> Predicate:
    """Expect the request to show this function, as a schema or in a text."""

    def told(seen: Seen) -> str | None:
        is_told = name in seen.functions or re.search(rf"\b{re.escape(name)}\(", seen.text)
        return None if is_told else f"`{name}` is not shown, but {seen.functions}"

    return told


def listed(body: dict[str, Any]) -> list[str]:
    """Return the names in the index of a request's system message: one per line, and those of the program."""
    text = next(
        (
            str(message["content"])
            for message in body.get("messages", ())
            if message["role"] == "system"
        ),
        "",
    )
    index = "".join(
        re.split("\nCall these (?:in a program or )?by call_function", text, maxsplit=1)[1:]
    )
    lines = re.findall(r"^(\w+)\(.*\)(?: ->.*)?$", index.partition("\n\n")[0], re.MULTILINE)
    of_program = re.search(r"^And of the program \([^)]*\): (.*)$", text, re.MULTILINE)
    return lines + (of_program[1].split(", ") if of_program else [])
