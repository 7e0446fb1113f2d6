"""Matching: similar names, shell patterns, texts to forget, and line differences, in bounded time for any input.

Lines, names and patterns come from models, files and workers, and are compared on the event loop. So every function
here takes at most linear time: where an exact answer would cost more, it returns a coarser one and marks it as such.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import translate
from functools import cache
from heapq import nlargest
from html.entities import codepoint2name
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar

from .errors import UsageError
from .records import dataclass

_LONGEST_NAME: Final = 100  # characters: no name is longer, so a longer text is not a typo
_MOST_NAMES: Final = 5_000  # names examined
_COMPARED: Final = 20  # of these, the ones compared letter by letter


def nearest(name: str, names: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return the most similar names, best first, like `difflib.get_close_matches`, but in bounded time."""
    letters = Counter(name)
    if not 0 < len(name) <= _LONGEST_NAME:
        return []
    shared: list[tuple[float, str]] = []
    for candidate in islice(names, _MOST_NAMES):
        length = len(name) + len(candidate)
        if 2 * min(len(name), len(candidate)) < likeness * length:
            continue
        common = sum(
            min(candidate.count(letter), count) for letter, count in letters.items()
        )  # in any order
        if common * 2 / length >= likeness:
            shared.append((common * 2 / length, candidate))
    best = nlargest(_COMPARED, shared)
    matcher = SequenceMatcher(b=name, autojunk=False)
    scored = []
    for _, match in best:
        matcher.set_seq1(match)
        scored.append((matcher.ratio(), match))
    return [candidate for score, candidate in nlargest(most, scored) if score >= likeness]


def did_you_mean(name: str, names: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """Return a sentence that suggests the most similar known name; `otherwise` if none is similar."""
    matches = nearest(name, names, likeness=likeness)
    return f"Did you mean `{matches[0]}`?" if matches else otherwise


_LOOKS: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "_": "", "-": ""})


def look(name: str) -> str:
    """Return a key that is the same for names that look alike: case, separators and similar letters are ignored."""
    return name.casefold().translate(_LOOKS).replace("rn", "m").replace("vv", "w")


