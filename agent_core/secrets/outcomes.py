"""An outcome without secrets: its value, what it printed, its error with every frame."""

from dataclasses import replace
from typing import assert_never

from sandbox import Failure, Frame, Killed, Outcome, Raised, Refused, Returned, TimedOut

from .masks import Masks


def masked(outcome: Outcome, masks: Masks) -> Outcome:
    """The outcome without any of the secrets, in whatever of it a worker claims."""
    if not masks:
        return outcome
    said = masks.clean_said
    match outcome:
        case Returned():
            value = masks.clean_value(outcome.value)
            return replace(outcome, value=value, shown=said(outcome.shown), output=said(outcome.output))
        case Raised():
            return replace(outcome, failure=_failure(outcome.failure, masks), output=said(outcome.output))
        case TimedOut():
            return replace(outcome, output=said(outcome.output))
        case Killed():
            return replace(outcome, reason=said(outcome.reason), output=said(outcome.output))
        case Refused():
            return replace(outcome, reason=said(outcome.reason))
        case _:
            assert_never(outcome)


def _failure(failure: Failure, masks: Masks) -> Failure:
    frames = tuple(_frame(frame, masks) for frame in failure.frames)
    cause = failure.cause and _failure(failure.cause, masks)
    said = masks.clean_said
    return replace(failure, type=said(failure.type), message=said(failure.message), frames=frames, cause=cause)


def _frame(frame: Frame, masks: Masks) -> Frame:
    said = masks.clean_said
    names = tuple((said(name), said(text)) for name, text in frame.locals)
    path, function, source = map(said, (frame.path, frame.function, frame.source))
    return replace(frame, path=path, function=function, source=source, locals=names)
