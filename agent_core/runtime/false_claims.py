"""False claims in a text for the user, found by comparing it with the record of the turn.

A claim is of a function (made, changed, called) or of an effect ("I've emailed your boss"), read in English.
"""

import functools
import operator
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from agent_core.base.untrusted import one_line

from .effect_claims import AskedDeeds, EffectClaim, admits_nothing, deeds_in_name, effect_claims

Reach = Literal["answer", "memory", "world"]
"""How far the effects of a call can go: no farther than its answer, to what is kept here, or anywhere."""

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
_PROMISED: Final = re.compile(
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
    """What a turn knows of what happened in it."""

    @property
    def asked(self) -> AskedDeeds:
        """The effects that the user asked for."""

    @property
    def refused(self) -> Mapping[str, str]:
        """The answers of the gate, by the names of the functions that were rejected and not made since."""

    @property
    def answered(self) -> Set[str]:
        """The functions of which a call did not fail."""

    @property
    def reached(self) -> Set[Reach]:
        """How far the calls that were made could reach."""

    @property
    def made(self) -> frozenset[str]:
        """The functions that were created or changed."""

    @property
    def is_whole(self) -> bool:
        """True if no work of another turn or agent is part of it."""


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """A claim that the turn's record contradicts: the sentence that says so, without its period, and the function that
    was not made, if it is known.

    If it `is_proven`, the text that makes it is not shown.
    """

    denial: str
    name: str = ""
    is_proven: bool = True


def false_claim(text: str, turn: TurnFacts, *, is_last: bool = True) -> FalseClaim | None:
    """Return the first false claim of a text: of a function that was not made (of one that was rejected, also that it
    was changed or called, or is being made by a text that calls nothing), or of an effect that no call can have had.

    A text that is not the last is followed by calls, which may have the effect that it claims.
    """
    if names := _claimed_functions(text, turn):
        return FalseClaim(f"`{names[0]}` was not made in this turn", names[0], bool(turn.refused))
    if not is_last:
        return None
    asked = functools.reduce(operator.or_, map(deeds_in_name, _without_means(turn)), turn.asked)
    if claim := _claimed_effect(text, turn, asked):
        denial = f"Nothing that was called in this turn could have done this: “{one_line(claim.sentence, 80)}”"
        return FalseClaim(denial, next(reversed([*turn.refused]), ""), claim.is_asked and turn.is_whole)
    return None


def concealment(text: str, turn: TurnFacts) -> FalseClaim | None:
    """Return what the last text of a turn is silent about: that a function which was to have an effect, or to know
    something from outside, was rejected, and nothing was done. However it is worded, who asked believes that it was.
    """
    is_nothing_done = turn.is_whole and not turn.made and not turn.reached and not turn.answered
    if not is_nothing_done or not admits_nothing(text) or _PROMISED.search(text):
        return None
    name = next(reversed([*(turn.refused if turn.asked else _without_means(turn))]), "")
    denial = f"`{name}` was not made in this turn, and nothing was done or looked up"
    return FalseClaim(denial, name, is_proven=False) if name else None


def announced_work(text: str, turn: TurnFacts) -> str:
    """Return a warning if a turn's last text announces more work on a function that was rejected, or an empty text."""
    names = [*turn.refused] if _PROMISED.search(text) else []
    return f"`{names[-1]}` was not made in this turn, and the turn has ended." if names else ""


def contradiction(text: str, turn: TurnFacts, *, is_last: bool = True) -> str:
    """Return what the user is told in place of a text that claims what was rejected, or an effect that they asked for
    and that nothing can have had: that it was not done, and what is in the way, if that is known. Empty if the text
    claims nothing of the kind.
    """
    claim = false_claim(text, turn, is_last=is_last)
    if claim is None or not claim.is_proven:
        return ""
    _, _, findings = turn.refused.get(claim.name, "").partition("\n- ")
    in_the_way = findings.partition("\n")[0].strip()
    return f"{claim.denial}. In the way: {in_the_way}" if in_the_way else f"{claim.denial}."


def _claimed_functions(text: str, turn: TurnFacts) -> list[str]:
    """Return the functions that a text says were made and were not. One that also says that it did not succeed is left
    as it is.
    """
    if turn.refused and _CONFESSED.search(text):
        return []
    created_names = turn.made
    made = _CLAIM.findall(text)
    made += [name for name in _CALL_CLAIM.findall(text) if name in turn.refused and name not in turn.answered]
    said_of_rejected = (name for said in (_CHANGE_CLAIM, _STATE_CLAIM, _ANNOUNCED) for name in said.findall(text))
    made += [name for name in said_of_rejected if name in turn.refused]
    claims = [name for name in made if name not in created_names]
    # What is only shown was written, too.
    named = [name for name in claims if not re.search(rf"\b(?:def|class|import) {name}\b", text)]
    is_vague = not created_names and _VAGUE_CLAIM.search(text) is not None
    return named or ([*turn.refused] if is_vague else [])


def _claimed_effect(text: str, turn: TurnFacts, asked: AskedDeeds) -> EffectClaim | None:
    """Return a claim of an effect that no call of the turn can have had: of one that was asked for, if there is one."""
    is_text = turn.asked.is_for_text and not asked
    if "world" in turn.reached or is_text or not (turn.refused or turn.is_whole):
        return None
    has_kept = bool(turn.made) or "memory" in turn.reached
    has_done = has_kept or bool(turn.reached)
    claims = effect_claims(text, asked)
    false = [claim for claim in claims if not (has_done if claim.is_bare else claim.is_kept and has_kept)]
    return min(false, key=lambda claim: (not claim.is_asked, claim.is_bare), default=None)


def _without_means(turn: TurnFacts) -> list[str]:
    """Return the functions that were rejected for want of means: they cannot do what they promise, or lack a grant."""
    return [name for name, why in turn.refused.items() if _NO_MEANS.search(why)]
