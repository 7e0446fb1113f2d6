"""Server-sent events, as far as endpoints use them: the data of each event, from bytes split anywhere."""


class Decoder:
    """A decoder that collects bytes and returns the data of every complete event."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> list[bytes]:
        """Return the events that end in this part."""
        head, newline, tail = part.rpartition(b"\n")
        if not newline:  # what was looked through is not looked through again
            self._rest += part
            return []
        lines, self._rest = (bytes(self._rest) + head).split(b"\n"), bytearray(tail)
        return [event for line in lines if (event := self._line(line.rstrip(b"\r"))) is not None]

    def close(self) -> list[bytes]:
        """Return the event that the end of the stream completes."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> bytes | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            event = b"\n".join(self._data)
            self._data.clear()
            return event
        return None  # comments, event names and ids: endpoints say all in the data
