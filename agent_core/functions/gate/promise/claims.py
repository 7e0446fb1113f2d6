"""The promises in the name and the first sentence of a function, read with a lexicon.

Pure. A promise is an effect on the world, a fact from outside, or work that needs to understand its argument.
What acts on a part of an argument (`delete_vowels`) or words a text (`order_confirmation`) promises a result only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Literal

from agent_core.registry.typenames import Schema

from .lexicon import forms_of, joined, lemma, lexicon

ClaimKind = Literal["effect", "knowledge", "work"]
_ADVERB = re.compile(r"\w{5,}ly")
_WORDS = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[a-z]")
_PREFACE = re.compile(
    r"^(?:this (?:function|method|tool)|write a (?:python )?(?:function|program|method)"
    r"|(?:a )?(?:function|method|tool))"
    r"(?: (?:to|that|which|for|will|can))*\s+",
    re.IGNORECASE,
)
OF = frozenset(
    ["for", "in", "of", "at", "by", "from", "on", "to", "with", "near", "about", "as", "via", "into", "between", "per"]
)
_SMALL = frozenset(
    ["a", "an", "the", "some", "any", "my", "your", "its", "their", "this", "that", "given", "new", "one", "all"]
)
_LEADING = frozenset(
    ["auto", "do", "try", "quick", "quickly", "safe", "safely", "simple", "simply", "my", "please", "async"]
)
_LIMITS = frozenset(
    ["n", "k", "limit", "count", "max", "top", "days", "size", "results", "max_results", "num", "page", "year"]
) | {"min", "minimum", "maximum", "least", "most", "threshold", "radius", "hours", "weeks", "first"}


@dataclass(frozen=True, slots=True)
class PromiseClaim:
    """A promise beyond computing. `weight` is 2 where the words leave no doubt, else 1.

    `is_kept` tells of something that should outlast the call, `changes` of a fact that does not stay.
    """

    kind: ClaimKind
    verb: str
    about: str
    weight: int
    is_kept: bool = False
    changes: bool = False
    is_read: bool = False  # about the letters of a text
    is_on_media: bool = False  # about what is in a file, and is no text
    is_ordering: bool = False  # of texts, by what only a mind can tell
    is_on_device: bool = False  # with a device that is named, and is no argument

    @property
    def shown(self) -> str:
        """The promise in its words."""
        verb = "tell about" if self.verb == "is" else lemma(self.verb) if self.verb.endswith("s") else self.verb
        about = f"{self.about} ".replace(" s ", "'s ").strip().removesuffix("'s")  # cut off after two words
        return f"{verb} {about}".strip()


@dataclass(frozen=True, slots=True)
class Promise:
    """The words of a function: those of its name, of its first sentence and of its whole description."""

    name: tuple[str, ...]
    sentence: tuple[str, ...]
    words: frozenset[str]
    claims: tuple[PromiseClaim, ...] = ()

    def claim(self, kind: ClaimKind) -> PromiseClaim | None:
        """Return the claim of a kind, if there is one."""
        return next((claim for claim in self.claims if claim.kind == kind), None)

    @property
    def is_plain(self) -> bool:
        """True if its words are those of computing or of wording."""
        return any(part and lexicon().has(part[0], "plain", "verbs") for part in (self.name, self.sentence))

    def says(self, section: str, key: str = "said") -> bool:
        """Check whether the whole description has one of the words of a list."""
        return lexicon().among(self.words, section, key)


def promise_of(name: str, description: str, parameters: Schema, returns: str = "") -> Promise:
    """Return what a function promises."""
    first = re.split(r"(?<=[.!?])\s|\n\s*\n", description.strip(), maxsplit=1)[0]
    promise = Promise(
        tuple(_stripped(_words(name))),
        tuple(_stripped(_words(_PREFACE.sub("", " ".join(first.split()))))),
        frozenset([*_words(name), *_words(description)]),
    )
    effect = _effect(promise, parameters, [_stripped(_words(part)) for part in re.split(r",\s+", first)[1:]])
    if effect and returns != "str" and is_about_rows(effect, promise, parameters):  # no text brings them back
        effect = None
    effect = _on_device(promise, parameters, returns) or _lasting(promise) or effect or _placed(promise, parameters)
    claims = [effect, _knowledge(promise, parameters), _work(promise, parameters)]
    return Promise(promise.name, promise.sentence, promise.words, tuple(claim for claim in claims if claim))


def claimed_effect(clause: str) -> PromiseClaim | None:
    """Return the effect that a clause such as `emailed your boss` claims; it begins with a verb, in any form."""
    verb, _, rest = clause.partition(" ")
    for text in (clause, f"{lemma(verb)} {rest}"):  # `backed up` is one verb in its base form only
        words = tuple(_stripped(_words(text)))
        promise = Promise((), words, frozenset())
        deeds = [deed for deed in (_deed(words, promise), _placed(promise, _NOTHING_GIVEN)) if deed]
        if deeds:
            return max(deeds, key=lambda deed: deed.weight)
    return None


_NOTHING_GIVEN: Schema = {"properties": {}}


def _words(text: str) -> list[str]:
    return joined([word.lower() for word in _WORDS.findall(text)])


def _stripped(words: Sequence[str]) -> Sequence[str]:
    start = next((at for at, word in enumerate(words) if word not in _LEADING and not _ADVERB.fullmatch(word)), 0)
    return words[start:]


def _effect(promise: Promise, parameters: Schema, parts: Sequence[Sequence[str]]) -> PromiseClaim | None:
    """Return the effect that a function promises: by its sentence, by its name, or by what its sentence adds."""
    book, sentence = lexicon(), promise.sentence
    added = [part for part in parts if part[1:2] and part[1] in _DETERMINERS]  # `Zip it, copy the archive`: no noun
    added += [sentence[at + 1 :] for at in _joints(sentence)]
    deeds = [_deed(sentence, promise), *(_deed(part, promise) for part in added)]
    is_argument = len(promise.name) > 1 and promise.name[0] in parameters["properties"]  # no verb: `message_banner`
    by_name = None if is_argument and not deeds[0] else _deed(promise.name, promise)
    if sentence and book.has(sentence[0], "plain", "wording") and book.has(promise.name[-1], "plain", "texts"):
        return deeds[1] if len(deeds) > 1 else _printed(deeds[0], parameters)  # it is named for the text that it makes
    if by_name and sentence and book.has(sentence[0], "plain", "verbs") and not deeds[0]:
        is_noun = book.has(by_name.verb, "plain", "nouns")
        by_name = replace(by_name, weight=0 if is_noun else 1)
    return max((deed for deed in (*deeds, by_name) if deed), key=lambda deed: deed.weight, default=None)


def _printed(deed: PromiseClaim | None, parameters: Schema) -> PromiseClaim | None:
    """Return the effect that words promise that may as well promise a text: a sure one if a device is named to do it,
    else one that only a result can tell, which says that it was done.
    """
    book = lexicon()
    if deed is None or deed.is_kept or deed.weight < 2 or not book.has(deed.verb, "effect", "showing"):
        return None
    return deed if book.among(_parts(parameters), "effect", "devices") else replace(deed, weight=0)


def _on_device(promise: Promise, parameters: Schema, returns: str) -> PromiseClaim | None:
    """Return the deed that a sentence promises of a device, which is no argument, if a count or a flag tells of it."""
    words, effect = promise.sentence, lexicon().sections["effect"]
    deed = _deed(words, promise)
    if deed is None and words[1:2] and words[0] in effect["showing"] and words[1] in _DETERMINERS:
        deed = PromiseClaim("effect", words[0], " ".join(words[1:3]), 2)
    if deed is None or returns not in _TELLING:
        return None
    for at, word in enumerate(words[1:], start=1):
        place = [*takewhile(lambda word: word not in _ENDS, words[at + 1 : at + 6])] if word in _WITH else []
        if place and place[-1] in effect["devices"] and place[-1] not in _parts(parameters):
            return replace(deed, weight=2, is_on_device=True)
    return None


_TELLING = frozenset(["int", "bool", "float", "None"])
_ENDS = OF | {"and", "then", "or", "which", "that", "until", "while", "when"}
_WITH = frozenset(["on", "onto", "to", "at", "through", "via", "over", "with"])


def is_about_rows(claim: PromiseClaim, promise: Promise, parameters: Schema) -> bool:
    """Check whether an effect is on rows that come in as an argument of that name, such as `switches`."""
    if not lexicon().has(claim.verb, "plain", "verbs"):
        return False
    rows = {
        lemma(part)
        for name, schema in parameters["properties"].items()
        if schema.get("type") in ("array", "object")
        for part in name.lower().split("_")
    }
    return bool(rows & {lemma(word) for word in (*promise.name[1:], *claim.about.split())})


def _placed(promise: Promise, parameters: Schema) -> PromiseClaim | None:
    """Return the effect that a function promises if it puts something where no argument is: `in the cart`."""
    book, words = lexicon(), promise.sentence
    if not words or not book.has(words[0], "effect", "placing") or _brings_rows(parameters):
        return None
    named = _parts(parameters)
    for at, word in enumerate(words[1:10], start=1):
        if word in _WHERE:
            place = [*takewhile(lambda word: word not in OF, words[at + 1 : at + 6])]
            stores = [word for word in place if book.has(word, "effect", "stores") and word not in named]
            if stores and place[0] not in ("a", "an"):
                about = " ".join(words[1 : at + 1 + len(place)])
                return PromiseClaim("effect", lemma(words[0]), about, 2, is_kept=True)
    return None


_WHERE = frozenset(["in", "into", "to", "on", "onto", "from", "within"])


def _lasting(promise: Promise) -> PromiseClaim | None:
    """Return the effect that a function promises if it settles something for what comes after the call."""
    book, words, effect = lexicon(), promise.sentence, lexicon().sections["effect"]
    if not words or not book.has(words[0], "effect", "settled"):
        return None
    for at, word in enumerate(words[2:], start=2):
        after = [*[word for word in words[at + 1 : at + 5] if word not in _SMALL], "", ""]
        is_later = word in ("for", "in", "to") and after[0] in effect["later"] and after[1] in effect["occasions"]
        is_across = word in ("across", "between") and after[0] in effect["spans"]
        if is_later or is_across or words[at : at + 3] == ("from", "now", "on"):
            settled = [*takewhile(lambda word: word not in OF, words[1:at])]
            is_result = book.among(settled, "plain", "texts") or book.among(settled, "plain", "parts")
            return None if is_result else PromiseClaim("effect", lemma(words[0]), " ".join(words[1:3]), 2, is_kept=True)
    return None


def _brings_rows(parameters: Schema) -> bool:
    return any(schema.get("type") in ("array", "object") for schema in parameters["properties"].values())


def _joints(words: Sequence[str]) -> list[int]:
    return [at for at, word in enumerate(words) if word in ("and", "then") and words[at + 1 : at + 2] != ("not",)]


def _deed(words: Sequence[str], promise: Promise) -> PromiseClaim | None:
    """Return the effect that words beginning with a verb promise."""
    if not words or words[1:2] in (("whether",), ("if",)):
        return None
    book = lexicon()
    following = [word for word in takewhile(lambda word: word not in _MANNER, words[1:8]) if word not in _SMALL]
    first = next((word for word in following if word not in _PARTICLES), "")
    verb = next((form for form in forms_of(words[0]) if form in book.outside or form in book.lasting), "")
    if not verb:
        return None
    objects = {form for word in (*following, *promise.name[1:]) for form in (word, lemma(word))}
    about = " ".join(following[:2])
    for is_kept, lists in ((False, book.outside), (True, book.lasting)):
        objects_of_verb = lists.get(verb, frozenset())
        is_part = book.has(first, "plain", "parts") and not book.has(verb, "effect", "always")
        if "*" in objects_of_verb and not is_part:
            return PromiseClaim("effect", verb, about, 2, is_kept)
        if objects & objects_of_verb:
            return PromiseClaim("effect", verb, about, 2, is_kept)
    if book.among(following[:3], "plain", "parts") or book.has(verb, "plain", "verbs"):
        return None
    return PromiseClaim("effect", verb, about, 1, verb in book.lasting)


_DETERMINERS = frozenset(["the", "a", "an", "it", "them", "this", "all", "each", "every", "your", "my", "their", "its"])
_MANNER = frozenset(["with", "as", "by", "of", "about", "per", "like", "between", "that", "which", "if", "when"])
_PARTICLES = frozenset(["on", "off", "up", "down", "in", "out", "over", "each", "every", "two", "several"])


def _knowledge(promise: Promise, parameters: Schema) -> PromiseClaim | None:
    """Return the fact from outside that a function promises."""
    claims = [claim for words in (promise.name, promise.sentence) if (claim := _fact(words, promise, parameters))]
    if len(claims) == 2 and claims[0].changes == claims[1].changes:
        return replace(claims[0], weight=2)
    return max(claims, key=lambda claim: (claim.weight, claim.changes), default=None)


def _fact(words: Sequence[str], promise: Promise, parameters: Schema) -> PromiseClaim | None:
    """Return the fact that words promise: their verb asks for it, or their noun can be nothing else."""
    if not words or promise.says("knowledge", "disclosed"):
        return None
    book, is_sentence = lexicon(), words is promise.sentence
    places = [word for word in (*words[:9], *_places(words, parameters)) if word not in parameters["properties"]]
    is_parsed = "url" in words and "url" in _parts(parameters)  # the address tells
    if (
        is_sentence
        and not is_parsed
        and book.has(words[0], "plain", "asking")
        and book.among(places, "knowledge", "sources")
    ):
        return PromiseClaim("knowledge", words[0], " ".join(_nouns(words[1:6])), 2, changes=True)
    if is_sentence and (claim := _state(words, parameters) or _measure(words, parameters) or _fresh(words, parameters)):
        return claim
    is_asked = book.has(words[0], "knowledge", "asking") or (is_sentence and lemma(words[0]) == "return")
    if book.has(words[0], "plain", "verbs") and not is_asked:
        return None
    nouns = _nouns(takewhile(lambda word: word not in OF, words[is_asked:]))
    return _fact_of(words[0] if is_asked else "", nouns, promise, parameters) if nouns else None


def _places(words: Sequence[str], parameters: Schema) -> Iterator[str]:
    """Yield the last words of what a fact is said to be found in, unless the arguments bring it."""
    if _brings_rows(parameters) or _parts(parameters) & lexicon().sections["knowledge"]["carriers"]:
        return
    for at, word in enumerate(words):
        if word in ("in", "on", "from", "at"):
            yield from [*takewhile(lambda word: word not in OF, words[at + 1 : at + 6])][-1:]


def _state(words: Sequence[str], parameters: Schema) -> PromiseClaim | None:
    """Return the state of somebody or something outside that words ask for, of this moment or of any."""
    knowledge = lexicon().sections["knowledge"]
    if "where" in words[:3] and not knowledge["now"].isdisjoint(words):
        return PromiseClaim("knowledge", words[0], "where it is", 2, changes=True)
    past = next((word for word in words[:6] if word in knowledge["past"]), "")
    if past and not {"what", "who"}.isdisjoint(words[:4]) and not _brings_rows(parameters):
        return PromiseClaim("knowledge", words[0], f"what {past}", 2)
    state = next((word for word in words if word in knowledge["states"]), "")
    if not state:
        return None
    if not knowledge["now"].isdisjoint(words):
        return PromiseClaim("knowledge", words[0], f"who or what is {state}", 2, changes=True)
    is_asked = words[1:2] in (("whether",), ("if",)) and words[2:3] in (("a",), ("an",), ("the",))
    is_named = is_asked and words[4:6] == ("is", state) and not _brings_rows(parameters)
    return PromiseClaim("knowledge", words[0], f"whether it is {state}", 1, changes=True) if is_named else None


def _measure(words: Sequence[str], parameters: Schema) -> PromiseClaim | None:
    """Return the fact about somebody or something that is only named, if it is asked for as if it were computed."""
    knowledge = lexicon().sections["knowledge"]
    named, kinds = _parts(parameters), _kinds(parameters)
    nouns = _nouns(takewhile(lambda word: word not in OF, words[1:]))
    if not nouns or kinds != {"string"} or named.isdisjoint(knowledge["entities"]) or named & knowledge["carriers"]:
        return None
    is_fact = nouns[-1] in knowledge["changing"] | knowledge["lasting"]
    return PromiseClaim("knowledge", words[0], " ".join(nouns[-2:]), 1) if is_fact else None


def _fresh(words: Sequence[str], parameters: Schema) -> PromiseClaim | None:
    """Return the fact of this moment that a result is said to be made with: `at today's rate`."""
    knowledge, named = lexicon().sections["knowledge"], {lemma(part) for part in _parts(parameters)}
    facts = knowledge["changing"] | knowledge["outside"]
    if sum(schema.get("type") in ("number", "integer") for schema in parameters["properties"].values()) > 1:
        return None  # one of them may be that fact
    for at, word in enumerate(words):
        if word in OF or word in ("using", "against"):
            phrase = [*takewhile(lambda word: word not in OF, words[at + 1 : at + 6])]
            head = lemma(phrase[-1]) if phrase else ""
            is_now = not knowledge["now"].isdisjoint(phrase[:-1])
            if is_now and head in facts and head not in named and not _brings_rows(parameters):
                return PromiseClaim("knowledge", words[0], " ".join(phrase[-2:]), 2, changes=True)
    return None


def _parts(parameters: Schema) -> set[str]:
    return {part for name in parameters["properties"] for part in name.lower().split("_")}


def _nouns(words: Iterable[str]) -> list[str]:
    nouns = [word for word in words if word not in _SMALL]
    return nouns[1:] if nouns[:1] == ["up"] else nouns


def _fact_of(verb: str, nouns: Sequence[str], promise: Promise, parameters: Schema) -> PromiseClaim | None:
    book = lexicon()
    is_now = not book.sections["knowledge"]["now"].isdisjoint((*promise.name, *promise.sentence))
    is_reaching = book.has(verb, "knowledge", "reaching") or promise.sentence[1:2] == ("up",)
    if book.has(nouns[-1], "knowledge", "apart"):
        return None
    is_outside = book.among(nouns[-3:], "knowledge", "outside")
    heads = nouns[-2:] if verb else nouns[-1:]  # `battery level`
    is_latest = is_now and book.among(heads, "knowledge", "lasting")  # a table of them is out of date
    changes = is_outside or book.among(heads, "knowledge", "changing") or (is_now and is_reaching) or is_latest
    if not changes and not (verb and book.has(nouns[-1], "knowledge", "lasting")):
        return None
    is_sure = is_now or is_outside or is_reaching
    if _brings_data(parameters, nouns[-1], rows_only=is_sure):
        return None
    return PromiseClaim("knowledge", verb or "know", " ".join(nouns[-2:]), 2 if is_sure else 1, changes=changes)


def _kinds(parameters: Schema) -> set[str]:
    return {str(schema.get("type")) for name, schema in parameters["properties"].items() if name not in _LIMITS}


def _brings_data(parameters: Schema, head: str, *, rows_only: bool) -> bool:
    """Check whether the arguments may hold the fact themselves: rows, texts, numbers, or what is called like it."""
    properties, book = parameters["properties"], lexicon()
    named = _parts(parameters)
    carried = {
        part
        for name, schema in properties.items()
        if schema.get("type") == "string"
        for part in name.lower().split("_")
    }
    if (
        any(schema.get("type") in ("array", "object") for schema in properties.values())
        or carried & book.sections["knowledge"]["carriers"]
    ):
        return True
    if "number" in _kinds(parameters):
        return True
    if rows_only:
        return False
    if head in named or lemma(head) in named:
        return True
    return any(
        schema.get("type") == "integer" and name not in _LIMITS and not name.endswith("id")
        for name, schema in properties.items()
    )


def _work(promise: Promise, parameters: Schema) -> PromiseClaim | None:
    """Return the work on the argument that a function promises."""
    claims = [
        claim for words in (promise.sentence, promise.name) if words and (claim := _task(words, promise, parameters))
    ]
    best = max(claims, key=lambda claim: claim.weight, default=None)
    is_test = promise.sentence[1:2] in (("whether",), ("if",))  # by whatever name
    return replace(best, weight=1) if best and is_test else best


def _task(words: Sequence[str], promise: Promise, parameters: Schema) -> PromiseClaim | None:
    book, work = lexicon(), lexicon().sections["work"]
    following = [word for word in words[1:8] if word not in _SMALL]
    about = " ".join(following[:2])
    understood = next((form for form in forms_of(words[0]) if form in work["verbs"]), "")
    if understood:
        is_closed = book.among((*promise.name[1:], *promise.sentence[1:8]), "work", "closed")
        return None if is_closed else PromiseClaim("work", understood, about, 2)
    judged = next((form for form in forms_of(words[0]) if form in work["judging"]), "")
    noun = _noun(words, parameters, is_judged=bool(judged))
    is_worded = book.among(promise.sentence[:1], "plain", "wording") and book.has(noun, "plain", "texts")
    if noun and not is_worded:
        return PromiseClaim("work", "" if noun == words[0] else words[0], noun, 2)
    weak = PromiseClaim("work", judged, about, 1) if judged else None
    return _understanding(words, about, parameters) or _sensing(words, promise, parameters) or weak


def _understanding(words: Sequence[str], about: str, parameters: Schema) -> PromiseClaim | None:
    """Return the work on texts that goes by what they mean."""
    if not lexicon().sections["work"]["qualities"].isdisjoint(words[:6]):
        return PromiseClaim("work", words[0], about, 2)
    if criterion := _criterion(words, parameters):
        return PromiseClaim("work", words[0], f"{about} by {criterion}", 2, is_ordering=True)
    return None


def _sensing(words: Sequence[str], promise: Promise, parameters: Schema) -> PromiseClaim | None:
    """Return the work on what is in a file, or on the letters of a text."""
    book = lexicon()
    medium = ""
    if book.has(words[0], "work", "handling") or words[0] == "list":
        medium = _medium([word for word in words[1:8] if word not in _SMALL]) or _file(words, parameters)
    elif words is promise.sentence:
        medium = _looked_at(words, parameters)
    if medium:
        return PromiseClaim("work", words[0], medium, 2, is_on_media=True)
    letters = next((word for word in words[:8] if book.has(word, "work", "letters")), "")
    return PromiseClaim("work", words[0] if words[0] != letters else "", letters, 2, is_read=True) if letters else None


def _criterion(words: Sequence[str], parameters: Schema) -> str:
    """Return what texts are said to be arranged by, if only a mind can tell it: `by topic`."""
    items = [schema.get("items") for schema in parameters["properties"].values() if schema.get("type") == "array"]
    is_of_texts = any(isinstance(item, dict) and item.get("type") == "string" for item in items)
    found = (after for word, after in pairwise(words) if word == "by")
    work = lexicon().sections["work"]
    judged = work["nouns"] | work["minded"] | {"relevance", "importance", "meaning", "theme"}
    return next((after for after in found if after in judged), "") if is_of_texts else ""


def _medium(words: Sequence[str]) -> str:
    """Return the medium that words are about, if they are about no part of its name."""
    phrase = [*takewhile(lambda word: word not in OF, words)]
    is_file = len(phrase) > 1 and phrase[-1] in ("file", "files")
    head = phrase[-2:-1] if is_file else phrase[-1:]
    return next((word for word in head if lexicon().has(word, "work", "media")), "")


def _looked_at(words: Sequence[str], parameters: Schema) -> str:
    """Return the medium that words name of which nothing but a path comes in: `the text found in the image`."""
    work = lexicon().sections["work"]
    parts = [part for name in parameters["properties"] for part in name.lower().split("_")]
    is_path = not (work["media"].isdisjoint(parts) or work["paths"].isdisjoint(parts))
    if not is_path or not work["unopened"].isdisjoint(words):
        return ""
    is_inside = not {"in", "from", "on"}.isdisjoint(words[:-1])
    return next((word for word in (words if is_inside else words[:6]) if word in work["media"]), "")


def _file(words: Sequence[str], parameters: Schema) -> str:
    """Return `file` if words are about what is in one, of which only the path comes in."""
    work = lexicon().sections["work"]
    is_path = any(part in work["paths"] for name in parameters["properties"] for part in name.lower().split("_"))
    at = next((at for at, word in enumerate(words[:12]) if word in work["files"]), 0)
    return words[at] if at and is_path and work["unopened"].isdisjoint(words) else ""


def _noun(words: Sequence[str], parameters: Schema, *, is_judged: bool) -> str:
    """Return the noun in words that only a mind makes or judges; what comes in is not made: `Cuts an article`."""
    book = lexicon()
    phrase = [word for word in takewhile(lambda word: word not in OF, words) if word not in _SMALL]
    head = phrase[-1] if phrase else ""
    is_created = book.has(words[0], "work", "making") and book.has(head, "work", "created")
    is_given = head != words[0] and head in parameters["properties"] and book.has(words[0], "work", "shaping")
    if is_created or (book.has(head, "work", "nouns") and not is_given):
        return head
    following = [word for word in words[1:8] if word not in _SMALL]
    return next((word for word in following[:5] if book.has(word, "work", "nouns")), "") if is_judged else ""
