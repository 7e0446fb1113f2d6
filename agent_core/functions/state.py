"""The `self.state` of a function: read from the store, and held until the answer of its call is stored.

A state belongs to one function, for all callers. The function is identified by the code that runs, not by a name that
a worker sends.
"""

from typing import Any, Final

from agent_core.base.errors import StorageError
from agent_core.storage import FunctionStore, SaveState, dump
from agent_core.storage.subject import parse_row
from sandbox import RequestRefused
from sandbox.wire.caps import MOST_STATE

TRIES: Final = 10
"""The number of attempts for a call if other calls change its state meanwhile."""


class FunctionStates:
    """The states of a function and of those that it calls, as one call reads and writes them."""

    def __init__(self, store: FunctionStore, turn: str = "") -> None:
        self._store = store
        self._turn = turn
        self._began: dict[str, int] = {}  # the number of the row that each was read from
        self._held: dict[str, tuple[int, Any]] = {}  # Any: JSON; how often the call has changed it, and the value

    @property
    def writes(self) -> tuple[SaveState, ...]:
        """The writes of the states that changed."""
        changed = [(name, value) for name, (version, value) in self._held.items() if version]
        return tuple(SaveState(name, value, self._began[name], self._turn) for name, value in changed)

    async def answer(self, function: str, arguments: dict[str, Any]) -> list[Any] | None:  # Any: as a worker sent them
        """Return the version and the value of a function's state, or hold a new value for it.

        Raises:
            RequestRefused: the value is not small JSON, or an inner call changed the state since it was read.
        """
        if function not in self._held:
            rows = await self._store.states(function)
            self._began[function] = rows[-1].n if rows else 0
            self._held[function] = (0, rows[-1].value if rows else {})
        version, value = self._held[function]
        if "value" not in arguments:
            return [version, value]
        try:
            text = dump(arguments["value"])
            new = parse_row(text)  # must be readable later
        except StorageError as error:
            raise RequestRefused(f"self.state takes what JSON can hold: {error.message}") from error
        if len(text.encode()) > MOST_STATE:
            raise RequestRefused(f"self.state takes {MOST_STATE} bytes of JSON: keep less, or a summary")
        if arguments.get("version") != version:
            raise RequestRefused(
                f"`{function}` was called within its own call and changed the state that this one read"
            )
        self._held[function] = (version + 1, new)
        return None
