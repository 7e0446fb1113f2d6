"""Claims of effects in English replies, such as "I've emailed your boss" or "Done!", and the requests for effects.

Pure. The gate's lexicon lists what counts as an effect, here as for the promises of functions.
"""

import functools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from agent_core.base.language import language_of, small_words
from agent_core.functions.gate.promise.claims import PromiseClaim, claimed_effect
from agent_core.functions.gate.promise.lexicon import is_same_verb, lemma, lexicon

_QUOTED_TEXT: Final = re.compile(  # code, quotations, and a letter
    r"```.*?(?:```|\Z)|“[^”]{0,400}”|\"[^\"\n]{0,400}\"|^[ \t]*>[^\n]*|^\W*(?:Subject:|Dear\b).*",
    re.DOTALL | re.MULTILINE,
)
_INTRODUCTION: Final = re.compile(r":[ \t]*\n(?![ \t]*[-*•\d])")  # a text follows, and no list
_CLOSER: Final = re.compile(r"\b(?:else|further|help|let me know|questions?)\b", re.I)
_NO_OBJECT: Final = re.compile(r" (?:no|none|nothing|nobody)\b", re.I)
_QUOTATION: Final = re.compile(r"```|[“\"][^“”\"]{10,400}[”\"]")
_MARKDOWN: Final = re.compile(r"[*_|#]{1,3}(?=\w)|(?<=[\w.!])[*_|]{1,3}")
_CODE_NAME: Final = re.compile(r"`[^`\n]*`")
_SENTENCE: Final = re.compile(r"(?:[^.!?;\n]|[.](?=\w))+[.!?…]*")
_CLAUSE_BREAK: Final = re.compile(r"[,:–—]? (?:and then|and|then|but) |[,:–—] ", re.I)
_EARLIER: Final = re.compile(r"^\W*yes\b|\b(?:already|earlier|previously|before|yesterday|ago|last|recently)\b", re.I)
_HYPOTHETICAL: Final = re.compile(
    r"\b(?:if|once|when|whenever|until|unless|how|whether|would|could|should|might|may|must|let|as though"
    r"|usually|generally|normally|typically|often)\b",
    re.I,
)
_NEGATION: Final = re.compile(
    r"\b(?:not|never|no|nor|nothing|nobody|none|neither|without|cannot|can|unable)\b|n['’]t\b|['’]ll\b", re.I
)
_DONE: Final = re.compile(
    r"\W*(?:(?:(?:it|that|this|all|everything)(?:['’]s| is| has been)?) )?(?:all )?"
    r"(?:done|set|handled|sorted)\b(?!\s*\w)",
    re.I,
)
_IDIOM: Final = re.compile(
    r"\W*consider it \w+(?:ed|t|ne)\b"
    r"|.*\b(?:on (?:its|the|their) way|gone out|(?:went|gone) through|taken care of|good to go|up and running)\b"
    r"|.*\bnow (?:has|reads|shows|says|knows|lists|includes|contains)\b",
    re.I,
)
_ADMISSION: Final = re.compile(  # of a failure, or an offer, or work that goes on
    r"\b(?:(?:im|un|in)(?:possible|available|able|sent|supported|successful|valid)|problems?|errors?|wrong|stuck|trouble"
    r"|blocked|gave up|too|please|tell me|give me|copy|approve|have to|wait(?:ing)?|working on|not|no|never|none|nor"
    r"|nothing|nobody|without|cannot|can|fail(?:s|ed|ure)?|rejected|refused|denied|declined|turned down"
    r"|unfortunately|sadly|sorry|only|instead|still|until|yourself|by hand|manually|drafts?|grants?|permission"
    r"|allow(?:ed)?|access|needs?|would|could|supposed|tried|attempt\w*|lacks?|missing)\b"
    r"|n['’]t\b|\?",
    re.I,
)
_ACKNOWLEDGMENT: Final = re.compile(r"\W*noted\W*", re.I)
_QUESTION: Final = re.compile(
    r"\W*(?:how|what|why|when|where|who|which|is|are|was|were|do|does|did|have|has)\b|.*\bhow to\b", re.I
)
_REQUEST_BREAK: Final = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|and|then|I(?:['’]d)? (?:want|need|like)(?: you)? to|you to)\b|[,.!?;]",
    re.I,
)
_MESSAGE_REQUEST: Final = re.compile(r"(?:let|tell|ask|write to|inform) (?!me\b|us\b)(?:\w+ ){1,4}", re.I)
_MEMORY_REQUEST: Final = re.compile(r"\b(?:remember|(?:make|take) a note|keep .*in mind|(?:not|n['’]t) forget)\b", re.I)
_TO_THE_USER: Final = re.compile(r"(?:me|us)\b", re.I)
_USERS_OWN: Final = re.compile(r"(?:my|our)\b", re.I)
_INTO_STORE: Final = re.compile(
    r"\b(?:into|in|to|on) (?:my|our|the) (?:\w+ )?(?:calendar|agenda|diary|journal|database|file|disk)", re.I
)
_TEXT_VERBS: Final = ("verbs", "wording", "asking")
_SENDING_VERBS: Final = frozenset(["send", "share", "post", "mail", "email", "forward"])  # `send me`: in the reply
_OF_FUNCTION: Final = re.compile(
    r"\b(?:function|tool|helper|assistant|agent|something)\b.{0,40}?\b(?:that|which|to)\b", re.I
)
_ADVERBS: Final = r"(?:(?:just|now|also|already|all|both|then|\w{3,}ly) )*"
_VERB: Final = r"(?P<verb>[a-z]+)\b"
_DOING: Final = r"(?P<verb>[a-z]+ing)\b"
_HAVE: Final = r"(?:['’]ve| have)"
_NOUN: Final = (
    r"(?!(?:is|are|was|were|be|been|has|have|had|do|does|did|to|i|we|he|she|they|that|which|who|what|and|or|of|by|it)\b)"
    r"[\w'’$%-]+"
)
# The forms of a claim: the object, where it comes first (`what`), the verb, and the rest.
_PERFECT: Final = re.compile(rf".*?\b(?:I|we){_HAVE} {_ADVERBS}{_VERB}(?P<rest>.*)", re.I)  # I've sent it
_PAST: Final = re.compile(rf".*?\b(?:I|we) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I)  # I sent it
_MANAGED: Final = re.compile(  # I managed to send it
    rf".*?\bI{_HAVE}? (?:was able to|managed to|went ahead and|go ahead and) {_VERB}(?P<rest>.*)", re.I
)
_PROGRESSIVE: Final = re.compile(rf".*?\b(?:I['’]m|I am) {_ADVERBS}{_DOING}(?P<rest>.*)", re.I)  # I'm sending it
_BARE_PROGRESSIVE: Final = re.compile(
    rf"\W*{_ADVERBS}{_DOING}(?P<rest>.*(?:\bnow\W*|…|\.\.\.))$", re.I
)  # Sending it now
_PASSIVE_PERFECT: Final = re.compile(  # the email has been sent
    rf"(?P<what>.*?)(?:['’]s|['’]ve|\bhas|\bhave) {_ADVERBS}been {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)
_STATE: Final = re.compile(  # the lights are off; not: lights are off
    r"(?P<what>\W*(?:(?:the|your|my|this|that|these|those|it|all|both|everything|you|they)\b.*?)??)"
    rf"(?:['’]s| is| are|['’]re) (?:being )?{_ADVERBS}{_VERB}(?! by| through)(?P<rest>.*)",
    re.I,
)
_PASSIVE_PAST: Final = re.compile(  # the email was sent
    rf"(?P<what>.*?) (?:was|were|(?:is|are) being) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)
_HEADLINE: Final = re.compile(  # Email sent to your boss
    rf"\W*(?P<what>{_NOUN}(?: {_NOUN}){{0,4}}?) {_VERB}"
    r"(?P<rest>(?: [a-z]+ly)?(?:\W*$| (?:to|for|at|on|in|into|as|with|from)\b.*))",
    re.I,
)
_PARTICIPLE: Final = re.compile(rf"\W*{_ADVERBS}{_VERB}(?! by\b)(?P<rest>.*)", re.I)  # Sent it
_BY_FUNCTION: Final = re.compile(
    rf".*?\b(?:it|function|tool|helper) {_ADVERBS}{_VERB}(?P<rest>.*)", re.I
)  # the tool sent it
_CAUSATIVE: Final = re.compile(
    rf".*?\bI (?:got|had) (?P<what>(?:{_NOUN} ){{1,4}}?){_VERB}(?P<rest>.*)", re.I
)  # I got it sent
_RECEIVED: Final = re.compile(  # your boss will get the email
    r".*?\b(?:has|have|will) (?:\w+ly )?(?P<verb>received?|got|get)\b(?P<rest>.*)", re.I
)
_CODE_NOUNS: Final = frozenset(["function", "tool", "code", "test", "example", "version"])
_STATE_VERBS: Final = {"on": "turn on", "off": "turn off", "open": "open"}
_DEMONSTRATIVE: Final = re.compile(r"(?<=\w) +(?:that|this|those|these) (?=\w)", re.I)
_MOST_CHARS: Final = 20_000
_MOST_CHARS_OF_SENTENCE: Final = 400
_MOST_CHARS_OF_SUBJECT: Final = 40
_CERTAIN: Final = 2  # the weight of an effect of which the words leave no doubt
_SHORTEST_WORD: Final = 3
_WRITTEN_IN_REPLY: Final = frozenset(
    ["table", "plan", "script", "program", "code", "class", "query", "list", "review", "report"]
)
_MOST_WORDS_UNTOLD: Final = 4  # a longer English text has a word that shows its language
_WORD: Final = re.compile(r"\w+")
_INVARIANT_VERBS: Final = frozenset(["set", "reset", "put", "shut", "cast"])  # with the same past form
_IRREGULAR_VERBS: Final = {
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
}  # those that the lexicon lacks, since names of functions do not have them


@dataclass(frozen=True, slots=True)
class RequestedEffects:
    """The effects that somebody requested: their verbs, and the words for the things they act on.

    `is_for_text`: the request is for a text or an answer instead.
    """

    verbs: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    is_for_text: bool = False

    def __bool__(self) -> bool:
        return bool(self.verbs)

    def __or__(self, other: "RequestedEffects") -> "RequestedEffects":
        is_for_text = self.is_for_text or other.is_for_text
        return RequestedEffects(self.verbs | other.verbs, self.words | other.words, is_for_text)

    def matches(self, effect: PromiseClaim, clause: str) -> bool:
        """Check whether an effect is one of them: it has the same verb or object, or both are messages."""
        messages = lexicon().sections["effect"]["always"]
        is_message = effect.verb in messages and not messages.isdisjoint(self.verbs)
        has_verb = any(is_same_verb(effect.verb, verb) for verb in self.verbs)
        return is_message or has_verb or not self.words.isdisjoint(_content_words(clause))


@dataclass(frozen=True, slots=True)
class EffectClaim:
    """A sentence of a reply that reports an effect.

    `is_requested`: the user requested the effect. `is_bare`: the sentence names none (`Done!`). `is_kept`: storing
    something in memory is enough for it to be true.
    """

    sentence: str
    is_requested: bool = False
    is_bare: bool = False
    is_kept: bool = False


def effect_claims(text: str, requested: RequestedEffects) -> Iterator[EffectClaim]:
    """Yield the sentences of a reply that report an effect.

    A requested effect counts in any form. Any other counts only if it is certain, and in a form that reports what was
    just done.
    """
    if _ACKNOWLEDGMENT.fullmatch(text):
        return
    has_wording = ":" in text or '"' in text or "“" in text
    for match in _SENTENCE.finditer(_own_words(text)):
        sentence = match[0].strip()[:_MOST_CHARS_OF_SENTENCE]
        if sentence.endswith("?"):
            continue
        is_idiom = _IDIOM.match(sentence) is not None
        if requested and not _NEGATION.search(sentence) and (is_idiom or _DONE.match(sentence)):
            yield EffectClaim(sentence, is_requested=True, is_bare=not is_idiom)
        for clause, is_recent in _clauses(sentence):
            effect = claimed_effect(_DEMONSTRATIVE.sub(" ", clause, count=1))
            if effect is None or _is_in_reply(effect, has_wording=has_wording):
                continue
            is_requested = bool(requested) and requested.matches(effect, clause)
            if is_requested or (is_recent and effect.weight == _CERTAIN and not _EARLIER.search(sentence)):
                is_kept = effect.is_kept or lexicon().has(effect.verb, "effect", "placing")
                yield EffectClaim(sentence, is_requested=is_requested, is_kept=is_kept)


@functools.lru_cache(maxsize=64)
def requested_effects(request: str) -> RequestedEffects:
    """Return the effects that a request is for, or is for a function for; none if it is for a text or an answer."""
    head = request[:_MOST_CHARS_OF_SENTENCE].partition(":")[0].partition("\n")[0]
    if _QUESTION.match(head):
        return RequestedEffects()
    clauses = [clause.strip() for clause in _REQUEST_BREAK.split(head)]
    clauses += [head[match.end() :].strip() for match in _OF_FUNCTION.finditer(head)]
    return functools.reduce(operator.or_, map(_requested_by, filter(None, clauses)), RequestedEffects())


def _requested_by(clause: str) -> RequestedEffects:
    """Return the effect that a clause in the imperative requests."""
    verb, _, rest = clause.partition(" ")
    words = _content_words(rest)
    if _is_about_code(rest) or verb.lower() == "like":  # what the function is for has its own clause; `like` is no verb
        return RequestedEffects()
    if _MESSAGE_REQUEST.match(clause):
        return RequestedEffects(frozenset(["notify"]), words)
    if _MEMORY_REQUEST.search(clause):
        return RequestedEffects(frozenset(["remember", "note", "save"]), words)
    effect = None if verb.endswith(("ing", "ed")) else claimed_effect(clause)
    if effect is not None and not _is_answer(effect, rest):
        return RequestedEffects(frozenset([effect.verb]), words)
    if _USERS_OWN.match(rest) and not lexicon().among(words, "plain", "texts"):
        return RequestedEffects(frozenset([verb.lower()]), words)
    return RequestedEffects(is_for_text=any(lexicon().has(verb.lower(), "plain", key) for key in _TEXT_VERBS))


def _is_answer(effect: PromiseClaim, rest: str) -> bool:
    """Check whether the reply itself is what a request with this verb is for: `send me`, `write a report`."""
    book, about = lexicon(), effect.about.split()
    is_written = not _WRITTEN_IN_REPLY.isdisjoint(map(lemma, about)) and book.has(effect.verb, "plain", "wording")
    is_text = _is_text(effect) or _is_wording(effect) or is_written
    is_sent = _TO_THE_USER.match(rest) is not None and effect.verb in _SENDING_VERBS
    return is_sent or (is_text and not _INTO_STORE.search(rest))


def effects_in_name(name: str) -> RequestedEffects:
    """Return the effect that the name of a function promises."""
    words = name.replace("_", " ")
    effect = claimed_effect(words)
    return RequestedEffects(frozenset([effect.verb]), _content_words(words)) if effect else RequestedEffects()


def admits_nothing(text: str) -> bool:
    """Check whether an English text neither admits a failure nor asks for or offers anything.

    A question at its end, such as `Anything else?`, does not count.
    """
    text = text[:_MOST_CHARS]
    sentences = _SENTENCE.findall(text)
    while sentences and _CLOSER.search(sentences[-1][:_MOST_CHARS_OF_SENTENCE]):
        sentences.pop()
    body = "".join(sentences)
    language = language_of(body)
    is_english = language == "en" or (not language and body.isascii() and len(body.split()) <= _MOST_WORDS_UNTOLD)
    is_offer = _ADMISSION.search(body) or _QUOTATION.search(body) or _INTRODUCTION.search(text)
    return is_english and bool(body.strip()) and not is_offer


def _own_words(text: str) -> str:
    """Return a reply without code, quotations, Markdown, and a text such as a draft that follows a colon."""
    text = _CODE_NAME.sub("it", _QUOTED_TEXT.sub(" … ", text[:_MOST_CHARS]))
    if (introduction := _INTRODUCTION.search(text)) is not None:
        line = text[text.rfind("\n", 0, introduction.start()) + 1 : introduction.start()]
        words = _WORD.findall(line.lower())
        if "draft" in words or lexicon().among(words, "plain", "texts"):
            text = text[: introduction.start()]
    return _MARKDOWN.sub("", text)


def _content_words(text: str) -> frozenset[str]:
    """Return the base forms of the words of a text, without small words."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST_WORD)
    return frozenset(lemma(word) for word in words) - small_words()["en"]


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield each deed that a sentence reports as a clause that begins with its verb, and whether it was just done."""
    start, is_perfect = 0, False
    for end in [*(mark.start() for mark in _CLAUSE_BREAK.finditer(sentence)), len(sentence)]:
        part = _CLAUSE_BREAK.sub("", sentence[start:end], count=1) if start else sentence[:end]
        is_perfect |= _PERFECT.match(part) is not None
        for form in _FORMS:
            match = form.pattern.match(part)
            if match is None or _is_negated(sentence[:start], part[: match.start("verb")], form):
                continue
            if (verb := form.verb_of(match["verb"].lower())) and not _NO_OBJECT.match(match["rest"]):
                is_recent = form.is_recent or (is_perfect and form.pattern is _PARTICIPLE)  # I've found it and sent it
                yield f"{verb} {match.groupdict().get('what', '')} {match['rest']}{sentence[end:]}", is_recent
        start = end


def _past(verb: str) -> str:
    return verb if verb in _INVARIANT_VERBS else _changed(verb)


def _changed(verb: str) -> str:
    """Return the verb of a past form that differs from it, or nothing."""
    if verb in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[verb]
    return verb if lemma(verb) != verb and not verb.endswith(("ing", "s")) else ""


def _state(verb: str) -> str:
    return _STATE_VERBS.get(verb) or (verb if verb.endswith("ing") else _past(verb))


@dataclass(frozen=True, slots=True)
class ClaimForm:
    """A form in which English reports a deed, and how to read its verb; `is_recent`: it reports what was just done."""

    pattern: re.Pattern[str]
    verb_of: Callable[[str], str]
    is_recent: bool = False


_FORMS: Final = (
    ClaimForm(_PERFECT, _past, is_recent=True),
    ClaimForm(_PASSIVE_PERFECT, _past, is_recent=True),
    ClaimForm(_HEADLINE, _past, is_recent=True),
    ClaimForm(_PAST, _past),
    ClaimForm(_MANAGED, str),
    ClaimForm(_PROGRESSIVE, str),
    ClaimForm(_BARE_PROGRESSIVE, str),
    ClaimForm(_STATE, _state),
    ClaimForm(_PASSIVE_PAST, _state),
    ClaimForm(_PARTICIPLE, _changed),
    ClaimForm(_RECEIVED, lambda _: "deliver"),
    ClaimForm(_CAUSATIVE, _past),
    ClaimForm(_BY_FUNCTION, _changed),
)


def _is_negated(before: str, part: str, form: ClaimForm) -> bool:
    """Check whether what precedes a verb makes it no report: a condition, a negation, or a function as the subject."""
    is_of_function = form.pattern is not _BY_FUNCTION and _is_about_code(part[-_MOST_CHARS_OF_SUBJECT:])
    return bool(_HYPOTHETICAL.search(before + part) or _NEGATION.search(part) or is_of_function)


def _is_about_code(text: str) -> bool:
    return not _CODE_NOUNS.isdisjoint(lemma(word) for word in _WORD.findall(text.lower())[:4])


def _is_in_reply(effect: PromiseClaim, *, has_wording: bool) -> bool:
    """Check whether an effect is on code or of wording, of which the reply may have the result if it `has_wording`."""
    return _is_wording(effect) or _is_about_code(effect.about) or (has_wording and _is_text(effect))


def _is_wording(effect: PromiseClaim) -> bool:
    """Check whether an effect is most likely a text: `printed the primes`."""
    return effect.weight < _CERTAIN and lexicon().has(effect.verb, "plain", "wording")


def _is_text(effect: PromiseClaim) -> bool:
    """Check whether an effect is to write something that is a text: `wrote a letter`."""
    book = lexicon()
    return book.has(effect.verb, "plain", "wording") and book.among(effect.about.split(), "plain", "texts")
