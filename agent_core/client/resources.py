"""The operations of a noun as methods of the client; `resources.pyi`, which is generated, has their types."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agent_core.operations import functions
from agent_core.operations.operation import Operation, operations_of

Json = dict[str, Any]  # Any: JSON


class FunctionOperations:
    """The operations on functions."""

    noun = functions.NOUN

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Json]]:
        try:
            operation = operations_of(self.noun)[verb.replace("_", "-")]
        except KeyError:
            raise AttributeError(f"There is no operation `{self.noun} {verb}`.") from None
        signature = inspect.signature(operation.body)

        def ask(*given: object, **named: object) -> Awaitable[Json]:
            values = signature.bind(None, *given, **named).arguments
            return self.run(operation, **dict([*values.items()][1:]))

        return ask

    async def run(self, operation: Operation, **values: Any) -> Json:  # Any: JSON
        """Run an operation and return its result."""
        raise NotImplementedError
