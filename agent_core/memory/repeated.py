"""Comparison of lines by their words alone: whether two say the same, the opposite, or are about the same thing.

Careful where it decides (a name, a number, a "not" makes another fact), generous where it only points.
"""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import nlargest
from importlib.resources import files

from agent_core.base.language import told
from sandbox.wire.foreign import read_toml

from .stem import stem

_INVISIBLE = re.compile("[\xad\u200b-\u200f\u2060-\u2064\ufeff]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class _Small:
    """The small words of a language, by what they are for."""

    empty: frozenset[str]
    user: frozenset[str]
    self: frozenset[str]
    denials: frozenset[str]
    aside: frozenset[str]
    links: frozenset[str]
    elided: Mapping[str, str]


_PHRASE = re.compile(r"\b(?:for sure|of course|at all)\b", re.IGNORECASE)
_OF_ONE = {"are": "is", "were": "was", "do": "does", "have": "has", "aren't": "isn't", "don't": "doesn't"}
_VERB = re.compile(rf"\b(?:{'|'.join(_OF_ONE)})(?![\w'])")
_TOGETHER = re.compile(
    rf"^(\W*+)([\w-]++(?:, [\w-]++)*+),? and ([\w-]++)(?=.*{_VERB.pattern})(.*)$",
    re.DOTALL,
)
_CLAUSE_END = re.compile(r"[,;]\s*(?=[a-z])")
_SPELLING = re.compile(r"(?<=\w\w)our(?=\w|$)|(?<=\w{3})ise\b")
_ELIDED = re.compile(r"\b(qu|[ldnjmstc])'(?=\w)", re.IGNORECASE)
_ALIKE = 0.9
# What is compared letter by letter takes time that grows with the square of its length, or worse.
_LONGEST_WORD, _MOST_SLIPS, _MOST_NAMES, _LETTERS, _NEAREST = 40, 4, 20, 300, 10
_PIECE = (
    500  # marks over one letter are sorted by exchanging neighbors, so that a text is brought into one form by pieces
)
# What a line shares with a text that does not stand there, before it is offered as the one that may have been meant.
_SHARED, _OF_OLD, _OF_WORDS = 1, 0.3, 0.5


@dataclass(frozen=True, slots=True)
class _Word:
    stem: str
    plain: bool  # neither a name nor a number, as far as its letters show


@dataclass(frozen=True, slots=True)
class Fact:
    """The words of a line that are compared."""

    text: str
    words: tuple[_Word, ...]
    whom: str
    denied: bool
    core: frozenset[str]  # what it speaks of, whether it affirms or denies


@cache
def _small(language: str) -> _Small:
    tables = read_toml(files(__package__).joinpath("repeated.toml").read_text("utf-8"))
    words = {name: frozenset(text.split()) for name, text in tables[language].items()}
    elided = dict(pair.split(":") for pair in words.pop("elided"))
    return _Small(denials=words.pop("not"), elided=elided, **words)


def read(line: str) -> Fact:
    """Return a line's words without those that carry no meaning in its language."""
    return _read(line, told(line))


@lru_cache(maxsize=8192)
def _read(line: str, language: str) -> Fact:
    words: list[_Word] = []
    whom, denied, small = "", False, _small(language)
    text = _INVISIBLE.sub("", _composed(line)).replace("’", "'")
    if small.elided:
        text = _ELIDED.sub(lambda match: f"{small.elided[match[1].lower()]} ", text)
    for original in _WORD.findall(_PHRASE.sub("", text)):
        word, short = _parted(original.casefold())
        if word in small.user or word in small.self:
            whom = whom or ("user" if word in small.user else "self")
        elif word not in small.empty:
            # Only of English is a letter more or less a slip: elsewhere it is often the tense.
            is_plain = language == "en" and original.islower() and len(word) > 4
            words.append(_Word(word if word in small.aside else _singular(word), is_plain))
        if short:
            words.append(_Word("not", plain=False))
        denied = denied or short or word in small.denials
    core = frozenset(word.stem for word in words) - small.aside - small.denials - {"of"}
    return Fact(text.casefold().strip(), tuple(words), whom, denied, core)


def _composed(line: str) -> str:
    pieces = (line[start : start + _PIECE] for start in range(0, len(line), _PIECE))
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)


def _parted(word: str) -> tuple[str, bool]:
    if word.endswith("n't"):
        return ("can" if word == "can't" else word.removesuffix("n't")), True
    return re.sub(r"'s?$|'(?:re|m)$", "", word), False


