"""The judgment on a promise: what is claimed, what the code has to do it with, and what varied calls gave back.

Strong evidence is a finding that refuses; weak evidence is a finding whose code begins with `doubt-`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from agent_core.registry.function import Function

from ..draft import Draft, Finding
from .answers import is_same_verb, lemma, texts_of
from .behavior import Behavior
from .claims import OF, Claim, Promise, lexicon
from .code import admission, by_chance, by_hash, by_length_only, literals
from .constants import NOT_MEMORIZED, Memory, is_arithmetic

_WORD = re.compile(r"[^\W\d_]+")
_KEEPS = "what it sets is gone when the call ends"


@dataclass(frozen=True)
class Case:
    """A function with its promise, its means, and its behavior once that is known."""

    draft: Draft
    function: Function
    promise: Promise
    has_means: bool
    memory: Memory | None
    behavior: Behavior = field(default_factory=Behavior)

    @property
    def is_suspect(self) -> bool:
        """True if something in its words or constants makes it worth calling."""
        if self.memory is not None and self.memory.is_suspect:
            return True
        if self.has_means:
            return False
        return bool(
            self.promise.claims
            or self.draws
            or self.measures
            or self.is_formula
            or admission(self.draft)[1]
            or not self.is_plain
            or (self.is_asked and self.invents)
        )

    @property
    def is_asked(self) -> bool:
        """True if its sentence promises an answer to a question."""
        return lexicon().among(self.promise.sentence[:1] or self.promise.name[:1], "plain", "asking")

    @property
    def invents(self) -> bool:
        """True if there are several words in the texts of its code."""
        tree = self.draft.tree
        return tree is not None and sum(len(_WORD.findall(text)) for text in literals(tree) if text[:1] in "\"'") > _FEW

    @property
    def is_plain(self) -> bool:
        """True if its words are those of computing, or it is named for the text that it makes."""
        book = lexicon()
        return self.promise.is_plain or any(
            part and book.has(part[-1], "plain", "texts") for part in (self.promise.name,)
        )

    @property
    def draws(self) -> bool:
        """True if chance or a hash decides, and its description says nothing of the kind."""
        tree = self.draft.tree
        return tree is not None and (by_chance(tree) or by_hash(tree)) and not self.promise.says("chance")

    @property
    def measures(self) -> tuple[str, ...]:
        """The parameters of which it reads the length alone, if its description says nothing of a length."""
        node = self.draft.function
        return by_length_only(node) if node is not None and not self.promise.says("length") else ()

    @property
    def is_formula(self) -> bool:
        """True if it is a line of arithmetic, and its words promise what no such line gives."""
        node = self.draft.function
        words = (*self.promise.name, *self.promise.sentence[:4])
        return node is not None and lexicon().among(words, "arithmetic", "beyond") and is_arithmetic(node)

    @property
    def line(self) -> int:
        """The line of the function in its text."""
        return self.draft.function.lineno if self.draft.function else 0


def judge(case: Case) -> tuple[list[Finding], list[Finding]]:
    """Return what refuses, and the doubts; a doubt is not told where something refuses."""
    findings = [*_memorized(case), *([] if case.has_means else _claims(case))]
    doubts = [finding for finding in findings if finding.code.startswith("doubt-")]
    strong = [finding for finding in findings if not finding.code.startswith("doubt-")]
    return (strong[:2], []) if strong else ([], doubts[:2])


def _memorized(case: Case) -> Iterator[Finding]:
    name = case.function.name
    fix = "compute the result from the arguments; a table must cover what the description promises"
    if case.is_formula:
        message = (
            f"`{name}` is one line of arithmetic that fits its examples: it cannot give what it promises for others"
        )
        yield Finding("hard-coded", message, fix, case.line)
        return
    if case.behavior.repeats:
        message = (
            f"`{name}` gives a text of the same length the answer of its example, with words that only that one has"
        )
        yield Finding("hard-coded", message, fix, case.line)
        return
    memorized = case.memory.judge(case.behavior.others()) if case.memory and case.memory.is_suspect else NOT_MEMORIZED
    if memorized.weight == "strong":
        yield Finding(
            "hard-coded", f"`{name}` answers its own examples and no other call: {memorized.reason}", fix, case.line
        )
    elif memorized.weight == "weak":
        fix = "add an example with arguments that stand nowhere in the code"
        yield Finding(
            "doubt-examples", f"`{name}` may only answer its own examples: {memorized.reason}", fix, case.line
        )


def _claims(case: Case) -> Iterator[Finding]:
    text, line = admission(case.draft)
    if line:
        message = f"`{text[:80]}` says that the work is not done, and `{case.function.name}` has no means to do it"
        yield Finding("claims-work", message, "do the work, or promise only what the body does", line)
    for kind, check in (("effect", _effect), ("knowledge", _knowledge), ("work", _work)):
        claim = case.promise.claim(kind)  # type: ignore[arg-type] # one of three
        if claim is not None:
            yield from check(case, claim)
    yield from _chance(case)
    yield from _length(case)
    if not case.promise.claim("effect"):
        yield from _handed_on(case)


def _handed_on(case: Case) -> Iterator[Finding]:
    """Judge a function that only puts its arguments into fixed words, where its verb promises an answer."""
    behavior, name, book = case.behavior, case.function.name, lexicon()
    if not (behavior.is_fixed and behavior.is_free() and has_letters(case)) or behavior.gives_nothing:
        return
    if len(behavior.returned) < _FEW:
        return
    first = [part[0] for part in (case.promise.sentence, case.promise.name) if part]
    is_worded = any(book.has(verb, "plain", "wording") for verb in first[:1]) or _is_text(case)
    if is_worded and behavior.hands_on:
        return
    message = f"`{name}` gives the same made-up words for every argument: it {_HANDS_ON[behavior.hands_on]}"
    if behavior.is_constant or (case.is_asked and len(behavior.invented) >= _FEW):
        yield Finding(
            "claims-work", message, "compute the answer from the arguments, or promise only a text", case.line
        )
    elif not case.is_plain or len(behavior.invented) >= _FEW:
        yield Finding("doubt-template", message, _honest_name(case), case.line)


_FEW, _MANY = 3, 20
_HANDS_ON = {True: "only puts them into fixed words", False: "never uses them"}


def _is_text(case: Case) -> bool:
    """Check whether the noun that is promised is a kind of text, which may well be a template."""
    book = lexicon()
    heads = [phrase[-1] for phrase in (_phrase(case.promise.sentence[1:]), case.promise.name) if phrase]
    return book.among(heads, "plain", "texts")


def _phrase(words: tuple[str, ...]) -> list[str]:
    return [*takewhile(lambda word: word not in OF, words)]


def _effect(case: Case, claim: Claim) -> Iterator[Finding]:
    behavior, name = case.behavior, case.function.name
    reported = _report(case, claim)
    is_free = behavior.is_free(loose=True)
    if behavior.gives_nothing:
        what = "returns nothing"
    elif is_free:
        what = f"only reports it (`{reported}`)" if reported else "only gives its arguments back in fixed words"
    else:
        what = f"reports that it happened (`{reported}`)" if reported else ""
    is_strong = (
        claim.weight == 2
        and (is_free or reported or behavior.gives_nothing)
        and not _works_on_rows(case, claim, reported)
    )
    is_strong = is_strong or bool(is_free and reported) or (claim.weight == 1 and behavior.gives_nothing)
    lasting = f" and {_KEEPS}" if claim.is_kept else ""
    message = f"`{name}` promises to {claim.shown}, but it can reach nothing outside of the call{lasting}: it {what}"
    if is_strong and behavior.returned:
        yield Finding("claims-effect", message, _means(case, claim), case.line)
    elif claim.weight == 2 or (claim.weight == 1 and is_free):
        message = f"`{name}` seems to promise to {claim.shown}, for which it has no means"
        yield Finding("doubt-effect", message, _means(case, claim), case.line)


def _works_on_rows(case: Case, claim: Claim, reported: str) -> bool:
    """Check whether what is kept is a list or mapping that comes in and goes out again."""
    kinds = [schema.get("type") for schema in case.function.parameters["properties"].values()]
    return claim.is_kept and not reported and bool({"array", "object"} & set(kinds))


def _report(case: Case, claim: Claim) -> str:
    """Return the word with which the results say that the deed was done."""
    book = lexicon()
    for probe, value in case.behavior.returned:
        if value is True and claim.weight == 2:
            return "True"
        given = {word.lower() for text in texts_of(dict(probe.arguments)) for word in _WORD.findall(text)}
        for text in texts_of(value):
            for match in _WORD.finditer(text.lower()):
                word = match[0]
                if word not in given and _reports(word, claim, book.sections["effect"]["success"]):
                    return word
    return ""


def _reports(word: str, claim: Claim, success: frozenset[str]) -> bool:
    if word in success and claim.weight:
        return True
    is_form = word != claim.verb and word != f"{claim.verb}s" and is_same_verb(word, claim.verb)
    if is_form or not claim.weight:
        return is_form
    book = lexicon()
    return word.endswith(("ed", "ent", "ing")) and any(
        form in lists and "*" in lists[form] for lists in (book.outside, book.kept) for form in _stems(word)
    )


def _stems(word: str) -> tuple[str, ...]:
    return lemma(word), f"{lemma(word)}e"


def _means(case: Case, claim: Claim) -> str:
    existing = next(
        (
            name
            for name in case.draft.snapshot.functions
            if name != case.function.name and claim.verb in name.split("_")
        ),
        "",
    )
    if claim.is_kept:
        means = "take `self` and keep it with `self.memory` or in a granted folder"
    else:
        means = "take `self` and reach out with `self.fetch`, or use a granted folder"
    means += f", or call `{existing}`" if existing else ""
    return f"{means} (the user is asked for the grant); or {_honest_name(case)}"


def _honest_name(case: Case) -> str:
    about = "_".join(word for word in case.promise.name[1:3]) or "text"
    return f'promise only what it returns: `format_{about}`, "Format …"'


def _knowledge(case: Case, claim: Claim) -> Iterator[Finding]:
    behavior, name, tree = case.behavior, case.function.name, case.draft.tree
    assert tree is not None
    is_pasted = behavior.is_free() and not behavior.example_hits
    is_drawn = behavior.is_by_chance or by_hash(tree) or bool(case.measures)
    message = (
        f"`{name}` promises {claim.about or 'a fact'}, which only the world outside knows, and it cannot look there"
    )
    fix = "take `self` and fetch it with `self.fetch` (the user is asked for the host), or take it as a parameter"
    if not behavior.returned or behavior.gives_nothing:
        return
    if (
        (claim.changes and claim.weight == 2)
        or is_drawn
        or (is_pasted and (claim.weight == 2 or claim.changes or _invents(case)))
    ):
        yield Finding("claims-knowledge", message, fix, case.line)
    elif claim.changes and (behavior.is_of(literals(tree)) or behavior.is_free()):
        yield Finding("doubt-knowledge", message, fix, case.line)


def _invents(case: Case) -> bool:
    """Check whether the results have words or numbers that no argument had."""
    return len(case.behavior.invented) >= _FEW or case.behavior.is_constant


def _work(case: Case, claim: Claim) -> Iterator[Finding]:
    behavior, name = case.behavior, case.function.name
    fix = "do that work in the body, ask a model or a service for it with `self.fetch`, or promise only what it does"
    if not behavior.returned or not behavior.is_free(texts_only=True) or behavior.everyday_hits > (not claim.is_read):
        return
    if claim.is_read and behavior.example_hits:
        return
    message = f"`{name}` promises to {claim.shown}, but its result does not depend on what the text says"
    is_fixed = behavior.is_fixed and (len(behavior.invented) >= _FEW or behavior.is_constant)
    is_strong = (
        is_fixed and len(behavior.returned) > _MANY
        if claim.weight == 1
        else not behavior.example_hits or claim.verb in _WHOLE
    )
    if is_strong and has_letters(case):
        yield Finding("claims-work", message, fix, case.line)
    elif claim.weight == 2:
        yield Finding("doubt-work", message, fix, case.line)


def has_letters(case: Case) -> bool:
    """Check whether a text is among its parameters."""
    return any(_is_text_schema(schema) for schema in case.function.parameters["properties"].values())


def _is_text_schema(schema: dict[str, object]) -> bool:
    items = schema.get("items")
    return schema.get("type") == "string" or (isinstance(items, dict) and items.get("type") == "string")


_WHOLE = frozenset(
    {"translate", "summarize", "summarise", "paraphrase", "rewrite", "rephrase", "transcribe", "encrypt"}
)


def _chance(case: Case) -> Iterator[Finding]:
    if not case.draws:
        return
    name, tree = case.function.name, case.draft.tree
    assert tree is not None
    is_judged = lexicon().among((*case.promise.name, *case.promise.sentence), "chance", "judged")
    fix = "compute it from the arguments, or say in name and description that it is by chance"
    by = "chance" if by_chance(tree) else "a hash of its argument"
    message = f"the result of `{name}` is decided by {by}, and its description says nothing of that"
    if is_judged:
        yield Finding("claims-chance", message, fix, case.line)
    elif case.behavior.is_by_chance:
        yield Finding("doubt-chance", message, fix, case.line)


def _length(case: Case) -> Iterator[Finding]:
    names = case.measures
    schemas = [case.function.parameters["properties"].get(name, {}) for name in names]
    if not names or not all(schema.get("type") == "string" for schema in schemas):
        return
    if any(isinstance(value, str) and len(set(value)) <= 3 for _probe, value in case.behavior.returned if value):
        return
    message = f"`{case.function.name}` reads the length of `{names[0]}` only, of which its description says nothing"
    yield Finding(
        "claims-work", message, "compute it from what the text says, or say that it is about the length", case.line
    )
