"""Requests of one call to the host while it runs: modules to import, sources to show, requests to the handler.

Modules are looked up by name. Only when code imports a name that is not a module, all names are listed, at most once
per call, to distinguish a folder from a mistake.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from ..code import ApprovedCode, Modules, SourceText
from ..errors import ProtocolError
from ..outcome import Frame, Outcome, Raised
from ..wire.caps import PROGRESS_EVERY_S
from ..wire.claims import Claimed, SentText
from ..wire.protocol import Frame as Message
from ..wire.requests import CalledHere, CalleeFailed, RequestHandler, RequestRefused, answered
from ..wire.values import Unsendable, is_large, lean, read
from .compilation import Compiled, CompiledCache, UncompilableModule, parents
from .debugging import CallEnded
from .large import LargeExchange
from .pool import Places

_MODULE_NAME_LIMIT = 500
_OF_CALLS = frozenset(
    {"call", "inner"}
)  # requests that pass values on to other functions, also large ones
_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def by_size(value: object, work: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
    """Return the result of work on a value; it runs in a thread if the value is large."""
    return (
        await asyncio.to_thread(work, *args, **named) if is_large(value) else work(*args, **named)
    )


class CallServer:
    """A server for the requests of one call."""

    def __init__(
        self,
        modules: Modules,
        cache: CompiledCache,
        places: Places,
        handler: RequestHandler,
        large: LargeExchange,
    ) -> None:
        self._modules = modules
        self._cache = cache
        self._places = places
        self._handler = handler
        self.large = large
        self._folders: frozenset[str] | None = None
        self._shown: dict[
            str, tuple[str, SourceText | None]
        ] = {}  # by path, for frames of failures and stops
        self._texts: dict[str, SentText] = {}  # the same, split into lines
        self._stopped_in = ""  # the path of the code that is stopped at its debugger
        self._claimed = Claimed(self._text)
        self._progress = 0.0, False  # time of the last report, and whether it was final

    def show(self, path: str, text: str) -> None:
        """Register the text of a path that frames may name."""
        self._shown[path] = text, None
        self._texts.pop(path, None)

    def show_module(self, source: SourceText) -> None:
        """Register the text of a compiled module."""
        self._shown[source.path] = source.text, source
        self._texts.pop(source.path, None)

    async def serve(self, message: Message) -> Message:
        """Answer one frame of the worker, and release the call's place meanwhile."""
        self._places.leave()
        try:
            return await self._answer(message)
        finally:
            self._places.resume()

    async def _answer(self, message: Message) -> Message:
        match message:
            case {"kind": "module", "module": str(name)} if len(name) <= _MODULE_NAME_LIMIT:
                module = self._modules.get(name)
                if module is not None:
                    return await self.message_of(module)
                if self._folders is None:
                    self._folders = frozenset(
                        parent for name in self._modules for parent in parents(name)
                    )
                return {"kind": "package" if name in self._folders else "absent"}
            case {"kind": "source", "module": str(name)} if len(name) <= _MODULE_NAME_LIMIT:
                source = self._modules.get(name)
                if source is None or isinstance(source, ApprovedCode):
                    return {"kind": "source", "text": None}
                return {"kind": "source", "text": source.text}
            case {"kind": "request", "name": str(name), "arguments": arguments}:
                reading = self.large.read if name in _OF_CALLS else read
                values = await by_size(arguments, reading, arguments)
                return await self._request(name, values)
            case _:
                raise ProtocolError("it asked for something that has no known shape")

    async def message_of(self, source: SourceText) -> Message:
        """Return the message with a compiled module for a worker."""
        compiled = await self._cache.get(source)
        if isinstance(compiled, Compiled | UncompilableModule):
            self.show_module(source)
            return compiled.message
        return {
            "kind": "broken",
            "path": source.path,
            "line": 0,
            "message": "it could not be compiled within limits",
        }

    async def _request(self, name: str, arguments: object) -> Message:
        if not isinstance(arguments, dict):
            raise ProtocolError("a request's arguments are no dictionary")
        if name == "progress":  # workers wait between reports themselves, except for the last
            is_last, now = arguments.get("done") == arguments.get("total"), time.monotonic()
            told_at, was_last = self._progress
            if now - told_at < PROGRESS_EVERY_S / 2 and (was_last or not is_last):
                return {"kind": "answer", "value": None}
            self._progress = now, is_last
        if name == "debug":
            self._claimed.check(arguments)
            self._tell_lines(arguments)
        try:
            answer = await answered(self._handler, name, arguments)
            if isinstance(answer, CalledHere):
                return await by_size(answer.arguments, answer.to_json)
            sent = self._ordered(answer) if name == "debug" else answer
            return {"kind": "answer", "value": await by_size(sent, lean, sent)}
        except CalleeFailed as failed:
            return {"kind": "refused", "reason": str(failed), "error": failed.to_json()}
        except (RequestRefused, Unsendable) as refusal:
            return {"kind": "refused", "reason": str(refusal)}
        except ProtocolError:
            raise
        except Exception as error:  # the edge of the handler: its failure ends only this call
            _log.exception("a request of a function, %s, could not be answered", ascii(name[:40]))
            message = (
                f"the program itself failed while it answered a request "
                f"({type(error).__name__}); its log has the rest"
            )
            raise CallEnded(message) from error

    def illustrated(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the source line of every frame, from the host's copy of the text."""
        if not isinstance(outcome, Raised):
            return outcome
        return replace(outcome, failure=outcome.failure.each_frame(self._with_source_line))

    def _with_source_line(self, frame: Frame) -> Frame:
        text = self._text(frame.path)
        if text is None:
            return replace(frame, source="")
        line = text.told(frame.line, frame.column)
        return replace(frame, line=line, source=text.line(line))

    # The debugger of approved code counts other lines than the text has: the host translates both ways.

    def _tell_lines(self, claim_message: Message) -> None:
        """Replace the lines in a checked message of the debugger by those of the texts."""
        if claim_message.get("event") == "stopped" and claim_message.get("frames"):
            self._stopped_in = claim_message["frames"][-1][0]
        if "line" in claim_message:
            claim_message["line"] = self._told(claim_message.get("path"), claim_message["line"])
        for row in (*(claim_message.get("frames") or ()), *(claim_message.get("rows") or ())):
            row[1] = self._told(row[0], row[1])
        if isinstance(lines := claim_message.get("lines"), list):
            claim_message["lines"] = [self._told(claim_message.get("path"), line) for line in lines]

    def _told(self, path: object, line: object) -> object:
        text = self._text(path) if isinstance(path, str) else None
        return text.told(line) if text is not None and isinstance(line, int) else line

    def _ordered(self, order: Any) -> Any:  # Any: JSON
        """Return an order for the debugger with the lines of the code."""
        match order:
            case {"do": "until", "line": int(line)} if text := self._text(self._stopped_in):
                return {**order, "line": text.wanted(line)}
            case {"do": "break", "point": dict(point)}:
                return {**order, "point": self.placed(point)}
            case _:
                return order

    def placed(self, point_message: Message) -> Message:
        """Return a breakpoint as the code of this call has it: approved code gets no text, and watches its line."""
        source = self._modules.get(point_message["module"])
        if not isinstance(source, ApprovedCode):
            return point_message
        text = self._text(source.path)
        return {
            **point_message,
            "text": "",
            "first": 0,
            "line": text.wanted(point_message["line"]) if text else 0,
        }

    def _text(self, path: str) -> SentText | None:
        """Return the registered text of a path, split into lines once; None if there is none."""
        if path not in self._texts and path in self._shown:
            text, source = self._shown[path]
            self._texts[path] = SentText.of(text, self._cache.places_of(source) if source else None)
        return self._texts.get(path)