def _singular(word: str) -> str:
    """Return one form for singular and plural, British and American. The tense stays, since it makes another fact."""
    word = _SPELLING.sub(lambda match: "or" if match[0] == "our" else "ize", word)
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return f"{word[:-2]}y" if len(word) > 3 and word.endswith("ie") else word


def same(first: Fact, second: Fact) -> bool:
    """Check whether two facts say the same, word by word, except for a typo in a common word."""
    if first.whom and second.whom and first.whom != second.whom:
        return False
    if not first.words:
        return first.text == second.text
    if len(first.words) != len(second.words):
        return False
    slips = [pair for pair in zip(first.words, second.words, strict=True) if pair[0].stem != pair[1].stem]
    return len(slips) <= _MOST_SLIPS and all(_alike(left, right) for left, right in slips)


def _alike(left: _Word, right: _Word) -> bool:
    if not (left.plain and right.plain) or left.stem[0] != right.stem[0]:
        return False
    if max(len(left.stem), len(right.stem)) > _LONGEST_WORD:
        return False
    return difflib.SequenceMatcher(None, left.stem, right.stem).ratio() >= _ALIKE


def opposite(first: Fact, second: Fact) -> bool:
    """Check whether one fact denies exactly what the other affirms."""
    return first.denied != second.denied and bool(first.core) and first.core == second.core


def apart(line: str) -> list[str]:
    """Split "A and B are …" into what it says of each; return any other line unchanged."""
    match = _TOGETHER.match(line.replace("’", "'"))
    if match is None:
        return [line]
    before, first, last, predicate = match.groups()
    if first.count(",") >= _MOST_NAMES:
        return [line]
    predicate = _VERB.sub(lambda verb: _OF_ONE[verb[0]], predicate, count=1)
    return [f"{before}{name}{predicate}" for name in [*first.split(", "), last]]


@lru_cache(maxsize=8192)
def clauses(line: str) -> tuple[tuple[Fact, str], ...]:
    """Return a line, and its first clause with the rest: "A is B" and ", who likes C". A list of names is one
    clause.
    """
    match = _CLAUSE_END.search(line, 1)
    whole = (read(line), "")
    first = line[: match.start()].rstrip() if match else ""
    return (whole, (read(first), line[len(first) :])) if first else (whole,)


def close(line: str, lines: Sequence[str], most: int = 3) -> list[int]:
    """Return the lines about the same thing, best match first, by the words that few of them share."""
    own = subjects(line)
    subject_sets = [subjects(candidate) for candidate in lines]
    spread = Counter(word for words in subject_sets for word in words)
    scores = [_weight(own & words, spread) for words in subject_sets]
    enough = [
        number
        for number, words in enumerate(subject_sets)
        if scores[number] >= max(_SHARED, _OF_OLD * _weight(words, spread))
        and len(own & words) >= _OF_WORDS * min(len(own), len(words))
    ]
    return sorted(enough, key=lambda number: -scores[number])[:most]


def _weight(words: Iterable[str], spread: Mapping[str, int]) -> float:
    return sum(1 / spread[word] for word in words)


@lru_cache(maxsize=8192)
def subjects(line: str) -> frozenset[str]:
    """Return the stems of what a text speaks of."""
    small = _small(told(line))
    common = small.empty | small.aside | small.denials | small.links
    stems = frozenset(stem(word.stem) for word in read(line).words if word.stem not in common)
    key = line.split(":", 1)[0] if ":" in line else ""
    return stems | {f"{_plain(key)}:"} if key and len(key) < 40 else stems


def _plain(text: str) -> str:
    return " ".join(word.stem for word in read(text).words)


def nearest(text: str, lines: Sequence[str], most: int = 5) -> list[int]:
    """Return the lines most like a text, by letters or by subject, in their order."""
    numbers = dict.fromkeys(close(text, lines, most))
    matcher = difflib.SequenceMatcher(b=text.casefold()[:_LETTERS], autojunk=False)
    begun = [line.casefold()[:_LETTERS] for line in lines]
    may_be = nlargest(_NEAREST, ((_share(matcher, line), -number) for number, line in enumerate(begun)))
    scored = []
    for share, number in may_be:
        matcher.set_seq1(begun[-number])
        if share > 0.5 and (ratio := matcher.ratio()) > 0.5:
            scored.append((-ratio, -number))
    numbers |= dict.fromkeys(number for _, number in sorted(scored)[:most])
    return sorted([*numbers][:most])


def _share(matcher: difflib.SequenceMatcher[str], line: str) -> float:
    """Return an upper bound of the similarity of a line to the other text."""
    matcher.set_seq1(line)
    return matcher.quick_ratio()
