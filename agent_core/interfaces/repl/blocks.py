"""A stream of Markdown, cut where a block has ended, so that what is finished can be drawn for good."""

_FENCES = ("```", "~~~")


class Blocks:
    """Takes pieces of text in; gives whole blocks out, each once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest: list[str] = []
        self._fence = ""

    def feed(self, piece: str) -> list[str]:
        """The blocks that this piece finished."""
        first, *others = piece.split("\n")
        self._rest.append(first)
        finished = []
        for start in others:
            finished.append(self._take("".join(self._rest)))
            self._rest = [start]
        return [block for block in finished if block]

    def end(self) -> str:
        """What is left when the text is over."""
        self._lines.append("".join(self._rest))
        self._rest, self._fence = [], ""
        return self._flush().rstrip("\n")

    def pending(self, lines: int, limit_chars: int) -> str:
        """The last lines of what is not finished yet."""
        self._rest = ["".join(self._rest)]
        return "\n".join(each[-limit_chars:] for each in [*self._lines[-lines:], *self._rest])

    def _take(self, line: str) -> str:
        if self._fence:
            return self._inside(line)
        opened = _fence_of(line)
        if opened:
            self._fence = opened
            before = self._flush()
            self._lines.append(line)
            return before
        if not line.strip():
            return self._flush()
        self._lines.append(line)
        return ""

    def _inside(self, line: str) -> str:
        self._lines.append(line)
        marks = line.strip()
        if marks.startswith(self._fence) and not marks.strip(self._fence[0]):
            self._fence = ""
            return self._flush()
        return ""

    def _flush(self) -> str:
        block = "\n".join(self._lines)
        self._lines = []
        return block if block.strip() else ""


def _fence_of(line: str) -> str:
    text = line.lstrip()
    if not text.startswith(_FENCES):
        return ""
    return text[: len(text) - len(text.lstrip(text[0]))]
