"""False claims in a text for the user, found by comparing it with the record of the turn.

A claim is of a function (made, changed, called) or of an effect ("I've emailed your boss"), read in English.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from agent_core.base.untrusted import one_line

from .effect_claims import admits_nothing, asks_effect, effect_claims

Reach = Literal["answer", "memory", "world"]
"""How far the effects of a call can go: no farther than its answer, to what is kept here, or anywhere."""

_DEED: Final = r"\bI(?:['’]ve| have)? (?:just )?"
_MADE: Final = "made|created|wrote|written|defined"
_CHANGED: Final = "edited|changed|updated|fixed|corrected|rewrote|rewritten|replaced|improved|modified"
_NAME: Final = r"\b[^.!?\n`]{0,40}`(\w+)`"
_CLAIM: Final = re.compile(rf"{_DEED}(?:{_MADE}){_NAME}")
_CHANGE_CLAIM: Final = re.compile(rf"{_DEED}(?:{_CHANGED}){_NAME}")
_CALL_CLAIM: Final = re.compile(rf"{_DEED}(?:called|ran|run|used|executed){_NAME}")
_ANNOUNCED: Final = re.compile(
    rf"\bI (?:now )?(?:make|create|write|define|edit|change|update|fix|correct|rewrite){_NAME}"
)
_VAGUE_CLAIM: Final = re.compile(
    rf"{_DEED}(?:{_MADE}|{_CHANGED}) (?:an?|the|this|that|your) (?:new )?(?:function|tool)\b"
    r"|(?:\b(?:function|tool|it)|`\w+`)(?:['’]s| is)(?: now)? (?:ready|available|working|in place)\b",
    re.IGNORECASE,
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
_NO_MEANS: Final = re.compile(r"\[claims-(?:effect|knowledge)\]")


class TurnFacts(Protocol):
    """What a turn knows of what happened in it."""

    @property
    def request(self) -> str:
        """The user's message."""

    @property
    def refused(self) -> Mapping[str, str]:
        """The answers of the gate, by the names of the functions that were rejected and not made since."""

    @property
    def answered(self) -> Set[str]:
        """The functions of which a call did not fail."""

    @property
    def reached(self) -> Set[Reach]:
        """How far the calls that did not fail could reach."""

    @property
    def made(self) -> frozenset[str]:
        """The functions that were created or changed."""

    @property
    def is_whole(self) -> bool:
        """True if no work of another turn or agent is part of it."""

    @property
    def is_suspect(self) -> bool:
        """True if its texts are judged before they are shown."""


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """A claim that the turn's record contradicts: the sentence that says so, without its period, and the function that
    was not made, if it is known.
    """

    denial: str
    name: str = ""


def false_claim(text: str, turn: TurnFacts, *, is_last: bool = True) -> FalseClaim | None:
    """Return the first false claim of a text: of a function that was not made (of one that was rejected, also that it
    was changed or called, or is being made by a text that calls nothing), or of an effect that no call can have had.

    The last text of a turn may be one by its silence, too.
    """
    names = _claimed_functions(text, turn)
    if names:
        return FalseClaim(f"`{names[0]}` was not made in this turn", names[0])
    if sentence := _claimed_effect(text, turn):
        denial = f"Nothing that was called in this turn could have done this: “{one_line(sentence, 80)}”"
        return FalseClaim(denial, next(reversed([*turn.refused]), ""))
    if is_last and (name := _concealed_rejection(text, turn)):
        return FalseClaim(f"`{name}` was not made in this turn, and nothing was done or looked up", name)
    return None


def announced_work(text: str, turn: TurnFacts) -> str:
    """Return a warning if a turn's last text announces more work on a function that was rejected, or an empty text."""
    names = [*turn.refused] if _PROMISED.search(text) else []
    return f"`{names[-1]}` was not made in this turn, and the turn has ended." if names else ""


def contradiction(text: str, turn: TurnFacts, *, is_last: bool = True) -> str:
    """Return what the user is told in place of a text that claims what was rejected, or an effect that they asked for
    and that nothing can have had: that it was not done, and what is in the way, if that is known. Empty if the text
    claims nothing of the kind.
    """
    claim = false_claim(text, turn, is_last=is_last) if turn.is_suspect else None
    if claim is None:
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
    made += [name for said in (_CHANGE_CLAIM, _ANNOUNCED) for name in said.findall(text) if name in turn.refused]
    claims = [name for name in made if name not in created_names]
    named = [name for name in claims if f"def {name}(" not in text]  # what is only shown was written, too
    is_vague = not created_names and _VAGUE_CLAIM.search(text) is not None
    return named or ([*turn.refused] if is_vague else [])


def _claimed_effect(text: str, turn: TurnFacts) -> str:
    """Return a sentence of a text that claims an effect which no call of the turn can have had, or nothing.

    After a rejection, or where an effect was asked for, any wording counts (`Done!`); otherwise only what tells of a
    deed of this moment.
    """
    if "world" in turn.reached or not (turn.refused or turn.is_whole):
        return ""
    has_kept = bool(turn.made) or "memory" in turn.reached
    has_done = has_kept or bool(turn.reached)
    claims = effect_claims(text, is_strict=not turn.is_suspect)
    false = [claim for claim in claims if not (has_done if claim.is_bare else claim.is_kept and has_kept)]
    return min(false, key=lambda claim: claim.is_bare).sentence if false else ""


def _concealed_rejection(text: str, turn: TurnFacts) -> str:
    """Return the function that was to have an effect or to know something from outside, if it was rejected, nothing was
    done, and a text is silent about that: however it is worded, who asked for it believes that it happened.
    """
    is_nothing_done = turn.refused and not turn.made and not turn.reached
    if not is_nothing_done or not text.strip() or not admits_nothing(text) or _PROMISED.search(text):
        return ""
    names = [name for name, why in turn.refused.items() if _NO_MEANS.search(why) or asks_effect(turn.request)]
    return names[-1] if names else ""
