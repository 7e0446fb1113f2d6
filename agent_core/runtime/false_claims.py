"""False claims in a reply, found by comparing it with the record of the turn.

A claim is about a function (made, changed, called) or an effect ("I've emailed your boss"), and is read in English.
"""

import functools
import operator
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from agent_core.base.untrusted import one_line

from .effect_claims import RequestedEffects, admits_nothing, effect_claims, effects_in_name

Reach = Literal["answer", "memory", "world"]
"""What a call can affect: only its answer, the workspace and its memory, or anything."""

_DEED: Final = r"\bI(?:['’]ve| have)? (?:just )?"
_MADE: Final = "made|created|wrote|written|defined"
_CHANGED: Final = "edited|changed|updated|fixed|corrected|rewrote|rewritten|replaced|improved|modified"
_NAME: Final = r"\b[^.!?\n`]{0,40}(?<!with )(?<!using )(?<!from )(?<!via )(?<!on )(?<!in )`(\w+)`"
_CLAIM: Final = re.compile(rf"{_DEED}(?:{_MADE}){_NAME}")
_CHANGE_CLAIM: Final = re.compile(rf"{_DEED}(?:{_CHANGED}){_NAME}")
_CALL_CLAIM: Final = re.compile(rf"{_DEED}(?:called|ran|run|used|executed){_NAME}")
_ANNOUNCED: Final = re.compile(
    rf"\bI (?:now )?(?:make|create|write|define|edit|change|update|fix|correct|rewrite){_NAME}"
)
_VAGUE_CLAIM: Final = re.compile(
    rf"{_DEED}(?:{_MADE}|{_CHANGED}) (?:an?|the|this|that|your) (?:new )?(?:function|tool)\b"
    r"|\b(?:function|tool|it)(?:['’]s| is)(?: now)? (?:ready|available|working|in place)\b"
    r"|\b(?:function|tool) (?:was|is|has been) (?:now |already |successfully )*(?:made|created|added|saved)\b"
    r"|\bit (?:was|has been) (?:already |successfully )*(?:called|executed)\b(?! `)",
    re.IGNORECASE,
)
_STATE_CLAIM: Final = re.compile(
    r"`(\w+)`(?:['’]s| is| was| has been) (?:now |already |successfully )*"
    r"(?:ready|available|working|in place|made|created|added|saved|called|executed)\b"
)
_ANNOUNCED_WORK: Final = re.compile(
    r"\b(?:I(?:['’]ll| will|['’]m going to| am going to| need to| have to)|let['’]s|let me) (?:now |then )?"
    r"(?:make|create|write|define|edit|change|update|fix|correct|rewrite|call|try|do)\b",
    re.IGNORECASE,
)
_CONFESSED: Final = re.compile(
    r"\b(?:rejected|refused|failed|not (?:been )?(?:made|created|added|admitted|changed|saved)"
    r"|(?:could|can|did|does|do)(?:n't|n’t| not) (?:make|create|add|change|pass|work"
    r"|be (?:made|created|added|changed)))\b"
)
_NO_MEANS: Final = re.compile(r"\[(?:claims-effect|claims-knowledge|needs-\w+)\]")


class TurnFacts(Protocol):
    """The facts about a turn with which its replies are compared."""

    @property
    def requested(self) -> RequestedEffects:
        """The effects that the user requested."""

    @property
    def refused(self) -> Mapping[str, str]:
        """The gate's answers by the names of the functions that were rejected and not made since."""

    @property
    def answered(self) -> Set[str]:
        """The functions of which a call did not fail."""

    @property
    def reached(self) -> Set[Reach]:
        """The reaches of the calls that were begun."""

    @property
    def made(self) -> frozenset[str]:
        """The functions that were created or changed."""

    @property
    def is_self_contained(self) -> bool:
        """True if no earlier turn and no other agent can have had the effects that a reply reports."""


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """A claim that the turn's record contradicts. `function` is the rejected one that it is about, if there is one.

    `denial` contradicts it in a sentence without a period. `correction` replaces the text; if it is empty, the text
    stays, since the claim may be about something else.
    """

    denial: str
    function: str = ""
    correction: str = ""


