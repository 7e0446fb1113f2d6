"""What an endpoint's refusal means, as the error that a human can act on. Nothing is sent here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import ContextOverflow, ModelError
from .dialect import wants_change
from .quirks import quirks

_MAY_PASS: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NO_CREDIT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_SHOWN_CHARS: Final = 400


class Unavailable(ModelError):
    """The endpoint cannot answer now and may later; `retry_after` is its own word on when."""

    def __init__(self, message: str, *, mend: str = "", retry_after: str = "") -> None:
        super().__init__(message, mend=mend)
        self.retry_after = retry_after


class ModelMissing(ModelError):
    """The endpoint answers, but not under this path or model name."""


class ParameterRefused(ModelError):
    """The endpoint does not take a parameter that can be renamed or left out."""

    def __init__(self, message: str, *, mend: str = "", parameter: str) -> None:
        super().__init__(message, mend=mend)
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the endpoint tells it, in whichever of the usual shapes."""

    message: str
    code: str = ""
    parameter: str = ""

    @classmethod
    def read(cls, text: str) -> "Refusal":
        """From the body of an error response."""
        try:
            return cls.of(json.loads(text))
        except (ValueError, RecursionError):
            page = text.lstrip()[:1] == "<"
            return cls("a web page instead of JSON" if page else _short(text))

    @classmethod
    def of(cls, body: Any) -> "Refusal":  # Any: foreign JSON
        """From parsed JSON: {"error": {"message", "code", "param"}}, {"error": "…"}, {"message": …}, {"detail": …}."""
        inner = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(inner, dict):
            return cls(_short(str(inner)))
        message = inner.get("message") or inner.get("detail") or json.dumps(inner)
        code = inner.get("code") or inner.get("type") or ""
        return cls(_short(str(message)), str(code), str(inner.get("param") or ""))


def explain(status: int, headers: Mapping[str, str], refusal: Refusal, where: str) -> ModelError:
    """The error for a refused request; `where` is the endpoint's address."""
    said = f"{where} says ({status}): {refusal.message.rstrip('.') or 'nothing'}."
    parameter = _refused_parameter(refusal)
    if status == 413 or quirks().overflow.search(f"{refusal.code} {refusal.message}"):
        return ContextOverflow(said, mend="Shorten the conversation, or set `model.context_tokens`.")
    if status in {400, 422} and parameter:
        return ParameterRefused(said, parameter=parameter)
    if refusal.code in _NO_CREDIT:
        return ModelError(said, mend="The account behind the key has no credit left.")
    if status != 429 and wants_change(refusal.message):
        return ModelError(said)
    if status in _MAY_PASS and headers.get("x-should-retry") != "false":
        return Unavailable(said, retry_after=headers.get("retry-after", ""))
    return _final(status, said)


def _final(status: int, said: str) -> ModelError:
    if status in {401, 403}:
        return ModelError(f"The key was refused. {said}", mend="Check OPENAI_API_KEY, and the address it is sent to.")
    return ModelMissing(said) if status == 404 else ModelError(said)


def explain_in_stream(body: Any, where: str) -> ModelError:  # Any: foreign JSON
    """The error for a refusal that comes as a chunk of a stream, under status 200."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) else 500
    return explain(status, {}, Refusal.of(body), where)


def _refused_parameter(refusal: Refusal) -> str:
    for name in quirks().refused:
        if refusal.parameter == name or f"'{name}'" in refusal.message or f"`{name}`" in refusal.message:
            return name
    return ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN_CHARS else flat[: _SHOWN_CHARS - 1] + "…"
