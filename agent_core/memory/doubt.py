"""How likely a new fact makes a line untrue, where no claim tells it: signals of the two texts, weighed.

A line is doubted for what it shares with the fact and other lines do not, for what then differs (names, numbers), and
for words of change, denial or addition. The weights were fitted: `doubt.toml` says on what. Notes and long sentences
have weights of their own.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from sandbox.wire.foreign import read_toml

from .claims import EVERYTHING, Claim, read
from .people import People
from .phrasebook import Phrasebook, numbers_of, phrasebook, words_of

_LETTERS: Final = 600
_LONG: Final = 12  # words that a line and a fact have together, from which on they are sentences
_WORD: Final = re.compile(r"[^\W\d_][\w-]*")
_OWNED: Final = re.compile(r"['’]s?\b")
_KEY: Final = re.compile(r"^\W*([^:,;.]{1,40}?) ?:\s")
_SHARED, _LEFT = 5, 8  # as many words count as many
_LEAST: Final = 0.1  # what a word counts that stands in every line


@dataclass(frozen=True, slots=True)
class _Text:
    """What is looked at of a line or a fact."""

    words: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    people: frozenset[str]
    key: frozenset[str]
    claims: tuple[Claim, ...]
    denied: bool
    contrast: bool

    def cue(self, name: str) -> bool:
        """Check whether a clause has words of this kind."""
        return any(getattr(claim.cues, name) for claim in self.claims)


@lru_cache(maxsize=8192)
def _text(line: str) -> _Text:
    known, line = phrasebook("en"), line[:_LETTERS]
    claims = read(line, "en")
    plain = known.patterns["user"].sub(" ", known.patterns["owner"].sub(" ", _OWNED.sub(" ", line)))
    words, key = frozenset(words_of(plain, known)), _KEY.match(line)
    return _Text(
        words,
        _names(plain, known),
        numbers_of(words, known),
        words & known.people,
        frozenset(words_of(key[1], known)) if key else frozenset(),
        claims,
        _is_denied(line, claims, known),
        known.patterns["contrast"].search(line) is not None,
    )


def _is_denied(line: str, claims: Sequence[Claim], known: Phrasebook) -> bool:
    return known.patterns["negation"].search(line) is not None or any(not claim.affirmed for claim in claims)


def _names(text: str, known: Phrasebook) -> frozenset[str]:
    """Return the stems of the names: capitalized words, at the beginning only before another one or a verb."""
    names = []
    for word in _WORD.finditer(text):
        begins = text[: word.start()].rstrip()[-1:] in ("", ".", ":", ";")
        rest = text[word.end() :].lstrip(" ,")
        is_name = word[0][0].isupper() and (
            not begins or rest[:1].isupper() or known.patterns["verb"].match(rest) is not None
        )
        names += words_of(word[0], known) if is_name else []
    return frozenset(names)


def signals(lines: Sequence[str], fact: str) -> list[dict[str, float]]:
    """Return what was measured of each line and a new fact, in English."""
    texts, new, known = [_text(line) for line in lines], _text(fact), phrasebook("en")
    people = People([*(text.claims for text in texts), new.claims], known)
    spread = Counter(word for text in texts for word in text.words)
    rows = [
        _overlap(text, new, spread, len(lines)) | _differences(text, new) | _claimed(text, new, people, line, known)
        for text, line in zip(texts, lines, strict=True)
    ]
    for number, row in enumerate(rows):
        others = [other["alike"] for place, other in enumerate(rows) if place != number]
        row["ahead"] = row["alike"] - max(others, default=0.0)
        row["nearest"] = row["alike"] > 0 and row["ahead"] >= 0
        for name in ("change", "denied", "contrast", "denial", "other_number", "other_name", "other_person"):
            row[f"{name}_alike"] = row[name] * row["alike"]
    return rows


def _overlap(old: _Text, new: _Text, spread: Mapping[str, int], lines: int) -> dict[str, float]:
    """Return how much of the two is the same, of words that not every line has."""
    names = old.names & new.names

    def weight(words: frozenset[str]) -> float:
        full = math.log((lines + 1.5) / 1.5)
        counts = (math.log((lines + 1.5) / (max(spread[word], 1) + 0.5)) / full for word in words - names)
        return sum(max(count, _LEAST) for count in counts)

    shared, of_old, of_new = weight(old.words & new.words), weight(old.words), weight(new.words)
    return {
        "bias": 1.0,
        "shared": min(shared, _SHARED) / _SHARED,
        "alike": 2 * shared / (of_old + of_new) if shared else 0.0,
        "covered": shared / of_old if shared else 0.0,
        "covers": shared / of_new if shared else 0.0,
        "left_old": min(len(old.words - new.words), _LEFT) / _LEFT,
        "left_new": min(len(new.words - old.words), _LEFT) / _LEFT,
        "nothing_left_old": old.words <= new.words,
        "nothing_left_new": new.words <= old.words,
        "key": bool(old.key),
        "key_shared": len(old.key & new.words) / len(old.key) if old.key else 0.0,
        "two_keys": bool(old.key and new.key),
    }


def _differences(old: _Text, new: _Text) -> dict[str, float]:
    """Return what differs: names, numbers, relations, words of change."""
    fresh, gone = new.names - old.names, old.names - new.names
    return {
        "other_name": bool(fresh and gone),
        "fresh_name": bool(fresh and not gone),
        "gone_name": bool(gone and not fresh),
        "same_name": bool(old.names & new.names),
        "other_number": bool(new.numbers - old.numbers and old.numbers - new.numbers),
        "fresh_number": bool(new.numbers and not old.numbers),
        "gone_number": bool(old.numbers and not new.numbers),
        "same_person": bool(old.people & new.people),
        "other_person": bool(old.people and new.people and old.people.isdisjoint(new.people)),
        "person_in_one": bool(old.people) != bool(new.people),
        "change": new.cue("change"),
        "also": new.cue("also"),
        "past": new.cue("past"),
        "past_line": old.cue("past"),
        "denied": new.denied,
        "denial": new.denied != old.denied,
        "contrast": new.contrast,
    }


def _claimed(old: _Text, new: _Text, people: People, line: str, known: Phrasebook) -> dict[str, float]:
    """Return what the claims of the two have in common."""
    pairs = [(was, now) for was in old.claims for now in new.claims]
    same = [pair for pair in pairs if people.same(pair[0].subject, pair[1].subject, line)]
    of_one = [(was, now) for was, now in same if was.attribute == now.attribute not in ("", EVERYTHING, "!")]
    names, others = ({claim.attribute for claim in text.claims} - {"", EVERYTHING, "!"} for text in (old, new))
    subjects, of_new = (
        frozenset[str]().union(*(claim.subject for claim in text.claims)) & known.people for text in (old, new)
    )
    change = new.cue("change")
    return {
        "subject": bool(same),
        "attribute": bool(of_one),
        "attribute_change": bool(of_one) and change,
        "attribute_twice": any(was.affirmed and now.affirmed for was, now in of_one),
        "attribute_of_another": bool(names & others) and not of_one,
        "attributes": bool(names and others and not names & others),
        "relation_fresh": bool(of_new - subjects),
        "relation_gone": bool(subjects - of_new),
    }


def kind_of(line: str, fact: str) -> str:
    """Return which weights hold for the two: those of `sentences` or of `notes`."""
    return "sentences" if len(_text(line).words) + len(_text(fact).words) >= _LONG else "notes"


def doubted(lines: Sequence[str], fact: str) -> list[int]:
    """Return the numbers of the lines that the fact probably makes untrue."""
    numbers = []
    for number, row in enumerate(signals(lines, fact)):
        kind = kind_of(lines[number], fact)
        score = sum(weight * row[name] for name, weight in _weights()[kind].items())
        if score > 0 and not is_clear(row, kind):
            numbers.append(number)
    return numbers


def is_clear(row: Mapping[str, float], kind: str) -> bool:
    """Check whether the two hold together, whatever they share: an addition, a fact of another, a denial of another."""
    is_other = bool(row["other_person"]) and not (row["denied"] or row["contrast"])
    is_fresh = bool(row["fresh_name"] or row["other_name"]) and not row["same_name"]
    is_denial = is_fresh and bool(row["denied"]) and not row["contrast"]
    return is_other or is_denial or (kind == "notes" and bool(row["also"]))


@cache
def _weights() -> dict[str, dict[str, float]]:
    return read_toml(files(__package__).joinpath("doubt.toml").read_text("utf-8"))
