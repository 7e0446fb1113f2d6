"""The message that the model reads if a function is denied a grant: what is missing, who decided, what to do next."""

from collections.abc import Mapping
from types import MappingProxyType

from agent_core.base.untrusted import one_line

from .approval import By, Decision, Question

LONGEST_WORD = 400
_SAID: Mapping[By, str] = MappingProxyType(
    {
        "human": "The user was asked and said no.",
        "earlier": "The user has said no to this in this turn, and was not asked again.",
        "often": "The user has said no several times in this turn, and is not asked again before the next one.",
        "policy": "Nobody can be asked here.",
        "never": "",
        "unavailable": "",
        "ended": "The turn ended before the user answered.",
    }
)
_NO_MORE = (
    "Do not try the same again in this turn: nobody would be asked. Do it in a way that needs less, or tell the user"
    " what you need it for."
)
_AS_THEY_SAY = "Change it as they say before you try again: for the same code they are not asked again in this turn."


def denial(question: Question, decision: Decision) -> str:
    """Return the refusal message for a question."""
    lacks = "; ".join(question.missing.sentences())
    new = " in this new version" if question.is_again else ""
    message = (
        f"`{question.function}` may not{new}: {lacks}." if lacks else f"`{question.function}` needs the user's yes."
    )
    return "\n".join([f"{message} {_SAID[decision.by]}".rstrip(), *_next(question, decision)])


def _next(question: Question, decision: Decision) -> list[str]:
    word = one_line(decision.word, LONGEST_WORD)
    match decision.by:
        case "policy":
            return [f"A human grants it with: {question.command}"] if question.missing else []
        case "never" | "unavailable":
            return [word]
        case _:
            return [f"They say: {word}", _AS_THEY_SAY] if word else [_NO_MORE]
