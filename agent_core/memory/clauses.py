"""A line of memory in clauses: of whom each speaks, and what it says of them."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from .phrasebook import Phrasebook, words_of

Subject: TypeAlias = frozenset[str]

USER: Final[Subject] = frozenset({"user"})
ANYONE: Final[Subject] = frozenset({"*"})
_NAME: Final = re.compile(r"[^\W\d_a-z][\w-]+")
_IRREGULAR: Final = {"am": "is", "are": "is", "have": "has", "do": "does", "go": "goes", "were": "was"}
_NAMED: Final = 3  # words of a relation with a name
_OWNED: Final = re.compile(r"'s?\b|s'")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause in parts: of whom, the text of that, and what is said; `kin`, who of the user's own that is."""

    text: str
    named: tuple[Subject, ...]
    noun: str
    predicate: str
    known: Phrasebook
    kin: frozenset[str] = frozenset()

    @property
    def is_thing(self) -> bool:
        """Check whether it is about a thing, of nobody else: "the team meeting", "the user's contract"."""
        thing = self.known.patterns.get("thing")
        if thing is None or thing.match(self.noun) is None:
            return False
        head = self.known.patterns["with"].split(self.noun)[0] if "with" in self.known.patterns else self.noun
        return not frozenset(words_of(head, self.known)) & self.known.people

    @property
    def denied(self) -> bool:
        """Check whether it denies something."""
        return has(self.known, "negation", self.predicate)


def clauses(text: str, known: Phrasebook) -> list[str]:
    """Return the clauses of a text; what has no verb belongs to the next one: "Ann, the user's sister, sings"."""
    whole: list[str] = []
    waiting = ""
    for piece in known.patterns["split"].split(text):
        joined = f"{waiting}, {piece}" if waiting else piece
        waiting = "" if _verb(joined, known) is not None else joined
        whole += [] if waiting else [joined]
    return [*whole, waiting] if waiting else whole


def in_third_person(text: str, known: Phrasebook) -> str:
    """Return a text with "I like" and "we have" as "I likes" and "we has", which is how the phrases have verbs."""
    first = known.patterns.get("first")
    return first.sub(lambda match: match[1] + _third(match[2], known), text) if first else text


def _third(verb: str, known: Phrasebook) -> str:
    ending = "es" if verb.endswith(("s", "x", "z", "ch", "sh")) else "s"
    third = _IRREGULAR.get(verb) or (re.sub(r"(?<=[^aeiou])y$", "ie", verb) + ending)
    return third if known.patterns["verb"].fullmatch(third) else verb


def parted(text: str, before: tuple[Subject, ...], known: Phrasebook) -> Clause:
    """Return the parts of a clause; `before` are those whom the clause before it is about."""
    verb = _verb(text, known)
    verb = _after_thing(text, known) if verb is None else verb
    noun, predicate = (text[:verb].strip(" ,"), text[verb:]) if verb is not None else ("", text)
    if not noun:
        return Clause(text, before, "", predicate, known)
    if known.patterns["user"].fullmatch(known.patterns["also"].sub("", noun).strip(" ,")):
        return Clause(text, (USER,), noun, predicate, known, _kin_of(predicate, known))
    owned = has(known, "owner", noun)
    members = [noun] if owned else known.patterns["and"].split(noun)
    named = tuple(_subject(member, known, owned=owned) for member in members)
    return Clause(text, named, noun, predicate, known, _kin(noun, known) if before == (USER,) else frozenset())


def _kin(noun: str, known: Phrasebook) -> frozenset[str]:
    """Return the relation of "my brother Tom", and nothing for another's brother or a brother in arms."""
    owned = known.patterns["owner"].match(noun)
    words = noun[owned.end() :].replace(",", " ").split() if owned else []
    elder = known.patterns.get("elder")
    if words and (words[0].isdigit() or words[0].lower() in known.timed or (elder and elder.fullmatch(words[0]))):
        words = words[1:]
    if not words or not words[0].isalpha() or not (words[0].islower() or known.language == "de"):
        return frozenset()
    is_named = len(words) <= _NAMED and all(_NAME.fullmatch(word) for word in words[1:])
    return frozenset(words_of(words[0], known)) & known.people if is_named else frozenset()


def _kin_of(predicate: str, known: Phrasebook) -> frozenset[str]:
    """Return the relations of the user's own that something is done with: "walks her dog"."""
    kin: frozenset[str] = frozenset()
    for owned in known.patterns["owner"].finditer(predicate):
        first, *rest = [*predicate[owned.end() :].split(), ""]
        is_whole = not rest or first.endswith((",", ".")) or _NAME.match(rest[0]) or not words_of(rest[0], known)
        if is_whole and (first.islower() or known.language == "de"):
            kin |= frozenset(words_of(first, known)) & known.people
    return kin


def _subject(text: str, known: Phrasebook, *, owned: bool) -> Subject:
    plain = known.patterns["owner"].sub(" ", text if owned else known.patterns["user"].sub(" ", text))
    owner, plain = possessed(plain, known)
    own_name = {f"{word}'s" for word in owner}
    return frozenset({*own_name, *words_of(known.patterns["user"].sub(" ", plain), known)}) or USER


def possessed(text: str, known: Phrasebook) -> tuple[Subject, str]:
    """Return whose something is by name, and what: "Ann's boss"."""
    whose = known.patterns["possessor"].match(text.strip())
    return (frozenset(words_of(whose[1], known)), text.strip()[whose.end() :]) if whose else (frozenset(), text)


def _verb(text: str, known: Phrasebook) -> int | None:
    """Return where the predicate begins."""
    bare = known.patterns.get("bare")
    if bare is not None and bare.match(text):
        return 0  # "back at work": what is said of whom is clear has no subject, and no verb
    own = known.patterns["user"].match(text)
    if own and not _OWNED.match(text[own.end() :]):
        return len(text) - len(text[own.end() :].lstrip(" ,"))
    after = known.patterns.get("after")  # what makes a noun of a word: "the rent", "her study"
    starts = (verb.start() for verb in known.patterns["verb"].finditer(text))
    return next((start for start in starts if not (after and after.search(text, 0, start))), None)


def _after_thing(text: str, known: Phrasebook) -> int | None:
    """Return where the predicate begins after somebody's thing, where no list has the verb: "Ann's dog barks"."""
    thing = known.patterns["foreign"].match(text)
    return thing.end() if thing and text[thing.end() :].strip(" ,") else None


def owned_by_others(text: str, known: Phrasebook) -> frozenset[tuple[str, str]]:
    """Return each word for a thing of somebody else, with whose it is: "fed Ann's cat", "the kids of a friend"."""
    pairs = [(owner, thing) for owner, thing in known.patterns["theirs"].findall(text)]
    pairs += [(owner, thing) for thing, owner in known.patterns["theirs_of"].findall(text)]
    words = [(words_of(owner, known)[-1:], words_of(thing, known)) for owner, thing in pairs]
    return frozenset((owner, thing) for owners, things in words for owner in owners for thing in things)


def has(known: Phrasebook, name: str, text: str) -> bool:
    """Check whether a text has words of a kind."""
    return known.patterns[name].search(text) is not None
