"""What a line of memory claims: of whom, which attribute, with which words, affirmed or denied.

Words and phrases are data, a table of `claims.toml` per language. A clause is what somebody (`subject`) is said to do
or be. Each phrase in it is a sign of claims about an attribute; the clause as a whole is a claim without one.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from agent_core.base.language import told

from .clauses import ANYONE, USER, Clause, Subject, clauses, has, in_third_person, owned_by_others, parted, possessed
from .phrasebook import Phrasebook, numbers_of, phrasebook, stems_of, words_of

EVERYTHING: Final = "*"
LACK: Final = "lack"  # the facet of "has no dog" as a whole, which no dog seen in the street contradicts
CONTACTS: Final = frozenset({"phone", "email", "address", "name", "age", "birthday"})
THINGS: Final = frozenset({"car", "phone"})  # which one it is, its color, and where it is, all hold at once
_BULLET: Final = re.compile(r"^\s*(?:[-*•·]|\d{1,2}[.)])\s+")
_KEY: Final = re.compile(r"^([^:,;.]{1,40}?) ?:\s+(\S.*)$")
_ASIDE: Final = re.compile(r"^([^(]*)(?:\((.*?)\)?)?$", re.DOTALL)
_NAME: Final = re.compile(r"(?:(?:Mrs?|Ms|Dr|Prof)\. )*[A-ZÄÖÜÉ]\w+(?: [A-Z]\w+)*$")
_AT_WORK: Final = re.compile(r"\b(?:at|for) (?:the )?([A-Z]\w+(?: [A-Z]\w+)*)")
_WORD: Final = re.compile(r"[\w+#]+")
_COMPANY: Final = re.compile(r"with [A-Z]\w+")
_FEW: Final = 2
# what holds of somebody who only means to do something
_INTENDED: Final = ("seek", "~aspire", "name", "like", "prefer", "learn")
_GONE: Final = frozenset({"!", EVERYTHING})
_ARTICLE: Final = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
_LETTERS: Final = 600
_EXPANDED: Final = (
    (re.compile(r"[’`´]"), "'"),
    (re.compile(r"\bcan't\b|\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"\b(i)'m\b", re.IGNORECASE), r"\1 am"),
    (re.compile(r"\b(s?he|it|that)'s(?= (?:been|got|had|gone|become)\b)", re.IGNORECASE), r"\1 has"),
    (re.compile(r"\b(s?he|it|that)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(\w+)'ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\b(\w+)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(\w+)'ll\b", re.IGNORECASE), r"\1 will"),
)


@dataclass(frozen=True, slots=True)
class Cues:
    """What a clause says of its time: that it is over, comes in addition, or is new."""

    past: bool = False
    also: bool = False
    change: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. No words are any words; `bag` is all that its clause says, `groups` which member of which group.

    `kin` is who of the user's own it is about, as long as nothing says that they are no more, or not yet; `foreign`,
    which words of its clause are for a thing of whom else.
    """

    subject: Subject
    attribute: str
    words: frozenset[str]
    affirmed: bool
    bag: frozenset[str] = frozenset()
    groups: tuple[tuple[str, int, frozenset[str]], ...] = ()
    numbers: frozenset[str] = frozenset()
    cues: Cues = Cues()
    facet: str = ""
    kin: frozenset[str] = frozenset()
    foreign: frozenset[tuple[str, str]] = frozenset()


def read(line: str, language: str = "") -> tuple[Claim, ...]:
    """Return the claims of a line; the language is told by its words if none is given."""
    return _read(line[:_LETTERS], language or told(line))


@lru_cache(maxsize=8192)
def _read(line: str, language: str) -> tuple[Claim, ...]:
    known = phrasebook(language)
    if line.rstrip().endswith("?"):
        return ()
    text = _BULLET.sub("", unicodedata.normalize("NFKC", line)).strip().rstrip(".!")
    for pattern, new in _EXPANDED:
        text = pattern.sub(new, text)
    text = known.plain(in_third_person(known.patterns["lead"].sub("", text), known))
    claims: list[Claim] = []
    key = _KEY.match(text)
    if key and has(known, "reporting", key[1]):
        text, key = f"{key[1]} {key[2]}", None  # "Ann said: my dog barks" tells of Ann's dog
    if key:
        value, _, text = key[2].partition("; ")
        parts = _ASIDE.match(value)
        value, aside = parts.groups("") if parts else (value, "")
        claims += _of_key(key[1], value, known)
        claims += _of_clause(parted(aside, (frozenset(words_of(value, known)),), known)) if aside else []
    named: tuple[Subject, ...] = (USER,)
    before = ""
    for piece in clauses(text, known):
        clause = parted(piece.strip(" ,;.!"), named, known)
        if before and clause.noun in known.relative:
            clause = replace(clause, named=(frozenset(words_of(before, known)),))
        named, before = clause.named, clause.predicate
        claims += _of_clause(clause)
    foreign = owned_by_others(text, known)
    return tuple(replace(claim, foreign=foreign) for claim in claims) if foreign else tuple(claims)


