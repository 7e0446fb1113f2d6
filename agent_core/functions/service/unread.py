"""Changes by others to the functions that an agent has not seen."""

from agent_core.base.events import FunctionsChanged


class StaleView:
    """The functions that someone else changed since an agent saw their text. The agent does not overwrite them."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def heard(self, change: FunctionsChanged) -> None:
        """Note a change by someone else."""
        self._names |= {*change.changed}
        self._names -= {*change.removed}

    def read(self, name: str) -> None:
        """Note that the function's text was shown."""
        self._names.discard(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names
