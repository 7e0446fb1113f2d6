"""False claims about functions in a text for the user, found by comparing it with the record of the turn."""

import re
from typing import Final

from .turn import Turn

_DEED: Final = r"\bI(?:'ve| have)? (?:just )?"
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


def false_claims(text: str, turn: Turn) -> list[str]:
    """Return the functions that a text says were made and were not; of those that were rejected also what it says was
    changed, called, or is being made now, by a text that calls nothing. One that also says that it did not succeed is
    left as it is.
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


def not_made(name: str) -> str:
    """Return the sentence that contradicts a claim, without its period."""
    return f"`{name}` was not made in this turn"


def announced_work(text: str, turn: Turn) -> str:
    """Return a warning if a turn's last text announces more work on a function that was rejected, or an empty text."""
    names = [*turn.refused] if _PROMISED.search(text) else []
    return f"{not_made(names[-1])}, and the turn has ended." if names else ""


def contradiction(text: str, turn: Turn) -> str:
    """Return what the user is told in place of a text that claims what was rejected: that it was not made, and what is
    in the way, if that is known. Empty if the text claims nothing of the kind.
    """
    claimed = false_claims(text, turn) if turn.refused else []
    if not claimed:
        return ""
    _, _, findings = turn.refused.get(claimed[0], "").partition("\n- ")
    in_the_way = findings.partition("\n")[0].strip()
    return f"{not_made(claimed[0])}. In the way: {in_the_way}" if in_the_way else f"{not_made(claimed[0])}."
