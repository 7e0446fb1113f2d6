"""The only line diff: exact while that is cheap, otherwise anchored at lines that occur once on both sides.

The time of `difflib` grows with the cube of repeated lines: 66 KB take it 30 seconds. Its cost is estimated in advance,
so it compares only what fits the budget. Beyond that, the parts between lines that are unique on both sides are
compared separately; a part that is still too costly counts as entirely different.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Kind: TypeAlias = Literal["equal", "replace", "delete", "insert"]
Opcode: TypeAlias = tuple[Kind, int, int, int, int]
"""As in `difflib`: how lines `i1:i2` of the old text become lines `j1:j2` of the new one."""

_Match: TypeAlias = tuple[int, int, int]  # start in the old lines, start in the new lines, number of equal lines
COARSE: Final = "\\ Too much differs to be compared line by line: what was and what is are shown whole."


@dataclass(slots=True)
class ComparisonBudget:
    """The total cost of the comparisons that share it: steps of difflib's inner loop, and lines examined otherwise.

    The default is for a comparison on the event loop: about 30 ms.
    """

    steps: int = 100_000
    lines: int = 60_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The edit from one list of lines to another. Without `is_exact`, common lines may be reported as different."""

    opcodes: tuple[Opcode, ...]
    is_exact: bool = True

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of lines added and removed."""
        changed = [opcode for opcode in self.opcodes if opcode[0] != "equal"]
        return sum(opcode[4] - opcode[3] for opcode in changed), sum(opcode[2] - opcode[1] for opcode in changed)


def compare(old: Sequence[str], new: Sequence[str], budget: ComparisonBudget | None = None) -> Comparison:
    """Return how the old lines become the new ones."""
    comparing = _Comparing(old, new, budget or ComparisonBudget())
    opcodes: list[Opcode] = []
    i, j, same = 0, 0, 0
    for start, begin, size in [*comparing.matches((0, len(old)), (0, len(new))), (len(old), len(new), 0)]:
        if start == i + same and begin == j + same and size:
            same += size  # adjoins the previous block
            continue
        if same:
            opcodes.append(("equal", i, i + same, j, j + same))
        i, j = i + same, j + same
        if i < start or j < begin:
            kind: Kind = "replace" if i < start and j < begin else "delete" if i < start else "insert"
            opcodes.append((kind, i, start, j, begin))
        i, j, same = start, begin, size
    return Comparison(tuple(opcodes), comparing.is_exact)


def diff_lines(old: Sequence[str], new: Sequence[str], names: tuple[str, str], context: int = 3) -> list[str]:
    """Return the lines of a unified diff; none if nothing differs."""
    comparison = compare(old, new)
    matcher = _Known(comparison.opcodes)
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(context):
        (_, first, _, begin, _), (_, _, last, _, end) = group[0], group[-1]
        lines.append(f"@@ -{_range(first, last)} +{_range(begin, end)} @@")
        for kind, i1, i2, j1, j2 in group:
            lines += [f" {line}" for line in old[i1:i2]] if kind == "equal" else []
            lines += [f"-{line}" for line in old[i1:i2]] if kind in ("replace", "delete") else []
            lines += [f"+{line}" for line in new[j1:j2]] if kind in ("replace", "insert") else []
    head = [f"--- {names[0]}", f"+++ {names[1]}", *([] if comparison.is_exact else [COARSE])]
    return [*head, *lines] if lines else []


def blamed(versions: Iterable[tuple[T, Sequence[str]]], budget: ComparisonBudget) -> list[tuple[str, T]]:
    """Return each line of the last version with the version that added it. The `versions` are oldest first.

    A line that was removed and added again is of the version that added it again.
    """
    lines: list[tuple[str, T]] = []
    for version, now in versions:
        before, lines = lines, []
        for kind, start, end, first, last in compare([text for text, _ in before], now, budget).opcodes:
            lines += before[start:end] if kind == "equal" else [(text, version) for text in now[first:last]]
    return lines


class _Known(SequenceMatcher[str]):
    """A matcher that groups opcodes computed elsewhere."""

    def __init__(self, opcodes: Sequence[Opcode]) -> None:
        super().__init__()
        self._known = opcodes

    def get_opcodes(self) -> list[Opcode]:
        return [*self._known]


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start if not length else start + 1},{length}"


class _Comparing:
    """One comparison, and its remaining budget."""

    def __init__(self, old: Sequence[str], new: Sequence[str], budget: ComparisonBudget) -> None:
        self._old, self._new = old, new
        self._left = budget
        self.is_exact = True

    def matches(self, old: tuple[int, int], new: tuple[int, int]) -> Iterator[_Match]:
        """Yield the blocks of equal lines, in order."""
        waiting: list[tuple[tuple[int, int], tuple[int, int]] | _Match] = [(old, new)]
        while waiting:
            part = waiting.pop()
            if len(part) == 3:
                yield part
            elif part[0][0] < part[0][1] and part[1][0] < part[1][1]:
                waiting += reversed([*self._parts(*part)])

    def _parts(
        self, old: tuple[int, int], new: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]] | _Match]:
        (i1, i2), (j1, j2) = old, new
        self._left.lines -= i2 - i1 + j2 - j1
        if self._left.lines < 0:
            self.is_exact = False
            return
        before, after = self._old[i1:i2], self._new[j1:j2]
        counts = Counter(after)
        most = min(len(before), len(after))
        # An upper bound of the steps of `difflib`: each block that it finds takes one step per equal pair.
        cost = sum(counts[line] for line in before) * most + len(before) + len(after)
        if cost <= self._left.steps:
            self._left.steps -= cost
            blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
            yield from ((i1 + block.a, j1 + block.b, block.size) for block in blocks if block.size)
            return
        head = next((n for n in range(most) if before[n] != after[n]), most)
        most -= head
        tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
        if head or tail:
            yield i1, j1, head
            yield (i1 + head, i2 - tail), (j1 + head, j2 - tail)
            yield i2 - tail, j2 - tail, tail
        else:
            yield from self._between(old, new)

    def _between(
        self, old: tuple[int, int], new: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]] | _Match]:
        """Yield the lines that occur once on both sides, in the same order, and the gaps between them."""
        (i, i2), (j, j2) = old, new
        anchors = _anchors(self._old[i:i2], self._new[j:j2])
        if not anchors:
            self.is_exact = False
            return
        for start, begin in [(i + old_place, j + new_place) for old_place, new_place in anchors]:
            yield (i, start), (j, begin)
            yield start, begin, 1
            i, j = start + 1, begin + 1
        yield (i, i2), (j, j2)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest sequence of lines that occur once on both sides, in an order common to both."""
    once, new_places = _once(old), _once(new)
    pairs = [(place, new_places[line]) for line, place in once.items() if line in new_places]
    ends: list[int] = []  # for each length of a row, the least new position at which one ends
    tails: list[int] = []  # the pair that this row ends with
    before: list[int] = []  # for each pair, the previous one in its row
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        ends[at : at + 1], tails[at : at + 1] = [place], [number]
        before.append(tails[at - 1] if at else -1)
    row, number = [], tails[-1] if tails else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _once(lines: Sequence[str]) -> dict[str, int]:
    counts = Counter(lines)
    return {line: place for place, line in enumerate(lines) if counts[line] == 1}