def false_claim(text: str, turn: TurnFacts) -> FalseClaim | None:
    """Return the first false claim of a text: about a function, or of an effect that no call can have had."""
    return function_claim(text, turn) or _effect_claim(text, turn)


def function_claim(text: str, turn: TurnFacts) -> FalseClaim | None:
    """Return the first claim of a text that a function was made which was not; of a rejected function also that it was
    changed or called, or is being made. A text before calls claims no effects, since the calls may have them.
    """
    names = _claimed_functions(text, turn)
    if not names:
        return None
    return _false_claim(f"`{names[0]}` was not made in this turn", names[0], turn, is_certain=bool(turn.refused))


def concealment(text: str, turn: TurnFacts) -> FalseClaim | None:
    """Return the contradiction of a last text that does not mention a rejection: the user, who requested an effect or a
    fact from outside, would believe that it worked.
    """
    is_nothing_done = turn.is_self_contained and not turn.made and not turn.reached and not turn.answered
    if not is_nothing_done or not admits_nothing(text) or _ANNOUNCED_WORK.search(text):
        return None
    names = [*(turn.refused if turn.requested else _without_means(turn))]
    return FalseClaim(f"`{names[-1]}` was not made in this turn, and nothing was done or looked up") if names else None


def announced_work(text: str, turn: TurnFacts) -> str:
    """Return a warning if a turn's last text announces more work on a function that was rejected, or an empty text."""
    names = [*turn.refused] if _ANNOUNCED_WORK.search(text) else []
    return f"`{names[-1]}` was not made in this turn, and the turn has ended." if names else ""


def _effect_claim(text: str, turn: TurnFacts) -> FalseClaim | None:
    """Return a claim of an effect that no call of the turn can have had, a requested one if there is any."""
    requested = functools.reduce(operator.or_, map(effects_in_name, _without_means(turn)), turn.requested)
    is_for_text = turn.requested.is_for_text and not requested
    if "world" in turn.reached or is_for_text or not (turn.refused or turn.is_self_contained):
        return None
    has_kept = bool(turn.made) or "memory" in turn.reached
    has_done = has_kept or bool(turn.reached)
    claims = effect_claims(text, requested)
    false = [claim for claim in claims if not (has_done if claim.is_bare else claim.is_kept and has_kept)]
    if not false:
        return None
    claim = min(false, key=lambda claim: (not claim.is_requested, claim.is_bare))
    denial = f"Nothing that was called in this turn could have done this: “{one_line(claim.sentence, 80)}”"
    function = next(reversed([*turn.refused]), "")
    return _false_claim(denial, function, turn, is_certain=claim.is_requested and turn.is_self_contained)


def _false_claim(denial: str, function: str, turn: TurnFacts, *, is_certain: bool) -> FalseClaim:
    """Return a false claim; if it is certain, with a correction that adds the gate's first finding."""
    _, _, findings = turn.refused.get(function, "").partition("\n- ")
    finding = findings.partition("\n")[0].strip()
    correction = f"{denial}. In the way: {finding}" if finding else f"{denial}."
    return FalseClaim(denial, function, correction if is_certain else "")


def _claimed_functions(text: str, turn: TurnFacts) -> list[str]:
    """Return the functions that a text says were made and were not. A text that also admits the failure claims none."""
    if turn.refused and _CONFESSED.search(text):
        return []
    claimed = _CLAIM.findall(text)
    claimed += [name for name in _CALL_CLAIM.findall(text) if name in turn.refused and name not in turn.answered]
    about_rejected = (name for form in (_CHANGE_CLAIM, _STATE_CLAIM, _ANNOUNCED) for name in form.findall(text))
    claimed += [name for name in about_rejected if name in turn.refused]
    missing = [name for name in claimed if name not in turn.made]
    # A function that the text shows was written, too.
    names = [name for name in missing if not re.search(rf"\b(?:def|class|import) {name}\b", text)]
    is_vague = not turn.made and _VAGUE_CLAIM.search(text) is not None
    return names or ([*turn.refused] if is_vague else [])


def _without_means(turn: TurnFacts) -> list[str]:
    """Return the functions that were rejected because they cannot do what they promise, or lack a grant."""
    return [name for name, answer in turn.refused.items() if _NO_MEANS.search(answer)]
