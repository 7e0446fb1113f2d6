"""The judgment on a promise: what is claimed, what the code has to do it with, and what varied calls gave back.

Strong evidence is a finding that refuses; weak evidence is a finding whose code begins with `doubt-`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..draft import Finding
from ..rules import CHALLENGED
from .case import Case, Suspicion
from .claims import PromiseClaim
from .code import admission, by_chance, by_hash, by_letters, by_place, calls_hash, literals
from .coverage import judge_coverage
from .effects import KEEPS, honest_name, is_text, judge_effect, judge_state, words_only
from .known_tasks import judge_known_tasks
from .lexicon import lexicon
from .memorization import INDEPENDENT, Dependence, Memorization, Weight
from .reach import FreshCall, Reach
from .relations import judge_relations

_FIX = "compute the result from the arguments; a table must cover what the description promises"
_ASK = "add an example with arguments that stand nowhere in the code"


@dataclass(frozen=True, slots=True)
class PromiseJudgment:
    """What refuses, the doubts, and calls that show why; a doubt is not told where something refuses."""

    findings: tuple[Finding, ...]
    doubts: tuple[Finding, ...] = ()
    calls: tuple[FreshCall, ...] = ()


def judge(case: Case) -> PromiseJudgment:
    """Return the judgment on a function whose behavior is known."""
    suspicions = [*_suspicions(case)]
    findings = [suspicion.finding for suspicion in suspicions]
    if case.behavior.is_cut_short or case.shows_more:
        is_told = _is_drawn_judgment(case)
        findings = [
            finding if is_told and finding.code == "claims-chance" else _weakened(finding) for finding in findings
        ]
    strong = [finding for finding in findings if not finding.code.startswith("doubt-")]
    if strong:
        return PromiseJudgment(tuple(strong[:2]))
    by_code: dict[str, Finding] = {}
    for finding in findings:
        by_code.setdefault(finding.code, finding)
    doubts = sorted(by_code.values(), key=lambda finding: finding.code not in CHALLENGED)
    calls = next((suspicion.calls for suspicion in suspicions if suspicion.calls), ())
    return PromiseJudgment((), tuple(doubts[:2]), calls)


def _weakened(finding: Finding) -> Finding:
    """Return a doubt in place of a refusal that rests on calls that are not all there is."""
    weak = _WEAK.get(finding.code)
    return replace(finding, code=weak) if weak else finding


_WEAK = {
    "hard-coded": "doubt-examples",
    "claims-effect": "doubt-effect",
    "claims-knowledge": "doubt-knowledge",
    "claims-work": "doubt-work",
    "claims-chance": "doubt-chance",
}


def _suspicions(case: Case) -> Iterator[Suspicion]:
    evidence = _memorized(case)
    if evidence:
        yield evidence
    elif case.is_fitted:
        message = "has an answer of its own where its parameters come to one number, of which nothing tells"
        yield Suspicion(_doubt(case, f"`{case.function.name}` {message}"))
    if not case.has_means:
        yield from map(Suspicion, _claims(case))
        yield from map(Suspicion, judge_state(case))
        yield from judge_relations(case)
        yield from judge_coverage(case)
        yield from judge_known_tasks(case)


def _memorized(case: Case) -> Suspicion | None:
    """Return the evidence that a function answers its own examples only."""
    name = case.function.name
    if case.is_formula:
        message = f"`{name}` is one line of arithmetic that fits its examples: it cannot give what it promises"
        return _strong(case, message) if case.is_named_formula else Suspicion(_doubt(case, message))
    if case.behavior.repeats:
        message = (
            f"`{name}` gives a text of the same length the answer of its example, with words that only that one has"
        )
        return _strong(case, message)
    memorization = case.memorization
    if memorization is None:
        return None
    judged = memorization.judge(case.behavior.others()) if memorization.is_suspect else INDEPENDENT
    reached, calls = (judged, ()) if judged.weight == "strong" else _reached(case, memorization)
    judged = reached if reached.weight else judged
    if judged.weight == "strong":
        return _strong(case, f"`{name}` answers its own examples and no other call: {judged.reason}")
    if judged.weight == "weak":
        message = f"`{name}` may only answer its own examples: {judged.reason}"
        return Suspicion(_doubt(case, message), calls)
    return None


def _doubt(case: Case, message: str) -> Finding:
    return Finding("doubt-examples", message, _ASK, case.line)


def _strong(case: Case, message: str) -> Suspicion:
    return Suspicion(Finding("hard-coded", message, _FIX, case.line))


def _reached(case: Case, memorization: Memorization) -> tuple[Dependence, tuple[FreshCall, ...]]:
    """Return how far its answers reach beyond its examples, and the calls that they do not reach."""
    reach = Reach(memorization.cases, case.behavior.fresh, literals(tree) if (tree := case.draft.tree) else frozenset())
    places = [*range(len(memorization.cases))]
    if len(places) > 1 and not memorization.is_closed():
        if reach.always_raises() and memorization.is_tied(places):
            return Dependence("strong", "it refuses everything else"), ()
        is_tied = memorization.is_tied(reach.special) and not memorization.is_test(reach.special)
        if reach.is_nowhere_else() and (is_tied or not case.takes_rows):  # else no row has the key of another call
            weight: Weight = "strong" if is_tied else "weak"
            return Dependence(weight, f"all {len(case.behavior.fresh)} other calls got nothing"), tuple(
                reach.similar_calls
            )
    if silent := reach.silent_calls():
        return Dependence("weak", "most other arguments of the same kind get one answer, which no example shows"), (
            *silent,
        )
    if not memorization.is_told(least=1) and (ignored := reach.ignored()):
        return Dependence("weak", f"`{ignored[0].parameter}` matters only if it is that of an example"), (*ignored,)
    if nothing := reach.says_whatever(frozenset(case.promise.sentence)):
        return Dependence("weak", "it is to take whatever there is, and gives nothing for some of it"), (*nothing,)
    return INDEPENDENT, ()


def _claims(case: Case) -> Iterator[Finding]:
    text, line = admission(case.draft)
    if line:
        message = f"`{text[:80]}` says that the work is not done, and `{case.function.name}` has no means to do it"
        yield Finding("claims-work", message, "do the work, or promise only what the body does", line)
    for kind, check in (("effect", judge_effect), ("knowledge", _knowledge), ("work", _work)):
        claim = case.promise.claim(kind)  # type: ignore[arg-type] # one of three
        if claim is not None:
            yield from check(case, claim)
    if case.algorithm:
        message = f"`{case.function.name}` names {case.algorithm}, and its code uses no library that does it"
        yield Finding(
            "doubt-work", message, "do that work with `hashlib` or a package, or promise what it does", case.line
        )
    if case.few_words:
        shown = ", ".join(sorted(case.few_words)[:_FEW])
        message = f"`{case.function.name}` judges a text by few words of its code ({shown}), of which nothing tells"
        yield Finding("doubt-work", message, "tell the words in the description, or ask a model for it", case.line)
    yield from _chance(case)
    yield from _length(case)
    yield from _nothing_done(case)
    if not case.promise.claim("effect"):
        yield from _handed_on(case)


def _handed_on(case: Case) -> Iterator[Finding]:
    """Judge a function that only puts its arguments into fixed words, where its verb promises more than words."""
    behavior, name = case.behavior, case.function.name
    is_found = case.is_asked and len(behavior.invented) >= _FEW and not behavior.example_hits  # a number may limit it
    if (
        not (behavior.is_fixed or is_found)
        or not behavior.is_free(texts_only=True)
        or not case.takes_text()
        or behavior.gives_nothing
    ):
        return
    if (behavior.chooses_words and not _takes_words(case)) or behavior.knows_members:
        return
    is_wording = behavior.hands_on and (case.is_worded or is_text(case)) and len(behavior.invented) < _WORDY
    if len(behavior.returned) < _FEW or is_wording:
        return
    if not behavior.says_words and (behavior.hands_on or behavior.is_by_content):
        return  # nothing is made up: it gives parts of what came in, or reckons
    message = f"`{name}` gives the same made-up words for every argument: it {_HANDS_ON[behavior.hands_on]}"
    if behavior.is_constant or _is_hollow(case):
        yield Finding(
            "claims-work", message, "compute the answer from the arguments, or promise only a text", case.line
        )
    elif not case.is_plain or len(behavior.invented) >= _FEW:
        yield Finding("doubt-template", message, honest_name(case), case.line)


def _takes_words(case: Case) -> bool:
    """Check whether an argument is text in words, and not only the text of a date, a time or the like."""
    schemas = case.function.parameters["properties"].values()
    return any(schema.get("type") != "string" or "format" not in schema for schema in schemas)


def _is_hollow(case: Case) -> bool:
    """Check whether fixed words are no answer to what its verb promises."""
    behavior = case.behavior
    if not behavior.hands_on:
        return False
    if case.is_asked or case.promise.claim("work"):
        return len(behavior.invented) > 1
    if case.promise.sentence[:1] and lexicon().has(case.promise.sentence[0], "plain", "verbs"):
        return False
    return behavior.is_free() and not case.is_plain and case.promise.sentence[:1] != () and not case.is_phrase


_FEW, _MANY = 3, 20
_WORDY = 10  # words that stand in every result, and in no argument
_HANDS_ON = {True: "only puts them into fixed words", False: "never uses them"}


def _knowledge(case: Case, claim: PromiseClaim) -> Iterator[Finding]:
    behavior, name, tree = case.behavior, case.function.name, case.draft.tree
    assert tree is not None
    is_by_numbers = not case.takes_text() and case.is_computed  # of few steps: nearby numbers give the same
    is_pasted = behavior.is_free() and not behavior.example_hits and not is_by_numbers
    is_drawn = behavior.is_by_chance or by_hash(tree) or by_letters(tree) or bool(case.measures)
    message = (
        f"`{name}` promises {claim.about or 'a fact'}, which only the world outside knows, and it cannot look there"
    )
    fix = "take `self` and fetch it with `self.fetch` (the user is asked for the host), or take it as a parameter"
    is_table = case.is_told and not is_drawn and not (claim.changes and claim.weight == 2)  # no table knows today
    if not behavior.returned or behavior.gives_nothing or is_table:
        return
    is_read = not case.takes_text() or not behavior.is_free(texts_only=True)
    if (
        case.is_computed
        and behavior.is_reckoned
        and is_read
        and not (is_pasted or is_drawn or behavior.is_of(literals(tree)))
    ):
        is_sure = claim.weight == 2
        yield Finding("doubt-knowledge", message, fix, case.line) if is_sure else words_only(case, claim)
    elif (
        (claim.changes and claim.weight == 2)
        or is_drawn
        or (is_pasted and (claim.weight == 2 or claim.changes or _invents(case)))
    ):
        yield Finding("claims-knowledge", message, fix, case.line)
    elif claim.changes and (behavior.is_of(literals(tree)) or behavior.is_free() or behavior.gives_truths):
        yield Finding("doubt-knowledge", message, fix, case.line)


def _invents(case: Case) -> bool:
    """Check whether the results have words or numbers that no argument had."""
    return len(case.behavior.invented) >= _FEW or case.behavior.is_constant


def _work(case: Case, claim: PromiseClaim) -> Iterator[Finding]:
    behavior, name = case.behavior, case.function.name
    if claim.verb in _CHANGED and (behavior.gives_back or (claim.verb == "translate" and behavior.keeps_words)):
        message = f"`{name}` promises to {claim.shown}, but the text is in its result as it came"
        code = "doubt-work" if case.hands_on_others else "claims-work"
        yield Finding(code, message, "do that work in the body, or promise only what it does", case.line)
        return
    if claim.is_on_media and behavior.returned and not case.takes_rows and case.takes_text():
        message = f"`{name}` promises to {claim.verb} {claim.about}, but it only has a name or an address of it"
        fix = (
            "take `self` and work on the file in a granted folder (the user is asked), or promise only what it returns"
        )
        yield Finding("claims-work", message, fix, case.line)
        return
    fix = "do that work in the body, ask a model or a service for it with `self.fetch`, or promise only what it does"
    is_template = claim.weight > 1 and behavior.is_fixed and len(behavior.invented) >= _FEW
    most_hits = _MANY if is_template else 0 if claim.is_read else _FEW
    if not behavior.returned or not behavior.is_free(texts_only=True) or behavior.everyday_hits > most_hits:
        return
    if claim.is_read and behavior.example_hits:
        return
    if case.is_computed and (case.takes_records or not case.takes_text(alone=True)):
        yield words_only(case, claim, is_asked=is_template or case.is_about_media or claim.is_ordering)
        return
    message = f"`{name}` promises to {claim.shown}, but its result does not depend on what the text says"
    is_fixed = behavior.is_fixed and (len(behavior.invented) >= _FEW or behavior.is_constant)
    is_strong = (
        is_fixed and len(behavior.returned) > _MANY
        if claim.weight == 1
        else not behavior.example_hits or claim.verb in _WHOLE
    )
    is_reordered = claim.verb in _CHANGED and not (behavior.keeps_words or behavior.is_fixed)  # as by a rail fence
    if is_strong and case.takes_text() and not is_reordered:
        yield Finding("claims-work", message, fix, case.line)
    elif claim.weight == 2 or (case.takes_text() and not behavior.example_hits):
        yield Finding("doubt-work", message, fix, case.line)


_CHANGED = frozenset({"translate", "encrypt", "encipher", "hash", "paraphrase", "rephrase", "compress"})
_WHOLE = frozenset(
    {"translate", "summarize", "summarise", "paraphrase", "rewrite", "rephrase", "transcribe", "encrypt"}
)


def _chance(case: Case) -> Iterator[Finding]:
    if case.picks:
        message = f"`{case.function.name}` picks one of the texts in its code by a number that it reckons"
        yield Finding("doubt-examples", message, _ASK, case.line)
    if not case.draws:
        return
    name, tree = case.function.name, case.draft.tree
    assert tree is not None
    is_judged = case.is_judged or bool(case.promise.claims)
    rows = next((key for key, schema in case.function.parameters["properties"].items() if "items" in schema), "")
    honest = f': "Pick one of the {rows} at random"' if rows and by_chance(tree) and case.is_best else ""
    fix = f"compute it from the arguments, or say in name and description that it is by chance{honest}"
    by = "chance" if by_chance(tree) else "a hash of its argument"
    message = f"the result of `{name}` is decided by {by}, and its description says nothing of that"
    is_label = _is_label(case)
    is_seeded = by_chance(tree) and case.takes_text() and not case.behavior.is_by_chance  # by what a text happens to be
    is_excused = bool(case.chance_words and not case.promise.claims)  # of what is judged by it
    if (is_judged or is_seeded or (is_label and not by_place(tree))) and not is_excused:
        yield Finding("claims-chance", message, fix, case.line)
    elif is_label or is_excused or case.behavior.is_by_chance or case.gives_digest:
        yield Finding("doubt-chance", message, fix, case.line)


def _is_drawn_judgment(case: Case) -> bool:
    """Check whether words and code alone tell that a judgment is drawn: nobody could be asked what it must be."""
    tree = case.draft.tree
    return case.is_judged and tree is not None and (by_chance(tree) or calls_hash(tree))


def _is_label(case: Case) -> bool:
    """Check whether a hash or length chooses among few answers for a text, where letters are no matter of it."""
    tree = case.draft.tree
    if tree is None or by_chance(tree) or case.promise.says("length") or not case.takes_text():
        return False
    behavior = case.behavior
    return len(behavior.returned) > _FEW and (
        not behavior.hands_on or (behavior.is_free(texts_only=True) and behavior.chooses_words)
    )


def _nothing_done(case: Case) -> Iterator[Finding]:
    """Judge a function that gives back an argument, or keeps something where it cannot last."""
    behavior, name = case.behavior, case.function.name
    if behavior.is_echo:
        message = (
            f"`{name}` returned one of its arguments as it came, in all {len(behavior.returned)} calls that were tried"
        )
        yield Finding("claims-work", message, "return what was computed from it", case.line)
    elif case.is_kept_in_vain and behavior.is_free(loose=True) and behavior.returned:
        message = f"`{name}` changes a list or mapping of its module, which is new at every call: {KEEPS}"
        fix = "take `self` and keep it with `self.memory` or in a granted folder (the user is asked for the grant)"
        yield Finding("claims-effect", message, fix, case.line)


def _length(case: Case) -> Iterator[Finding]:
    if case.names_entity and case.behavior.is_by_length and not case.promise.says("length"):
        message = f"`{case.function.name}` reckons with the length of a name, which says nothing of what is named"
        fix = "take `self` and fetch it with `self.fetch` (the user is asked for the host), or take it as a parameter"
        yield Finding("claims-knowledge", message, fix, case.line)
        return
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
