"""The effects that a text says were had, read in English: "I've emailed your boss", "the lights are off", "Done!".

Pure. What counts as an effect is in the gate's lexicon, as for the promises of functions.
"""

import functools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from agent_core.base.language import language_of, small_words
from agent_core.functions.gate.promise.claims import PromiseClaim, deed_of
from agent_core.functions.gate.promise.lexicon import is_same_verb, lemma, lexicon

_NOT_SAID: Final = re.compile(  # code, quotations, and a letter
    r"```.*?(?:```|\Z)|“[^”]{0,400}”|\"[^\"\n]{0,400}\"|^[ \t]*>[^\n]*|^\W*(?:Subject:|Dear\b).*",
    re.DOTALL | re.MULTILINE,
)
_SHOWN: Final = re.compile(r":[ \t]*\n(?![ \t]*[-*•\d])")  # a text follows, and no list
_CLOSER: Final = re.compile(r"\b(?:else|further|help|let me know|questions?)\b", re.I)
_NONE: Final = re.compile(r" (?:no|none|nothing|nobody)\b", re.I)
_QUOTED: Final = re.compile(r"```|[“\"][^“”\"]{10,400}[”\"]")
_MARKS: Final = re.compile(r"[*_|#]{1,3}(?=\w)|(?<=[\w.!])[*_|]{1,3}")
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
    r"\W*(?:(?:(?:it|that|this|all|everything)(?:['’]s| is| has been)?) )?(?:all )?"
    r"(?:done|set|handled|sorted)\b(?!\s*\w)",
    re.I,
)
_SETTLED: Final = re.compile(
    r"\W*consider it \w+(?:ed|t|ne)\b"
    r"|.*\b(?:on (?:its|the|their) way|gone out|(?:went|gone) through|taken care of|good to go|up and running)\b"
    r"|.*\bnow (?:has|reads|shows|says|knows|lists|includes|contains)\b",
    re.I,
)
_ADMITTED: Final = re.compile(  # that it was not done, or that something else is offered or goes on
    r"\b(?:(?:im|un|in)(?:possible|available|able|sent|supported|successful|valid)|problems?|errors?|wrong|stuck|trouble"
    r"|blocked|gave up|too|please|tell me|give me|copy|approve|have to|wait(?:ing)?|working on|not|no|never|none|nor"
    r"|nothing|nobody|without|cannot|can|fail(?:s|ed|ure)?|rejected|refused|denied|declined|turned down"
    r"|unfortunately|sadly|sorry|only|instead|still|until|yourself|by hand|manually|drafts?|grants?|permission"
    r"|allow(?:ed)?|access|needs?|would|could|supposed|tried|attempt\w*|lacks?|missing)\b"
    r"|n['’]t\b|\?",
    re.I,
)
_UNDERSTOOD: Final = re.compile(r"\W*noted\W*", re.I)
_QUESTION: Final = re.compile(
    r"\W*(?:how|what|why|when|where|who|which|is|are|was|were|do|does|did|have|has)\b|.*\bhow to\b", re.I
)
_REQUESTS: Final = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|and|then|I(?:['’]d)? (?:want|need|like)(?: you)? to|you to)\b|[,.!?;]",
    re.I,
)
_TO_OTHERS: Final = re.compile(r"(?:let|tell|ask|write to|inform) (?!me\b|us\b)(?:\w+ ){1,4}", re.I)
_TO_KEEP: Final = re.compile(r"\b(?:remember|(?:make|take) a note|keep .*in mind|(?:not|n['’]t) forget)\b", re.I)
_FOR_ME: Final = re.compile(r"(?:me|us)\b", re.I)
_MINE: Final = re.compile(r"(?:my|our)\b", re.I)
_INTO_STORE: Final = re.compile(
    r"\b(?:into|in|to|on) (?:my|our|the) (?:\w+ )?(?:calendar|agenda|diary|journal|database|file|disk)", re.I
)
_RESULTS: Final = ("verbs", "wording", "asking")
_GIVING: Final = frozenset(["send", "share", "post", "mail", "email", "forward"])  # to me: in the reply
_OF_FUNCTION: Final = re.compile(
    r"\b(?:function|tool|helper|assistant|agent|something)\b.{0,40}?\b(?:that|which|to)\b", re.I
)
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
_BY_CODE: Final = re.compile(
    rf".*?\b(?:it|function|tool|helper) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)  # the tool sent it
_GOT: Final = re.compile(
    rf".*?\bI (?:got|had) (?P<what>(?:{_NOUN} ){{1,4}}?){_VERB}(?P<rest>.*)", re.I
)  # I got it sent
_RECEIVED: Final = re.compile(  # your boss will get the email
    r".*?\b(?:has|have|will) (?:\w+ly )?(?P<deed>received?|got|get)\b(?P<rest>.*)", re.I
)
_ABOUT_CODE: Final = frozenset(["function", "tool", "code", "test", "example", "version"])
_STATES: Final = {"on": "turn on", "off": "turn off", "open": "open"}
_THAT: Final = re.compile(r"(?<=\w) +(?:that|this|those|these) (?=\w)", re.I)
_MOST_CHARS, _OF_SENTENCE = 20_000, 400
_SURE: Final = 2  # the weight of a deed that is beyond doubt
_SHORTEST: Final = 2
_IN_REPLY: Final = frozenset(
    ["table", "plan", "script", "program", "code", "class", "query", "list", "review", "report"]
)
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
class AskedDeeds:
    """The effects that somebody asked for: their verbs, and the words for what they are about.

    `is_for_text`: they asked for a text or an answer instead.
    """

    verbs: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    is_for_text: bool = False

    def __bool__(self) -> bool:
        return bool(self.verbs)

    def __or__(self, other: "AskedDeeds") -> "AskedDeeds":
        return AskedDeeds(self.verbs | other.verbs, self.words | other.words, self.is_for_text or other.is_for_text)

    def has(self, deed: PromiseClaim, clause: str) -> bool:
        """Check whether a deed is one of them: by its verb, by what it is about, or as a message like another."""
        messages = lexicon().sections["effect"]["always"]
        is_message = deed.verb in messages and not messages.isdisjoint(self.verbs)
        is_same = any(is_same_verb(deed.verb, verb) for verb in self.verbs)
        return is_message or is_same or not self.words.isdisjoint(_content(clause))


@dataclass(frozen=True, slots=True)
class EffectClaim:
    """The sentence of a text that says that something was done.

    `is_asked`: it is what was asked for. `is_bare`: it says only that it is done. `is_kept`: to keep something does it.
    """

    sentence: str
    is_asked: bool = False
    is_bare: bool = False
    is_kept: bool = False


def effect_claims(text: str, asked: AskedDeeds) -> Iterator[EffectClaim]:
    """Yield the claims of a text: of what was asked for, in any words, and of other deeds, in words that tell of this
    moment and leave no doubt.
    """
    if _UNDERSTOOD.fullmatch(text):
        return
    is_wording = ":" in text or '"' in text or "“" in text
    for match in _SENTENCE.finditer(_said(text)):
        sentence = match[0].strip()[:_OF_SENTENCE]
        if sentence.endswith("?"):
            continue
        if asked and not _DENIED.search(sentence) and (_DONE.match(sentence) or _SETTLED.match(sentence)):
            yield EffectClaim(sentence, is_asked=True, is_bare=_SETTLED.match(sentence) is None)
        for clause, is_of_now in _clauses(sentence):
            deed = deed_of(_THAT.sub(" ", clause, count=1), is_strict=False)
            if deed is None or _is_in_reply(deed, is_wording=is_wording):
                continue
            is_asked = bool(asked) and asked.has(deed, clause)
            if is_asked or (is_of_now and deed.weight == _SURE and not _EARLIER.search(sentence)):
                yield EffectClaim(sentence, is_asked=is_asked, is_kept=deed.is_kept or _is_placed(deed))


@functools.lru_cache(maxsize=64)
def asked_deeds(request: str) -> AskedDeeds:
    """Return the effects that a request asks for, or of which it asks for a function; none for a text or an answer."""
    head = request[:_OF_SENTENCE].partition(":")[0].partition("\n")[0]
    if _QUESTION.match(head):
        return AskedDeeds()
    parts = [part.strip() for part in _REQUESTS.split(head)]
    parts += [head[match.end() :].strip() for match in _OF_FUNCTION.finditer(head)]
    return functools.reduce(operator.or_, map(_asked_by, filter(None, parts)), AskedDeeds())


def _asked_by(clause: str) -> AskedDeeds:
    """Return the effect that a clause in the imperative asks for."""
    verb, _, rest = clause.partition(" ")
    words = _content(rest)
    if _is_about_code(rest) or verb.lower() == "like":  # it has a clause of its own; an example
        return AskedDeeds()
    if _TO_OTHERS.match(clause):
        return AskedDeeds(frozenset(["notify"]), words)
    if _TO_KEEP.search(clause):
        return AskedDeeds(frozenset(["remember", "note", "save"]), words)
    deed = None if verb.endswith(("ing", "ed")) else deed_of(clause, is_strict=False)
    is_answer = deed is not None and _FOR_ME.match(rest) is not None and deed.verb in _GIVING
    is_text = deed is not None and (_is_text(deed) or _is_mere_wording(deed)) and not _INTO_STORE.search(rest)
    if deed is not None and not is_answer and not is_text:
        return AskedDeeds(frozenset([deed.verb]), words)
    is_mine = _MINE.match(rest) and not lexicon().among(words, "plain", "texts")
    if is_mine:
        return AskedDeeds(frozenset([verb.lower()]), words)
    return AskedDeeds(is_for_text=any(lexicon().has(verb.lower(), "plain", key) for key in _RESULTS))


def deeds_in_name(name: str) -> AskedDeeds:
    """Return the effect that the name of a function promises."""
    deed = deed_of(name.replace("_", " "), is_strict=False)
    return AskedDeeds(frozenset([deed.verb]), _content(name.replace("_", " "))) if deed else AskedDeeds()


def admits_nothing(text: str) -> bool:
    """Check whether an English text says of nothing that it was not done, and neither asks for nor offers anything."""
    is_shown = _SHOWN.search(text[:_MOST_CHARS])
    sentences = _SENTENCE.findall(text[:_MOST_CHARS])
    while sentences and _CLOSER.search(sentences[-1][:_OF_SENTENCE]):
        sentences.pop()
    text = "".join(sentences)
    language = language_of(text)
    is_english = language == "en" or (not language and text.isascii() and len(text.split()) < _TELLING)
    is_offer = _ADMITTED.search(text) or is_shown or _QUOTED.search(text)
    return is_english and bool(text.strip()) and not is_offer


def _said(text: str) -> str:
    """Return the part of a text in which its writer speaks, without a text that it shows after a colon."""
    said = _CODE_NAME.sub("it", _NOT_SAID.sub(" … ", text[:_MOST_CHARS]))
    shown = _SHOWN.search(said)
    before = _WORD.findall(said[said.rfind("\n", 0, shown.start()) + 1 : shown.start()].lower()) if shown else []
    is_shown = "draft" in before or lexicon().among(before, "plain", "texts")
    return _MARKS.sub("", said[: shown.start()] if shown and is_shown else said)


def _content(text: str) -> frozenset[str]:
    """Return the base forms of the words of a text that say what it is about."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) > _SHORTEST)
    return frozenset(lemma(word) for word in words) - small_words()["en"]


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield what a sentence says was done, each with its verb first, and whether it is said of this moment."""
    start, is_perfect = 0, False
    for end in [*(joint.start() for joint in _JOINT.finditer(sentence)), len(sentence)]:
        part = _JOINT.sub("", sentence[start:end], count=1) if start else sentence[:end]
        is_perfect |= _PERFECT.match(part) is not None
        for pattern, verb_of, is_of_now in _FORMS:
            match = pattern.match(part)
            is_by_code = pattern is _BY_CODE
            if match is None or _is_denied(sentence[:start], part[: match.start("deed")], is_by_code=is_by_code):
                continue
            if (verb := verb_of(match["deed"].lower())) and not _NONE.match(match["rest"]):
                clause = f"{verb} {match.groupdict().get('what', '')} {match['rest']}{sentence[end:]}"
                yield clause, is_of_now or (pattern is _BARE and is_perfect)
        start = end


def _is_denied(before: str, part: str, *, is_by_code: bool) -> bool:
    is_supposed = _SUPPOSED.search(before) or _SUPPOSED.search(part)
    return bool(is_supposed or _DENIED.search(part) or (not is_by_code and _is_about_code(part[-40:])))


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
    (_GOT, _past, False),
    (_BY_CODE, _changed, False),
)
"""How a text says that something was done, the verb of that, and whether it is said of this moment."""


def _is_about_code(text: str) -> bool:
    return not _ABOUT_CODE.isdisjoint(lemma(word) for word in _WORD.findall(text.lower())[:4])


def _is_placed(deed: PromiseClaim) -> bool:
    return lexicon().has(deed.verb, "effect", "placing")


def _is_in_reply(deed: PromiseClaim, *, is_wording: bool) -> bool:
    """Check whether a deed is about code, or one of words that the reply has if it `is_wording`."""
    return _is_mere_wording(deed) or _is_about_code(deed.about) or (is_wording and _is_worded(deed))


def _is_mere_wording(deed: PromiseClaim) -> bool:
    """Check whether a deed is most likely one of words: `printed the primes`."""
    return deed.weight < _SURE and lexicon().has(deed.verb, "plain", "wording")


def _is_text(deed: PromiseClaim) -> bool:
    """Check whether a deed is to word a text, a table or code for the reply."""
    is_in_reply = not _IN_REPLY.isdisjoint(map(lemma, deed.about.split()))
    return _is_worded(deed) or (is_in_reply and lexicon().has(deed.verb, "plain", "wording"))


def _is_worded(deed: PromiseClaim) -> bool:
    """Check whether a deed is a text, which may be in the reply itself."""
    book = lexicon()
    return book.has(deed.verb, "plain", "wording") and book.among(deed.about.split(), "plain", "texts")
