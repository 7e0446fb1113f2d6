"""The judgment on a claimed effect on the world: what comes back of it, and whether what it is about came in. Pure."""

from collections.abc import Iterator
from itertools import pairwise, takewhile

from ..draft import Finding
from .answers import WORD, texts_of
from .case import Case
from .claims import OF, PromiseClaim, is_about_rows
from .lexicon import is_same_verb, lemma, lexicon

KEEPS = "what it sets is gone when the call ends"


def judge_effect(case: Case, claim: PromiseClaim) -> Iterator[Finding]:
    """Yield what speaks against a claimed effect."""
    if claim.is_on_device and case.behavior.returned and not case.takes_numbers:
        told = f"`{case.function.name}` promises to {claim.shown}, but it can reach no device: it only reckons"
        yield Finding("claims-effect", told, _means(case, claim), case.line)
    else:
        yield from _by_results(case, claim)


def _by_results(case: Case, claim: PromiseClaim) -> Iterator[Finding]:
    """Yield what the results say against a claimed effect."""
    behavior, name = case.behavior, case.function.name
    if case.is_said_to_draw and lexicon().has(claim.verb, "chance", "said"):
        return  # dice are rolled, and nothing outside is
    reported = _report(case, claim)
    if not reported and case.function.returns == "str" and is_about_rows(claim, case.promise, case.function.parameters):
        return  # rows came in, and go out as text: nothing is said to have been done
    is_free = behavior.is_free(loose=not behavior.holds_only_numbers)
    if behavior.gives_nothing:
        report = "returns nothing"
    elif is_free:
        report = f"only reports it (`{reported}`)" if reported else "only gives its arguments back in fixed words"
    else:
        report = f"reports that it happened (`{reported}`)" if reported else ""
    is_strong = behavior.returned and _is_strong(case, claim, reported, is_free=is_free)
    lasting = f" and {KEEPS}" if claim.is_kept else ""
    message = f"`{name}` promises to {claim.shown}, but it can reach nothing outside of the call{lasting}: it {report}"
    is_doubtful = _is_doubtful(case, claim, is_free=is_free) and not _works_on_rows(case, claim, reported)
    is_out_of_hand = claim.weight == 2 and _is_out_of_hand(case, claim)
    is_computed = _is_computed(case, claim, reported, is_free=is_free)
    if (is_strong or is_doubtful) and is_computed and not is_out_of_hand:
        yield words_only(case, claim)
    elif is_strong and not is_computed and not (case.takes_rows and not reported and _is_decided(case)):
        yield Finding("claims-effect", message, _means(case, claim), case.line)
    elif is_strong or is_doubtful:
        message = f"`{name}` seems to promise to {claim.shown}, for which it has no means"
        yield Finding("doubt-effect", message, _means(case, claim), case.line)


def judge_state(case: Case) -> Iterator[Finding]:
    """Yield what speaks against a store that begins and ends with the call, or a change that no argument sees."""
    if case.spares_argument:
        message = f"`{case.function.name}` is to change an argument in place, and changes at most a copy of it"
        yield Finding("claims-effect", message, "change the argument: `rows[:] = …`, or return the new one", case.line)
    if not case.vanishing:
        return
    store, name = case.vanishing[0], case.function.name
    claim, is_lasting = case.promise.claim("effect"), case.promise.says("effect", "lasting")
    is_plain_store = store.kind in ("filled", "empty", "counter")
    message = f"`{name}` changes `{store.name}`, which it makes itself and which ends with the call"
    fix = "take what is changed as a parameter and return it changed, or take `self` and keep it with `self.memory`"
    if store.kind == "copied" or (is_plain_store and (claim or is_lasting or not case.is_plain)):
        yield Finding("claims-effect", message, fix, store.line)
    elif claim and claim.weight == 1 and store.kind == "object" and case.is_computed and case.behavior.is_reckoned:
        yield words_only(case, claim)
    elif claim and claim.weight:
        yield Finding("claims-effect" if claim.is_kept else "doubt-effect", message, fix, store.line)
    elif is_plain_store or (is_lasting and store.kind != "returned"):
        yield Finding("doubt-effect", message, fix, store.line)


def _is_strong(case: Case, claim: PromiseClaim, reported: str, *, is_free: bool) -> bool:
    """Check whether results refute a claimed effect."""
    behavior = case.behavior
    if claim.weight == 2 and (is_free or reported or behavior.gives_nothing):
        return not _works_on_rows(case, claim, reported) or (is_free and bool(reported))
    if (is_free and reported) or (claim.weight == 1 and behavior.gives_nothing):
        return True
    is_bare = claim.weight == 1 and behavior.is_fixed and is_free and not case.takes_rows
    return is_bare and not case.is_plain and not is_text(case)


def _is_computed(case: Case, claim: PromiseClaim, reported: str, *, is_free: bool) -> bool:
    """Check whether an effect is claimed by words alone: what comes in is what it is about, or goes out changed."""
    behavior = case.behavior
    if case.is_said_to_hash and not reported and behavior.returned:
        return True  # what is assigned by a hash is reckoned
    is_reckoned = case.is_computed and behavior.is_reckoned and not (is_free or behavior.says_words or reported)
    return (is_reckoned and (claim.weight < 2 or _is_in_hand(case, claim))) or _is_harmless(case, claim)