def _cues(text: str, known: Phrasebook) -> Cues:
    return Cues(*(has(known, name, text) for name in ("past", "also", "change")))


def _of_key(key: str, value: str, known: Phrasebook) -> list[Claim]:
    """Return the claims of "Key: value"."""
    plain = known.patterns["owner"].sub(" ", key)
    tokens = frozenset(words_of(plain, known))
    attribute = _attribute(plain, tokens, known)
    if tokens & known.people and known.patterns["verb"].match(value):
        return _of_clause(parted(f"{key} {value}", (USER,), known))
    cut = known.patterns["cut"].split(value)[0]
    cut = cut.partition(",")[0] if attribute == "name" else cut
    words, bag = frozenset(words_of(cut, known)), frozenset([*tokens, *words_of(value, known)])
    denied, text = has(known, "negation", value), f"{key} {value}"
    numbers = numbers_of(words, known)
    own = Claim(USER, attribute, words, not denied, bag, numbers=numbers, cues=_cues(text, known), facet="key")
    bag = bag - tokens if attribute in CONTACTS else bag  # who drops the phone keeps the number
    whole = replace(own, attribute="", words=bag, bag=bag, numbers=frozenset(), groups=_groups(text, known))
    age = re.search(r",\s*(\d{1,3})\b", value) if attribute == "name" else None
    ages = [replace(own, attribute="age", words=frozenset({age[1]}))] if age else []
    return [own, whole, *ages, *_of_phrases(Clause(value, (USER,), "", value, known), anchored=True)]


def _attribute(text: str, tokens: frozenset[str], known: Phrasebook) -> str:
    """Return the name of an attribute: as the phrases have it, or its words in order."""
    plain = " ".join(word for word in text.lower().split() if word not in known.unread and word not in known.filler)
    for candidate in (text.strip().lower(), plain):
        for name, pattern in known.keys:
            if pattern.fullmatch(candidate):
                return name
    favorite = "favorite " if has(known, "favorite", text) else ""
    return favorite + " ".join(sorted(tokens - {"favorit", "favourit", "prefer", "top"}))


def _groups(text: str, known: Phrasebook) -> tuple[tuple[str, int, frozenset[str]], ...]:
    """Return which member of which group or family a text names, with the other words of the text."""
    members = []
    for name, patterns in known.groups:
        for number, pattern in enumerate(patterns):
            if pattern.search(text):
                others = frozenset(words_of(pattern.sub(" ", text), known))
                members.append((name, number, _told(others, known) - {stems_of([name.rstrip("!")], known.language)[0]}))
                break
    for word in _WORD.findall(text.lower()):
        for name, number in known.families.get(word, ()):
            others = frozenset(words_of(text, known)) - {*stems_of([word], known.language)}
            members.append((name, number, _told(others, known) - {stems_of([name.rstrip("~")], known.language)[0]}))
    return tuple(members)


def _told(words: frozenset[str], known: Phrasebook) -> frozenset[str]:
    """Return the words that say what something is about: no times, and no verbs that go with anything."""
    return frozenset(word for word in words - known.neutral if word not in known.timed and not word.isdigit())


