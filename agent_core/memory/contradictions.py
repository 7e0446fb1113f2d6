"""Which lines a new fact makes untrue: claims about the same of which one alone can hold.

Two claims about the same attribute of the same contradict if one denies what the other affirms, or if there can be one
value alone and they name two. Where no claim of a block does, `doubt` weighs what else the texts show; a line that is
named for that alone may be untrue, and is not said to be.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from agent_core.base.language import told

from .claims import CONTACTS, EVERYTHING, LACK, THINGS, Claim, read
from .clauses import ANYONE, USER
from .doubt import doubted
from .people import People
from .phrasebook import Phrasebook, phrasebook, stems_of

# Attributes that have one value at a time.
_ONE: Final = frozenset(
    {"home", "name", "age", "job", "employer", "partner", "marital", "diet", "phone", "email", "birthday", "boss"}
    | {"car", "weight", "height", "zone", "religion", "status", "nationality", "birth", "lead", "blood", "address"}
    | {"commute", "major", "school", "rise", "bed", "dwelling", "full name", "surname", "bank", "~support"}
)
_NARROWED: Final = frozenset({"job", "employer", "home", "member", "partner", "friend", "religion", "seek"})
_LOOSE: Final = frozenset(
    {
        "trip",
        "job",
        "plan",
        "travel",
        "subscript",
        "membership",
        "posit",
        "habit",
        "hobbi",
        "lesson",
        "contract",
        "leas",
        "learn",
        "house",
        "term",
    }
)
# Attributes whose names are common words: a sentence that has one need not be about the attribute.
_PLAIN: Final = frozenset({"home", "name", "age", "like", "job", "status", "major", "rise", "bed", "birth", "lead"})
_EVENTS: Final = frozenset({"visited", "birth", "student", "have", "seek"})


_YEAR: Final = re.compile(r"number:(?:19[5-9]\d|20(?!00)[0-3]\d)")
_OPPOSITE: Final = "it says the opposite"
_ALONE: Final = "only one can hold"
_MOST_READ: Final = 150  # lines of a large block: those that share the most words with the fact
_ALL: Final = frozenset({"everyth", "anyth"})
_ROOT: Final = 5  # letters that begin the name of a job and that of its field
_LONG: Final = 4  # words that two long lines share before another word in one of them is another version of the other
_OTHER: Final = 2
_ASIDE: Final = 3  # words that a line may say beside what is denied: "Ann, not Bob, sings" denies little else of Bob


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A line, from 0, that a new fact makes untrue, why, and the stems of the words that are untrue in it.

    No reason: it is likely, and no claim says so.
    """

    line: int
    reason: str
    words: frozenset[str] = frozenset()


def contradicted(lines: Sequence[str], fact: str, language: str = "") -> list[Contradiction]:
    """Return the lines that a new fact makes untrue; the language is told by the words if none is given."""
    numbers = _near(lines, fact)
    language = language or told(fact, "\n".join(lines[n] for n in numbers))
    known = phrasebook(language)
    new = read(fact, language)
    old = {number: read(lines[number], language) for number in numbers if lines[number].strip() != fact.strip()}
    apart = frozenset(number for number in old if _numbered_apart(lines[number], fact, known))
    people = People([*old.values(), new], known)
    untrue = []
    for number, claims in old.items():
        pairs = ((was, now, _reason(was, now, people, lines[number], known)) for was in claims for now in new)
        match = next((pair for pair in pairs if pair[2] and not (pair[2] == _ALONE and number in apart)), None)
        if match:
            was, now, reason = match
            untrue.append(Contradiction(number, reason, was.bag & now.words if now.words != was.words else was.words))
    if untrue or language != "en":
        return untrue  # the weights were fitted on English
    places = [number for number in old if number not in apart]
    return [Contradiction(places[n], "") for n in doubted([lines[place] for place in places], fact)]


def _numbered_apart(line: str, fact: str, known: Phrasebook) -> bool:
    """Check whether a line is about the second of several, and the fact not: a third may be born, or be called Tom."""
    nth = known.patterns.get("nth")
    one, other = (match[1].lower() if nth and (match := nth.match(text)) else "" for text in (line, fact))
    return one not in ("", other) and (bool(other) or one != "first")


def _near(lines: Sequence[str], fact: str) -> list[int]:
    """Return the numbers of the lines to read: all, or of many those that share the most words with the fact."""
    if len(lines) <= _MOST_READ:
        return [*range(len(lines))]
    words = frozenset(fact.casefold().split())
    return sorted(
        nlargest(_MOST_READ, range(len(lines)), lambda n: len(words.intersection(lines[n].casefold().split())))
    )


