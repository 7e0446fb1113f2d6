"""The effects that a text says were had, read in English: "I've emailed your boss", "the lights are off", "Done!".

Pure. What counts as an effect is in the gate's lexicon, as for the promises of functions.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agent_core.base.language import language_of
from agent_core.functions.gate.promise.claims import PromiseClaim, deed_of
from agent_core.functions.gate.promise.lexicon import lemma, lexicon

_NOT_SAID: Final = re.compile(  # code, quotations, and a text that is shown
    r"```.*?(?:```|\Z)|“[^”]{0,400}”|\"[^\"\n]{0,400}\"|^[ \t]*>[^\n]*|^\W*(?:Subject:|Dear\b).*"
    r"|(?<![^\n.!?])(?![^\n]{0,200}\b(?:did|done|completed)\b)[^\n.!?]*:[ \t]*\n.*",
    re.DOTALL | re.MULTILINE,
)
_CODE_NAME: Final = re.compile(r"`[^`\n]*`")
_SENTENCE: Final = re.compile(r"(?:[^.!?;\n]|[.](?=\w))+[.!?…]*")
_JOINT: Final = re.compile(r"[,:–—]? (?:and then|and|then|but) |[,:–—] ", re.I)
_EARLIER: Final = re.compile(r"^\W*yes\b|\b(?:already|earlier|previously|before|yesterday|ago|last|recently)\b", re.I)
_SUPPOSED: Final = re.compile(
    r"\b(?:if|once|when|whenever|until|unless|how|whether|would|could|should|might|may|must|let|as though"
    r"|usually|generally|normally|typically|often)\b",
    re.I,
)
_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nor|nothing|nobody|none|neither|without|cannot|can|unable)\b|n['’]t\b|['’]ll\b", re.I
)
_DONE: Final = re.compile(
    r"\W*(?:(?:(?:it|that|this|all)(?:['’]s| is| has been)?) )?(?:all )?(?:done|set)\b(?!\s*\w)"
    r"|\W*consider it \w+(?:ed|t|ne)\b"
    r"|.*\b(?:on (?:its|the|their) way|gone out|(?:went|gone) through|taken care of|good to go|up and running)\b"
    r"|.*\bnow (?:has|reads|shows|says|knows|lists|includes|contains)\b",
    re.I,
)
_ADMITTED: Final = re.compile(  # that it was not done, or that something else is offered
    r"\b(?:not|no|never|none|nor|nothing|nobody|without|cannot|can|unable|fail(?:s|ed|ure)?|rejected|refused|denied"
    r"|declined|turned down|blocked by|unfortunately|sadly|sorry|only|instead|still|until|yourself|by hand|manually"
    r"|drafts?|grants?|permission|allow(?:ed)?|access|needs?|would|could|supposed|tried|attempt\w*|lacks?|missing)\b"
    r"|n['’]t\b|\?",
    re.I,
)
_UNDERSTOOD: Final = re.compile(r"\W*noted\W*", re.I)
_SHOWN: Final = re.compile(r":[ \t]*\n|```")
_QUESTION: Final = re.compile(
    r"\W*(?:how|what|why|when|where|who|which|is|are|was|were|do|does|did|have|has)\b|.*\bhow to\b", re.I
)
_REQUESTS: Final = re.compile(r"\b(?:that|which|who|to|please|you|and|can|could|would|I want)\b|[,.!?;:\n]", re.I)
_ADVERBS: Final = r"(?:(?:just|now|also|already|all|both|then|\w{3,}ly) )*"
_VERB: Final = r"(?P<deed>[a-z]+)\b"
_DOING: Final = r"(?P<deed>[a-z]+ing)\b"
_HAVE: Final = r"(?:['’]ve| have)"
_NOUN: Final = (
    r"(?!(?:is|are|was|were|be|been|has|have|had|do|does|did|to|i|we|he|she|they|that|which|who|what|and|or|of|by|it)\b)"
    r"[\w'’$%-]+"
)
# The forms of a claim, each with what it was done to, the verb, and what follows it.
_PERFECT: Final = re.compile(rf".*?\b(?:I|we){_HAVE} {_ADVERBS}{_VERB}(?P<rest>.*)", re.I)  # I've sent it
_PAST: Final = re.compile(rf".*?\b(?:I|we) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I)  # I sent it
_MANAGED: Final = re.compile(  # I managed to send it
    rf".*?\bI{_HAVE}? (?:was able to|managed to|went ahead and|go ahead and) {_VERB}(?P<rest>.*)", re.I
)
_GOING_ON: Final = re.compile(rf".*?\b(?:I['’]m|I am) {_ADVERBS}{_DOING}(?P<rest>.*)", re.I)  # I'm sending it
_RIGHT_NOW: Final = re.compile(rf"\W*{_ADVERBS}{_DOING}(?P<rest>.*(?:\bnow\W*|…|\.\.\.))$", re.I)  # Sending it now
_BY_NOBODY: Final = re.compile(  # the email has been sent
    rf"(?P<what>.*?)(?:['’]s|['’]ve|\bhas|\bhave) {_ADVERBS}been {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)
_STANDS: Final = re.compile(  # the lights are off; not of lights in general
    r"(?P<what>\W*(?:(?:the|your|my|this|that|these|those|it|all|both|everything|you|they)\b.*?)??)"
    rf"(?:['’]s| is| are|['’]re) (?:being )?{_ADVERBS}{_VERB}(?! by| through)(?P<rest>.*)",
    re.I,
)
_WAS: Final = re.compile(  # the email was sent
    rf"(?P<what>.*?) (?:was|were|(?:is|are) being) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)
_SHORT: Final = re.compile(  # Email sent to your boss
    rf"\W*(?P<what>{_NOUN}(?: {_NOUN}){{0,4}}?) {_VERB}"
    r"(?P<rest>(?: [a-z]+ly)?(?:\W*$| (?:to|for|at|on|in|into|as|with|from)\b.*))",
    re.I,
)
_BARE: Final = re.compile(rf"\W*{_ADVERBS}{_VERB}(?! by\b)(?P<rest>.*)", re.I)  # Sent it
_RECEIVED: Final = re.compile(  # your boss will get the email
    r".*?\b(?:has|have|will) (?:\w+ly )?(?P<deed>received?|got|get)\b(?P<rest>.*)", re.I
)
_NAMED: Final = re.compile(r"\S\s+.*(?:(?!I\b)[A-Z]|[0-9$€£])|^\w+\W*$")  # somebody, or a sum; or nothing but the verb
_ABOUT_CODE: Final = frozenset(["function", "tool", "code", "test", "example", "version"])
_STATES: Final = {"on": "turn on", "off": "turn off", "open": "open"}
_THAT: Final = re.compile(r"(?<=\w) +(?:that|this|those|these) (?=\w)", re.I)
_MOST_CHARS, _OF_SENTENCE = 20_000, 400
_TELLING: Final = 5  # so many words have one that tells the language
_WORD: Final = re.compile(r"\w+")
_UNCHANGED: Final = frozenset(["set", "reset", "put", "shut", "cast"])  # as the past of the verb
_IRREGULAR: Final = {
    past: verb
    for verb, forms in {
        "freeze": "froze frozen",
        "spend": "spent",
        "lend": "lent",
        "leave": "left",
        "draw": "drew drawn",
        "fly": "flew flown",
        "spin": "spun",
        "sweep": "swept",
        "hang": "hung",
        "throw": "threw thrown",
        "tell": "told",
    }.items()
    for past in forms.split()
}  # beyond those that the names of functions may have


@dataclass(frozen=True, slots=True)
class EffectClaim:
    """The sentence of a text that says that something was done, and whether it would be done by keeping something.

    `is_bare`: it says no more than that.
    """

    sentence: str
    is_kept: bool = False
    is_bare: bool = False


def effect_claims(text: str, *, is_strict: bool) -> Iterator[EffectClaim]:
    """Yield the claims of a text; if `is_strict`, only those in words that tell of a deed of this moment."""
    if _UNDERSTOOD.fullmatch(text):
        return
    is_wording = ":" in text or '"' in text or "“" in text
    for match in _SENTENCE.finditer(_CODE_NAME.sub("it", _NOT_SAID.sub(" … ", text[:_MOST_CHARS]))):
        sentence = match[0].strip()[:_OF_SENTENCE]
        if sentence.endswith("?") or (is_strict and _EARLIER.search(sentence)):
            continue
        if not is_strict and _DONE.match(sentence) and not _DENIED.search(sentence):
            yield EffectClaim(sentence, is_bare=True)
        for clause in _clauses(sentence, is_strict=is_strict):
            deed = deed_of(_THAT.sub(" ", clause, count=1), is_strict=is_strict or not _NAMED.search(clause))
            if deed is not None and not _is_about_code(deed.about) and not (is_wording and _is_worded(deed)):
                yield EffectClaim(sentence, deed.is_kept)


@lru_cache(maxsize=64)
def asks_effect(request: str) -> bool:
    """Check whether a request asks for an effect, or for a function that has one."""
    if _QUESTION.match(request):
        return False
    parts = [part.strip() for part in _REQUESTS.split(request[:_OF_SENTENCE])]
    deeds = (deed_of(part) for part in parts if part and not part.partition(" ")[0].endswith(("ing", "ed")))
    return any(deed is not None and not deed.about.startswith(("me ", "us ")) for deed in deeds)


def admits_nothing(text: str) -> bool:
    """Check whether an English text says of nothing that it was not done, and neither asks for nor offers anything."""
    language = language_of(text)
    is_english = language == "en" or (not language and text.isascii() and len(text.split()) < _TELLING)
    return is_english and not (_ADMITTED.search(text) or _SHOWN.search(text))


def _clauses(sentence: str, *, is_strict: bool) -> Iterator[str]:
    """Yield what a sentence says was done, each with its verb first."""
    start, is_perfect = 0, False
    for end in [*(joint.start() for joint in _JOINT.finditer(sentence)), len(sentence)]:
        part = _JOINT.sub("", sentence[start:end], count=1) if start else sentence[:end]
        is_perfect |= _PERFECT.match(part) is not None
        for pattern, verb_of, is_of_now in _FORMS:
            match = pattern.match(part) if is_of_now or not is_strict or (pattern is _BARE and is_perfect) else None
            if match is None or _is_denied(sentence[:start], part[: match.start("deed")]):
                continue
            if verb := verb_of(match["deed"].lower()):
                yield f"{verb} {match.groupdict().get('what', '')} {match['rest']}{sentence[end:]}"
        start = end


def _is_denied(before: str, part: str) -> bool:
    is_supposed = _SUPPOSED.search(before) or _SUPPOSED.search(part)
    return bool(is_supposed or _DENIED.search(part) or _is_about_code(part[-40:]))


def _past(verb: str) -> str:
    return verb if verb in _UNCHANGED else _changed(verb)


def _changed(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    return verb if lemma(verb) != verb and not verb.endswith(("ing", "s")) else ""


def _state(verb: str) -> str:
    return _STATES.get(verb) or (verb if verb.endswith("ing") else _past(verb))


def _same(verb: str) -> str:
    return verb


def _delivery(_: str) -> str:
    return "deliver"


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[str], str], bool], ...]] = (
    (_PERFECT, _past, True),
    (_BY_NOBODY, _past, True),
    (_SHORT, _past, True),
    (_PAST, _past, False),
    (_MANAGED, _same, False),
    (_GOING_ON, _same, False),
    (_RIGHT_NOW, _same, False),
    (_STANDS, _state, False),
    (_WAS, _state, False),
    (_BARE, _changed, False),
    (_RECEIVED, _delivery, False),
)
"""How a text says that something was done, the verb of that, and whether it is said of this moment."""


def _is_about_code(text: str) -> bool:
    return not _ABOUT_CODE.isdisjoint(lemma(word) for word in _WORD.findall(text.lower())[:4])


def _is_worded(deed: PromiseClaim) -> bool:
    """Check whether a deed is a text, which may be in the reply itself."""
    book = lexicon()
    return book.has(deed.verb, "plain", "wording") and book.among(deed.about.split(), "plain", "texts")