def _of_clause(clause: Clause) -> list[Claim]:
    """Return the claims of a clause: of its phrases, of what it ends, of it as a whole, and of "is"."""
    known, predicate = clause.known, clause.predicate
    if not predicate or ("hypothetical" in known.patterns and has(known, "hypothetical", clause.text)):
        return []
    bag, cues = frozenset(words_of(predicate, known)), _cues(clause.text, known)
    cues = replace(cues, past=cues.past and not has(known, "past_not", clause.text))
    claims = _of_phrases(clause)
    is_meant = "intent" in known.patterns and has(known, "intent", predicate)
    claims = [claim for claim in claims if not is_meant or claim.attribute in _INTENDED]
    attributes = {claim.attribute for claim in claims}
    ended = frozenset() if attributes & {"like", "fear", "speak"} else _ended(predicate, bag, known)
    groups, numbers = ((), frozenset[str]()) if is_meant else (_groups(predicate, known), numbers_of(bag, known))
    is_unreal = "unreal" in known.patterns and has(known, "unreal", predicate)
    is_gone = is_unreal or bool(ended or cues.past or attributes & _GONE)
    kin = frozenset[str]() if is_gone else clause.kin
    for subject in clause.named:
        if ended:
            claims.append(Claim(subject, EVERYTHING, ended, affirmed=False, cues=Cues(change=True)))
        facet = LACK if clause.denied and "have" in attributes else ""
        if not is_meant:
            claims.append(Claim(subject, "", bag, not clause.denied, bag, groups, numbers, cues, facet, kin))
    if clause.is_thing:
        said = bag.union(*clause.named) - USER
        claims.append(Claim(USER, "", said, not clause.denied, said, _groups(clause.text, known), numbers, cues))
    if clause.named != (USER,) or clause.noun or not attributes & {"age", "name"}:
        claims += _of_copula(clause)
    return claims + _employers(clause, claims)


def _employers(clause: Clause, claims: Sequence[Claim]) -> list[Claim]:
    """Return where somebody works, of "is a nurse at St. Mary's"."""
    place = _AT_WORK.search(clause.predicate)
    if place is None or any(claim.attribute == "employer" for claim in claims):
        return []
    words = frozenset(words_of(place[1], clause.known))
    return [replace(claim, attribute="employer", words=words) for claim in claims if claim.attribute == "job"]


def _ended(predicate: str, bag: frozenset[str], known: Phrasebook) -> frozenset[str]:
    """Return the words of what no longer is, whatever the verb: "does not go to chess any more" ends "plays chess"."""
    against = known.patterns["instead"].search(predicate)
    if against:
        return frozenset(words_of(known.patterns["cut"].split(predicate[against.end() :])[0], known))
    if not has(known, "ended", predicate) or len(bag) < _FEW:
        return frozenset()
    return frozenset(words_of(_value(known.patterns["verb"].sub(" ", predicate), ("-*",), known), known))


def _of_phrases(clause: Clause, *, anchored: bool = False) -> list[Claim]:
    """Return the claims of which phrases are the signs."""
    claims: list[Claim] = []
    known, predicate = clause.known, clause.predicate
    for signs, pattern in known.phrases:
        match = pattern.match(predicate) if anchored else pattern.search(predicate)
        if match is None:
            continue
        rest = predicate[: match.start()] + " " + predicate[match.end() :]
        denied = has(known, "negation", rest if signs[0][0] == "-" else predicate)
        value, against = _against(_value(predicate[match.end() :], signs, known), signs)
        if known.language != "en" and not words_of(value, known):
            value = rest  # the verb is at the end
        for sign in (sign for sign in signs if sign[0] in "+-"):
            for one in _values(value, sign, known):
                claims += _signed(sign, one, clause, denied=denied)
            claims += _signed(sign, against, clause, denied=not denied) if against else []
    return claims


def _value(text: str, signs: Sequence[str], known: Phrasebook) -> str:
    """Return the value that a phrase is followed by; of what ends, also with whom it was."""
    value = known.patterns["cut"].split(text)[0]
    company = _COMPANY.match(text[len(value) :]) if signs[0] == "-*" else None
    return value + company[0] if company else value


def _values(value: str, sign: str, known: Phrasebook) -> list[str]:
    """Return each of several that end: "gave up chess and judo"."""
    parts = known.patterns["and"].split(value) if sign == "-*" and " of " not in value else []
    return parts if all(words_of(part, known) for part in parts) and parts else [value]


def _against(value: str, signs: Sequence[str]) -> tuple[str, str]:
    """Return a value up to a word that ends it (`>word`), and what is set against it after another word (`<word`)."""
    for sign in signs:
        if sign[0] in "<>":
            first, *rest = re.split(rf"(?:^|\s)(?:{sign[1:].replace('_', ' ')})(?:\s|$)", value, maxsplit=1)
            return first, rest[0] if rest and sign[0] == "<" else ""
    return value, ""