def _is_out_of_hand(case: Case, claim: PromiseClaim) -> bool:
    """Check whether what is kept did not come in, or the result is told apart from the deed: `…, and return liters`.

    What takes only numbers reckons with them.
    """
    if claim.is_kept or case.takes_numbers:
        return claim.is_kept and not (case.takes_rows or _takes_any_number(case))
    words = case.promise.sentence
    return any(first == "and" and then in ("return", "returns") for first, then in pairwise(words[2:]))


def _takes_any_number(case: Case) -> bool:
    """Check whether a number comes in, which may be what is kept: a balance."""
    schemas = case.function.parameters["properties"].values()
    return any(schema.get("type") in ("integer", "number") for schema in schemas)


def _is_decided(case: Case) -> bool:
    """Check whether its examples show results that differ, and of which no argument has a part."""
    cases = case.memorization.cases if case.memorization else ()
    pieces = {text for shown in cases for text in texts_of(dict(shown.arguments))}
    results = [text for shown in cases for text in texts_of(shown.value)]
    return len({repr(shown.value) for shown in cases}) > 1 and not any(
        piece in text for text in results for piece in pieces if piece
    )


def _is_doubtful(case: Case, claim: PromiseClaim, *, is_free: bool) -> bool:
    return claim.weight == 2 or (claim.weight == 1 and is_free and bool(not case.is_plain or case.behavior.invented))


def _is_in_hand(case: Case, claim: PromiseClaim) -> bool:
    """Check whether what a claim is about comes in: as rows, or as an argument of that name."""
    named = {lemma(part) for name in case.function.parameters["properties"] for part in name.lower().split("_")}
    return case.takes_rows or bool(named & {lemma(word) for word in claim.about.split()})


def _is_harmless(case: Case, claim: PromiseClaim) -> bool:
    """Check whether rows that came in go out changed, or only a name sounds like more than what is reckoned."""
    behavior = case.behavior
    if case.takes_rows and case.function.returns.partition("[")[0] in ("list", "dict"):
        return behavior.updates_rows and behavior.is_by_content
    is_noun = behavior.gives_numbers and case.takes_numbers and claim.verb not in case.promise.name
    is_light = claim.weight < 2 or is_noun  # `Wind force on a scale` is no deed
    return is_light and behavior.is_by_content and not (behavior.says_words or behavior.hands_on)


def words_only(case: Case, claim: PromiseClaim, *, is_asked: bool = False) -> Finding:
    """Return the doubt about a claim against which only its words speak: its results are computed."""
    message = f"`{case.function.name}` may promise more than it computes from its arguments: to {claim.shown}"
    return Finding("doubt-work" if is_asked else "doubt-words", message, honest_name(case), case.line)


def _works_on_rows(case: Case, claim: PromiseClaim, reported: str) -> bool:
    """Check whether what is kept is a list or mapping that comes in and goes out again."""
    behavior = case.behavior
    is_handed_on = behavior.hands_on or behavior.is_by_content or behavior.updates_rows
    if case.function.returns == "str" and not behavior.tells_rows:
        return False
    return claim.is_kept and not reported and case.takes_rows and is_handed_on


def _report(case: Case, claim: PromiseClaim) -> str:
    """Return the word with which the results say that the deed was done."""
    book = lexicon()
    for probe, value in case.behavior.returned:
        if value is True and claim.weight == 2:
            return "True"
        argument_words = {word.lower() for text in texts_of(dict(probe.arguments)) for word in WORD.findall(text)}
        for text in texts_of(value):
            for match in WORD.finditer(text.lower()):
                word = match[0]
                if word not in argument_words and _reports(word, claim, book.sections["effect"]["success"]):
                    return word
    return ""


def _reports(word: str, claim: PromiseClaim, success: frozenset[str]) -> bool:
    if word in success and claim.weight:
        return True
    is_form = word != claim.verb and word != f"{claim.verb}s" and is_same_verb(word, claim.verb)
    if is_form or not claim.weight:
        return is_form
    book = lexicon()
    return word.endswith(("ed", "ent", "ing")) and any(
        form in lists and "*" in lists[form] for lists in (book.outside, book.lasting) for form in _stems(word)
    )


def _stems(word: str) -> tuple[str, ...]:
    return lemma(word), f"{lemma(word)}e"


def _means(case: Case, claim: PromiseClaim) -> str:
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
    return f"{means} (the user is asked for the grant); or {honest_name(case)}"


def honest_name(case: Case) -> str:
    """Return the advice to promise no more than a text."""
    about = "_".join(word for word in case.promise.name[1:3]) or "text"
    return f'promise only what it returns: `format_{about}`, "Format …"'


def is_text(case: Case) -> bool:
    """Check whether the noun that is promised is a kind of text, which may well be a template."""
    book = lexicon()
    heads = [phrase[-1] for phrase in (_phrase(case.promise.sentence[1:]), case.promise.name) if phrase]
    return book.among(heads, "plain", "texts")


def _phrase(words: tuple[str, ...]) -> list[str]:
    return [*takewhile(lambda word: word not in OF, words)]