def _reason(was: Claim, now: Claim, people: People, line: str, known: Phrasebook) -> str:
    """Return why one claim excludes an older one, or nothing if it does not."""
    if now.attribute in (EVERYTHING, "!"):
        return _ended(was, now, people, line, known)
    if was.attribute in (EVERYTHING, "!"):
        return _begun(was, now, people, line, known)
    is_over = (was.cues.past or now.cues.past) and was.attribute not in _EVENTS
    is_same = people.same(was.subject, now.subject, line)
    if _lacked(was, now, known) or (not is_over and is_same and _opposed(was, now, people, known)):
        return _OPPOSITE
    if is_over or not is_same or was.affirmed != now.affirmed:
        return ""
    if _of_one(was, now) and was.affirmed and _excludes(was, now, known):
        return _ALONE
    checks = (_grouped(was, now, known), _counted(was, now, known), _reworded(was, now), _renewed(was, now, known))
    return _ALONE if any(checks) else ""


def _lacked(was: Claim, now: Claim, known: Phrasebook) -> bool:
    """Check whether the user is said not to have whom the other is about: "no siblings", "her brother called"."""
    is_none = was.attribute == "have" and was.subject == USER and not was.affirmed and not was.cues.past
    return is_none and bool(was.words and now.kin) and _within(was.words, now.kin, known)


def _opposed(was: Claim, now: Claim, people: People, known: Phrasebook) -> bool:
    """Check whether one denies what the other affirms. Who is no friend is no best friend, but not the reverse."""
    if was.affirmed == now.affirmed or was.facet == LACK:
        return False
    denial, claim = (now, was) if was.affirmed else (was, now)
    is_same = denial.attribute == claim.attribute or (denial.attribute, claim.attribute) == ("friend", "best friend")
    return is_same and not _is_foreign(denial, claim, people) and _denies(denial, claim, known)


def _is_foreign(denial: Claim, claim: Claim, people: People) -> bool:
    """Check whether what is denied is said of a thing of somebody else: "has no dog", "walked a friend's dog"."""
    theirs = {thing for owner, thing in claim.foreign - denial.foreign if owner not in people.user}
    return not denial.words.isdisjoint(theirs)


def _denies(denial: Claim, claim: Claim, known: Phrasebook) -> bool:
    if not denial.words or not claim.words:
        return not denial.words and (bool(denial.attribute) or not claim.bag)
    denied = denial.words
    if denial.attribute and claim.words <= _ALL:
        return True
    if denial.attribute == "seek":
        denied = frozenset(word for word in denied if word not in known.timed) or denied  # when it was found
    if denied <= claim.words or (denial.attribute and _within(denied, claim.words, known)):
        return bool(denial.attribute) or len(claim.words) - len(denial.words) <= _ASIDE
    return (
        denial.attribute in _NARROWED or (denial.cues.change and bool(denial.attribute))
    ) and claim.words <= denial.words


def _within(words: frozenset[str], others: frozenset[str], known: Phrasebook) -> bool:
    return all(word in others or known.kinds.get(word, frozenset()) & others for word in words)


def _is_field(words: frozenset[str], job: frozenset[str]) -> bool:
    """Check whether words name the field of a job: who quits dentistry is no dentist."""
    return all(any(len(word) >= _ROOT and word[:_ROOT] == other[:_ROOT] for other in job) for word in words)


def _ended(was: Claim, now: Claim, people: People, line: str, known: Phrasebook) -> str:
    """Return why a claim ends with what has ended."""
    if not was.affirmed or not people.same(was.subject, now.subject, line):
        return ""
    if was.cues.past and (now.subject != ANYONE or now.attribute == "!"):
        return ""
    subject = was.subject if now.subject == ANYONE else frozenset()
    attribute = frozenset(was.attribute.split())
    said = was.bag | was.words | attribute | subject
    words = now.words - USER
    if not words:
        return ""
    if was.attribute in CONTACTS and words <= attribute:
        return ""
    loose = words - _LOOSE - known.neutral
    is_over = _within(words, said, known) or (bool(loose) and _within(loose, said, known))
    is_field = was.attribute == "job" and _is_field(words, was.words)
    return "that is over" if is_over or is_field else ""


def _begun(was: Claim, now: Claim, people: People, line: str, known: Phrasebook) -> str:
    """Return why what has ended holds again."""
    if was.affirmed or not now.affirmed or not now.cues.change or now.attribute:
        return ""
    if not was.words or not people.same(was.subject, now.subject, line):
        return ""
    return _OPPOSITE if _within(was.words, now.bag, known) else ""


