"""A player that replaces the model in the growth benchmark: it plays each arm optimally, behind real HTTP.

It knows the right calls and the right source but nothing of the library: it calls a function only if the request shows
it. So its figures measure the program itself, given a model that plays right.
"""

import json
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Final

from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted

from .best_play import shared
from .growth_requests import Requested, definition, right_function

_BYTES_PER_TOKEN: Final = 4
_MOST_CALLS: Final = 40  # in one reply


class GrowthPlayer:
    """Plays one request after another.

    `read` and `cached` are the tokens of the current request, estimated from bytes. The prefix that a request shares
    with the previous one counts as cached by the server.
    """

    def __init__(self, *, reuses: bool) -> None:
        self._reuses = reuses
        self._model = ScriptedModel([Repeat(self._next)])
        self._sent = ""
        self._script: Generator[Step, Seen, None] | None = None
        self.base_url = self._model.base_url
        self.read = self.cached = 0

    def __enter__(self) -> "GrowthPlayer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._model.close()

    def begin(self, requested: Requested, arm: str, seed: int) -> None:
        """Start the next request."""
        self.read, self.cached, self._script = 0, 0, self._played(requested, arm, seed)
        next(self._script)

    def _next(self, seen: Seen) -> Step:
        assert self._script is not None, "a request begins before its model is asked"
        text = json.dumps([seen.body.get("tools"), seen.messages])
        self.cached += shared(self._sent, text) // _BYTES_PER_TOKEN
        self.read += len(text) // _BYTES_PER_TOKEN
        self._sent = text
        return self._script.send(seen)

    def _played(self, requested: Requested, arm: str, seed: int) -> Generator[Step, Seen, None]:
        """Play one request: with the function if it is shown, else as the arm allows, and keep what worked."""
        name, domain = requested.family.name, requested.domain
        seen = yield Say("")  # `begin` advances to here
        is_shown = name in seen.functions
        if arm == "cold" and not is_shown:
            source = right_function(domain, requested.family, seed)
            yield Ask(
                Wanted(
                    "create_function",
                    {"function_name": name, "function_code_with_docstring": source},
                )
            )
        if arm == "none" or (arm == "cold" and not self._reuses):
            for calls in _rounds(requested):
                yield Ask(*calls)
            yield Say(
                f"{requested.expected:g}" if requested.expected < 1e5 else str(requested.expected)
            )
        elif (is_shown and (self._reuses or arm == "maker")) or arm == "cold":
            seen = yield Ask(
                Wanted("call_function", {"name": name, "arguments": requested.arguments})
            )
            yield Say(_value(requested, seen))
        else:
            call = f"{name}({requested.rows}, {requested.above})"
            code = f"{definition(domain, requested.family)}\n{name}({requested.rows[:1]})\n{call}"
            seen = yield Ask(Wanted("run_program", {"code": code}))
            said = _value(requested, seen)
            if arm != "programs" and not is_shown:
                words = (
                    f"Work out one value for each of these {domain.rows}. {requested.family.rule()}"
                )
                given = {
                    "function_name": name,
                    "function_code_with_docstring": words,
                    "from_program": True,
                }
                yield Ask(Wanted("create_function", given))
            yield Say(said)


def _rounds(requested: Requested) -> Iterator[list[Wanted]]:
    """Yield the calls of each step: independent calls are made together."""
    for calls in zip(*requested.calls, strict=True):
        wanted = [Wanted(name, given) for name, given in calls]
        for start in range(0, len(wanted), _MOST_CALLS):
            yield wanted[start : start + _MOST_CALLS]


def _value(requested: Requested, seen: Seen) -> str:
    """Return the requested figure from the result, or the result itself if it contains none."""
    text = seen.answers[-1]
    try:
        return str(json.loads(text.partition("\n")[0])[requested.key])
    except (ValueError, KeyError, TypeError):
        return text