def names_by_look(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by how they look, sorted, for comparing many names with each other."""
    by_look: dict[str, list[str]] = {}
    for name in sorted(names):
        by_look.setdefault(look(name), []).append(name)
    return by_look


# Shell patterns: `*`, `?` and `[…]`.

LONGEST_PATTERN: Final = 200
"""Maximum length of a pattern in characters; a longer one matches no name."""


class Wildcard:
    """A case-sensitive pattern. One longer than `LONGEST_PATTERN` matches nothing."""

    def __init__(self, pattern: str) -> None:
        # Python makes each star an atomic group: what follows it is looked for once.
        self._translated = (
            re.compile(translate(pattern)) if len(pattern) <= LONGEST_PATTERN else None
        )

    def fits(self, text: str) -> bool:
        """Return whether the whole text matches the pattern."""
        return self._translated is not None and self._translated.match(text) is not None


# Every occurrence of a text that must be forgotten, in any form in which a record may contain it.
# A record contains nested JSON, addresses and sources: a letter may be literal, composed or decomposed, or an escape of
# JSON, Python, HTML or a URL. Each form matches, so that no spelling of the text remains.

MARK: Final = "[forgotten]"
"""The replacement for a forgotten text."""
NAME: Final = "forgotten"
"""The replacement where only a name is valid."""

_GONE: Final = "\U0010ffff"  # no character: stands for a match while sentences are removed
_LEAST: Final = 2
_LONGEST_TEXT: Final = 1_000
_BMP: Final = 0x10000
_MOST_CASED: Final = 0x1F000  # no later character has a case
_ESCAPING: Final = re.compile(r"[\\%&]")
_SLASHES: Final = r"\\{1,9}"  # a text in JSON in JSON; bounded, like every repetition here
_GAP: Final = rf"(?:\s|{_SLASHES}[nrt]|{_SLASHES}u00(?:20|a0|0a|09)|%20|%0a|\+|&nbsp;){{1,40}}"
_BEFORE: Final = r"(?:(?<![^\W_])|(?<=\\[nrtbf])|(?<=%20)|(?<=%0a))"
_AFTER: Final = r"(?![^\W_])"
_SENTENCE: Final = re.compile(
    r"(?=[^\n])[.!?;]*[^\n.!?;]*(?:[.!?;](?=\S)[^\n.!?;]+)*[.!?;]*[^\S\n]*"
)


class Mention:
    """A text to forget: in any case unless `exact`, and inside longer words unless `word`.

    `longer` counts the longer words in which it was found.
    """

    def __init__(self, text: str, *, exact: bool = False, word: bool = False) -> None:
        """Prepare the search.

        Raises:
            UsageError: the text is too short or too long to identify.
        """
        parts = unicodedata.normalize("NFC", text).split()
        if not _LEAST <= sum(map(len, parts)) <= _LONGEST_TEXT:
            fix = f"Give {_LEAST} to {_LONGEST_TEXT:,} characters."
            raise UsageError(
                f"`{text[:60]}` is not a text that can be forgotten everywhere.", fix=fix
            )
        self.text = text
        self.exact = exact
        self.longer: Counter[str] = Counter()
        flags = re.NOFLAG if exact else re.IGNORECASE
        before, after = (_BEFORE, _AFTER) if word else ("", "")
        plain = r"\s{1,40}".join(_pattern(part, _plain, exact=exact) for part in parts)
        whole = _GAP.join(
            _pattern(part, _whole if exact else _in_any_case, exact=exact) for part in parts
        )
        self._plain = re.compile(f"{before}(?:{plain}){after}", flags)
        self._whole = re.compile(f"{before}(?:{whole}){after}", flags)
        self._around = re.compile(rf"[^\W_]{{0,40}}(?:{plain})[^\W_]{{0,40}}", flags)

    def within(self, text: str) -> bool:
        """Check whether the text occurs in another."""
        return self._form(text).search(text) is not None

    def count(self, text: str) -> int:
        """Return how often the text occurs in another."""
        return len(self._form(text).findall(text))

    def around(self, text: str, limit_chars: int) -> str:
        """Return the part of a text around the first occurrence; "" if there is none."""
        match = self._form(text).search(text)
        if match is None:
            return ""
        start = max(min(match.start() - limit_chars // 2, len(text) - limit_chars), 0)
        end = start + limit_chars
        return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"

    def without(self, text: str, instead: str = MARK) -> str:
        """Return a text with each occurrence replaced; the same object if there is none."""
        replaced, count = self._form(text).subn(lambda _: instead, text)
        if not count:
            return text
        for match in self._around.finditer(text):
            if not self._plain.fullmatch(match[0]):
                self.longer[match[0]] += 1
        return replaced

    def shortened(self, text: str) -> str:
        """Return a text without the sentences that contain the text, and without the lines that this empties."""
        if self.without(text) is text:
            return text
        marked = self._form(text).sub(
            lambda match: _GONE + f"\n{_GONE}" * match[0].count("\n"), text
        )
        remaining = []
        for line in marked.split("\n"):
            sentences = (part for part in _SENTENCE.findall(line) if _GONE not in part)
            short = "".join(sentences).rstrip() if _GONE in line else line
            if short or not line.strip():
                remaining.append(short)
        return self.without(
            "\n".join(remaining), "…"
        )  # what came together by this; never longer than before

    def _form(self, text: str) -> re.Pattern[str]:
        return self._whole if _ESCAPING.search(text) else self._plain


@cache
def _cases() -> tuple[Mapping[str, Sequence[str]], re.Pattern[str]]:
    """Return the letters of each case folding (`s`: S and ſ, `ss`: ß and ẞ), and a pattern of one folding."""
    letters = defaultdict[str, list[str]](list)
    for letter in map(chr, range(_MOST_CASED)):
        if (folded := letter.casefold()) != letter:
            letters[folded].append(letter)
    long = sorted((folded for folded in letters if len(folded) > 1), key=len, reverse=True)
    return letters, re.compile("|".join([*map(re.escape, long), "."]))


def _pattern(text: str, written: Callable[[str], str], *, exact: bool) -> str:
    """Return a pattern of a text without spaces; in any case unless `exact`. `written` returns that of a letter."""
    cases, folding = _cases()
    pattern = ""
    for letters in text if exact else folding.findall(text.casefold()):
        forms = [*_spelled(letters, written, cases)]
        pattern += f"(?:{'|'.join(forms)})" if len(forms) > 1 else forms[0]
    return pattern


def _spelled(
    letters: str,
    written: Callable[[str], str],
    cases: Mapping[str, Sequence[str]],
    before: str = "",
) -> Iterator[str]:
    """Yield the patterns of at most three letters, each of its own or as parts of one."""
    if not letters:
        yield before
        return
    for size in range(1, len(letters) + 1):
        for letter in letters[0] if size == 1 else cases.get(letters[:size], ()):
            form = written(letter)
            yield from _spelled(
                letters[size:], written, cases, before + (f"(?:{form})" if "|" in form else form)
            )


def _plain(letter: str) -> str:
    decomposed = unicodedata.normalize("NFD", letter)
    return (
        re.escape(letter)
        if decomposed == letter
        else f"{re.escape(letter)}|{re.escape(decomposed)}"
    )


def _in_any_case(letter: str) -> str:
    return "|".join(map(_whole, (letter, *_cases()[0].get(letter, ()))))


def _whole(letter: str) -> str:
    """Return a pattern of all ways to write a letter, in escapes, too."""
    forms, decomposed = _forms(letter), unicodedata.normalize("NFD", letter)
    if decomposed != letter:
        forms.add("".join(f"(?:{'|'.join(sorted(_forms(part)))})" for part in decomposed))
    return "|".join(sorted(forms))


def _forms(letter: str) -> set[str]:
    number, octets = ord(letter), letter.encode("utf-8", "surrogatepass")
    pairs = letter.encode("utf-16-be", "surrogatepass").hex()
    escapes = {
        "".join(rf"{_SLASHES}u{pairs[place : place + 4]}" for place in range(0, len(pairs), 4)),
        rf"{_SLASHES}U{number:08x}",
        "".join(f"%{octet:02x}" for octet in octets),
        "".join(rf"{_SLASHES}x{octet:02x}" for octet in octets),
        rf"&#0{{0,9}}{number};",
        rf"&#x0{{0,9}}{number:x};",
    }
    if number < _BMP >> 8:
        escapes.add(rf"{_SLASHES}x{number:02x}")
    if number in codepoint2name:
        escapes.add(f"&{codepoint2name[number]};")
    return {re.escape(letter), *(f"(?i:{escape})" for escape in escapes)}


# The only line diff: exact while that is cheap, otherwise anchored at lines that occur once on both sides.
# The time of `difflib` grows with the cube of repeated lines: 66 KB take it 30 seconds. Its cost is estimated in
# advance, so it compares only what fits the budget. Beyond that, the parts between lines that are unique on both sides
# are compared separately; a part that is still too costly counts as entirely different.

T = TypeVar("T")

Kind: TypeAlias = Literal["equal", "replace", "delete", "insert"]
Opcode: TypeAlias = tuple[Kind, int, int, int, int]
"""As in `difflib`: how lines `i1:i2` of the old text become lines `j1:j2` of the new one."""

_Match: TypeAlias = tuple[
    int, int, int
]  # start in the old lines, start in the new lines, number of equal lines
COARSE: Final = (
    "\\ Too much differs to be compared line by line: what was and what is are shown whole."
)


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
        return sum(opcode[4] - opcode[3] for opcode in changed), sum(
            opcode[2] - opcode[1] for opcode in changed
        )


def compare(
    old: Sequence[str], new: Sequence[str], budget: ComparisonBudget | None = None
) -> Comparison:
    """Return how the old lines become the new ones."""
    comparing = _Comparing(old, new, budget or ComparisonBudget())
    opcodes: list[Opcode] = []
    i, j, same = 0, 0, 0
    for start, begin, size in [
        *comparing.matches((0, len(old)), (0, len(new))),
        (len(old), len(new), 0),
    ]:
        if start == i + same and begin == j + same and size:
            same += size  # adjoins the previous block
            continue
        if same:
            opcodes.append(("equal", i, i + same, j, j + same))
        i, j = i + same, j + same
        if i < start or j < begin:
            kind: Kind = (
                "replace" if i < start and j < begin else "delete" if i < start else "insert"
            )
            opcodes.append((kind, i, start, j, begin))
        i, j, same = start, begin, size
    return Comparison(tuple(opcodes), comparing.is_exact)


def diff_lines(
    old: Sequence[str], new: Sequence[str], names: tuple[str, str], context: int = 3
) -> list[str]:
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


def blamed(
    versions: Iterable[tuple[T, Sequence[str]]], budget: ComparisonBudget
) -> list[tuple[str, T]]:
    """Return each line of the last version with the version that added it. The `versions` are oldest first.

    A line that was removed and added again is of the version that added it again.
    """
    lines: list[tuple[str, T]] = []
    for version, now in versions:
        before, lines = lines, []
        for kind, start, end, first, last in compare(
            [text for text, _ in before], now, budget
        ).opcodes:
            lines += (
                before[start:end]
                if kind == "equal"
                else [(text, version) for text in now[first:last]]
            )
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
