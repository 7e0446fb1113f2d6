"""What one agent has not seen of others' work on the functions."""

from ..events import FunctionsChanged


class Unread:
    """The functions that another hand changed since an agent saw their text: it does not write over them."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def heard(self, change: FunctionsChanged) -> None:
        """Take note of a change by another hand."""
        self._names |= {*change.changed}
        self._names -= {*change.removed}

    def read(self, name: str) -> None:
        """Its text was shown."""
        self._names.discard(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names