def _of_one(was: Claim, now: Claim) -> bool:
    """Check whether both name one attribute, the new one perhaps in short: "the deadline" after "project deadline"."""
    if was.attribute == now.attribute:
        return True
    is_named = now.attribute not in _ONE | _PLAIN and {was.facet, now.facet} <= {"key", "number"}
    short, long = frozenset(now.attribute.split()), frozenset(was.attribute.split())
    return is_named and now.cues.change and short < long and len(long) == len(short) + 1 and bool(short)


def _excludes(was: Claim, now: Claim, known: Phrasebook) -> bool:
    """Check whether the two values of an attribute exclude each other."""
    name = was.attribute
    if not name or now.cues.also or not was.words or not now.words or was.words <= now.words or now.words <= was.words:
        return False
    if name == "job" and was.facet == now.facet == "noun" and not (was.cues.change or now.cues.change):
        return False  # somebody may be a biologist and a diver
    facets = frozenset((was.facet, now.facet))
    if name in THINGS and facets & {"quality", "place"}:
        return facets == {"place"}
    if name in _ONE or name.startswith("favorite ") or (name[0] == "~" and now.cues.change):
        return True
    is_other = facets == {"number"} and _is_dated(was) != _is_dated(now)
    if is_other or "sign" in facets or _is_several(now.attribute, known):
        return False
    return (len(facets) == 1 and facets != {"quality"}) or facets <= {"key", "number"}


def _is_several(attribute: str, known: Phrasebook) -> bool:
    return bool(frozenset(attribute.split()) & known.several)


def _grouped(was: Claim, now: Claim, known: Phrasebook) -> bool:
    """Check whether the two name different members of a group, of the same thing."""
    if was.affirmed != now.affirmed or was.attribute or now.attribute or now.cues.also:
        return False
    for group, member, rest in was.groups:
        for other_group, other, others in now.groups:
            if group.endswith("~") and not now.cues.change:
                continue
            is_named = stems_of([group.rstrip("~!")], known.language)[0] in was.bag & now.bag
            if group == other_group and member != other and (is_named or _compatible(rest, others, now, group)):
                return True
    return False


def _compatible(rest: frozenset[str], others: frozenset[str], now: Claim, group: str) -> bool:
    if group.endswith("!") or not (rest or others):
        return True
    if group.endswith("~") and not rest:
        return False
    smaller = rest <= others or others <= rest
    return smaller and (bool(rest & others) or now.cues.change)


def _counted(was: Claim, now: Claim, known: Phrasebook) -> bool:
    """Check whether the two say the same with another number or day."""
    is_key = was.facet == "key" and not _is_several(was.attribute, known)
    if (was.attribute and not is_key) or now.attribute or not (was.affirmed and now.affirmed) or now.cues.also:
        return False
    kinds = {number.split(":")[0] for number in was.numbers} & {number.split(":")[0] for number in now.numbers}
    plain, others = (
        _plain(was, was.bag if is_key else was.words) - known.neutral,
        _plain(now, now.words) - known.neutral,
    )
    is_about = bool(plain & others) or (not plain and not others and was.subject != USER)
    is_less = others <= plain or (plain <= others and now.cues.change)
    if not is_about or not is_less:
        return False
    if _is_dated(was) != _is_dated(now):
        kinds -= {"number"}  # the day of a date or a year, and a number of something else
    return any(_of_kind(was, kind).isdisjoint(_of_kind(now, kind)) for kind in kinds)


def _of_kind(claim: Claim, kind: str) -> frozenset[str]:
    return frozenset(number for number in claim.numbers if number.startswith(f"{kind}:"))


def _is_dated(claim: Claim) -> bool:
    return bool(_of_kind(claim, "month")) or any(_YEAR.fullmatch(number) for number in claim.numbers)


def _plain(claim: Claim, words: frozenset[str]) -> frozenset[str]:
    return words - {number.rpartition(":")[2] for number in claim.numbers}


def _reworded(was: Claim, now: Claim) -> bool:
    """Check whether a long sentence stands there with a word or two exchanged."""
    if was.attribute or now.attribute or not (was.affirmed and now.affirmed) or now.cues.also:
        return False
    fresh, gone = now.words - was.words, was.words - now.words
    return len(now.words & was.words) >= _LONG and 0 < len(fresh) <= _OTHER and 0 < len(gone) <= _OTHER


def _renewed(was: Claim, now: Claim, known: Phrasebook) -> bool:
    """Check whether an attribute with a key of its own has changed: "Plan: basic", "switched the plan"."""
    if was.facet != "key" or not was.attribute or now.attribute or not (was.affirmed and now.affirmed):
        return False
    tokens = frozenset(was.attribute.split())
    is_one = not _is_several(was.attribute, known) and was.attribute not in _PLAIN
    return is_one and now.cues.change and not now.cues.also and tokens <= now.bag and not was.words <= now.bag