def _signed(sign: str, value: str, clause: Clause, *, denied: bool) -> list[Claim]:
    """Return the claims of one sign, one for each of whom it speaks."""
    attribute, is_set, constant = sign[1:].partition("=")
    if sign[0] == "-" and denied:
        return []
    known, cues = clause.known, _cues(clause.text, clause.known)
    cues = replace(
        cues,
        past=cues.past and (sign[0] == "+" or constant not in ("", "*")) and not has(known, "past_not", clause.text),
    )
    words = frozenset(words_of(value, known))
    if is_set:
        words = frozenset() if constant == "*" else frozenset(stems_of([constant], known.language))
    bag, affirmed = frozenset(words_of(clause.predicate, known)), (sign[0] == "+") != denied
    claims = []
    for place, subject in enumerate(clause.named):
        value_words, about = words, subject
        if attribute in ("partner", "friend", "best friend") and not words:
            value_words = frozenset().union(*clause.named[:place], *clause.named[place + 1 :])
        if attribute == "!" or (sign in ("-*", "-seek") and words <= known.timed.keys()):
            value_words, about = subject, ANYONE
        numbers = numbers_of(value_words, known)
        claims.append(Claim(about, attribute, value_words, affirmed, bag, (), numbers, cues, "sign"))
    return claims


def _of_copula(clause: Clause) -> list[Claim]:
    """Return the claims of "the color is blue" about the color, and of "Ann is a friend" about the user's friends."""
    known = clause.known
    copula = known.patterns["copula"].match(clause.predicate)
    if copula is None:
        return []
    value = clause.predicate[copula.end() :].strip()
    cut = known.patterns["cut"].split(known.patterns["negation"].sub(" ", value))[0]
    words = frozenset(words_of(known.patterns["called"].sub(" ", cut), known))
    cues = _cues(f"{clause.noun} {clause.predicate}", known)
    claims = []
    is_related = clause.denied or has(known, "owner", value) or has(known, "also", value)
    if words & known.people and (is_related or known.patterns["possessor"].match(value)):
        claims.append(_of_relation(clause, cut, cues))
    if clause.noun and not known.patterns["user"].fullmatch(clause.noun):
        claims += _of_noun(clause, value, cut)
    is_place = re.search(r"\d", value) or known.patterns["place"].match(value)
    if words & known.jobs and not is_place:
        cues = replace(cues, past=cues.past and not cues.change)
        jobs = (Claim(named, "job", words, not clause.denied, words, cues=cues, facet="noun") for named in clause.named)
        claims += jobs
    return claims


def _of_relation(clause: Clause, cut: str, cues: Cues) -> Claim:
    """Return the claim of "Ann is my friend", "Ann is Bob's wife"."""
    known = clause.known
    owner, plain = possessed(known.patterns["user"].sub(" ", known.patterns["owner"].sub(" ", cut)), known)
    plain = " ".join(known.patterns["also"].sub(" ", known.patterns["of"].sub(" ", plain)).split())
    tokens = frozenset(words_of(plain, known))
    names: frozenset[str] = frozenset().union(*clause.named)
    attribute = _attribute(plain, tokens, known)
    return Claim(owner or USER, attribute, names, not clause.denied, names | tokens, cues=cues, facet="key")


def _of_noun(clause: Clause, value: str, cut: str) -> list[Claim]:
    """Return the claim of "the user's N is V", where V is a name or a measure, or N no person."""
    known, tokens = clause.known, clause.named[0]
    owner, plain = possessed(known.patterns["owner"].sub(" ", known.patterns["also"].sub(" ", clause.noun)), known)
    attribute = _attribute(plain, frozenset(words_of(plain, known)), known)
    bare = _ARTICLE.sub("", known.patterns["change"].sub("", cut).strip())
    names = [_NAME.match(name) for name in known.patterns["and"].split(bare.strip())]
    is_name = has(known, "called", value) or None not in names
    if tokens & known.people and not is_name:
        return []
    words = frozenset(words_of(known.patterns["called"].sub(" ", cut), known))
    numbers = numbers_of(words, known)
    facet = "key" if is_name or "@" in cut else _facet(attribute, cut, numbers, known)
    cues = replace(_cues(f"{clause.noun} {clause.predicate}", known), past=has(known, "past", clause.noun))
    return [Claim(owner or USER, attribute, words, not clause.denied, words | tokens, (), numbers, cues, facet)]


def _facet(attribute: str, cut: str, numbers: frozenset[str], known: Phrasebook) -> str:
    """Return what kind of value this is: values of different kinds do not exclude each other."""
    if attribute.startswith("favorite") or (attribute in dict(known.keys) and attribute not in THINGS):
        return "key"
    if numbers:
        return "key" if re.search(r"\d[\d ./:-]{4,}", cut) else "number"
    return "place" if known.patterns["place"].match(cut.strip()) else "quality"
