"""Errors for the refusals of an endpoint, worded so that the user can act on them. Sends nothing."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .dialect import quirks, refuses, wants_change

_MAY_PASS: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NOT_TAKEN: Final = frozenset({400, 422, 501})
_SHOWN_CHARS: Final = 400
_SEARCHED_CHARS: Final = 20_000  # of an error, to find a requested wait
_CODE_CHARS: Final = 200
_LONGEST_WAIT_S: Final = 120.0  # the longest wait that the package honors
_CALLED: Final = re.compile(r"/+(chat/)?completions/*$|/+$")
_VERSION: Final = re.compile(r"/v\d\w*(/|$)")
_WAIT: Final = re.compile(r'"retryDelay": "([0-9.]+)s"|try again in ([0-9.]+) ?s')


class Unavailable(ModelError):
    """Error raised when the endpoint cannot answer now but may later."""


class ModelMissing(ModelError):
    """Error raised when the endpoint answers, but not under this path or model name."""


class NotTaken(ModelError):
    """Error raised when the endpoint rejects the form of the request; it may accept another form."""


class FunctionsRefused(NotTaken):
    """Error raised when the endpoint accepts no functions for this model."""


class ParameterRefused(ModelError):
    """Error raised when the endpoint rejects a parameter that can be renamed or omitted."""

    def __init__(self, message: str, *, fix: str = "", parameter: str) -> None:
        super().__init__(message, fix=fix)
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the endpoint reports it, in any of the usual forms."""

    message: str
    code: str = ""
    parameter: str = ""
    wait_s: str = ""

    @classmethod
    def read(cls, text: str) -> "Refusal":
        """Parse the body of an error response."""
        try:
            return cls.of(read_json(text, LOOSE))
        except Malformed:
            page = text.lstrip()[:1] == "<"
            return cls("a web page instead of JSON" if page else _short(text))

    @classmethod
    def of(cls, body: Any) -> "Refusal":  # Any: foreign JSON
        """Read parsed JSON: {"error": {"message", "code", "param"}}, {"error": "…"}, {"message": …}, {"detail": …}."""
        body = body[0] if isinstance(body, list) and body else body
        inner = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(inner, dict):
            return cls(_short(str(inner)))
        message = inner.get("message") or inner.get("detail") or json.dumps(inner)
        code = inner.get("code") or inner.get("type") or ""
        wait_s = _WAIT.search(json.dumps(inner)[:_SEARCHED_CHARS])
        code, parameter = str(code)[:_CODE_CHARS], str(inner.get("param") or "")[:_CODE_CHARS]
        return cls(_short(str(message)), code, parameter, wait_s[1] or wait_s[2] if wait_s else "")


def explain(status: int, headers: Mapping[str, str], refusal: Refusal, where: str) -> ModelError:
    """Return the error for a refused request; `where` is the endpoint's address."""
    message = f"{where} says ({status}): {refusal.message.rstrip('.') or 'nothing'}."
    words = f"{refusal.code} {refusal.message}"
    if status == 413 or quirks().overflow.search(words):
        return ContextOverflow(message, fix="Shorten the conversation, or set `model.context_tokens`.")
    for name in quirks().refused if status in {400, 422} else ():
        quoted = (f"{quote}{name}{end}" for quote in "'`\"" for end in (quote, "."))
        if refusal.parameter.partition(".")[0] == name or any(text in refusal.message for text in quoted):
            return ParameterRefused(message, parameter=name)
    if status != 429 and refuses("functions", words):
        return FunctionsRefused(message, fix=quirks().fixes["functions"])
    if status == 402 or quirks().no_credit.search(words):
        return ModelError(message, fix=quirks().fixes["402"])
    # The same request cannot succeed, but another form may.
    is_about_writing = status != 429 and (wants_change(refusal.message) or refuses("constraint", refusal.message))
    if status in _MAY_PASS and headers.get("x-should-retry") != "false" and not is_about_writing:
        return Unavailable(message, fix=_long_wait(headers, refusal) or _fix(status))
    return _final(status, message, words, NotTaken if is_about_writing or status in _NOT_TAKEN else ModelError)


def redirected(where: str, place: str) -> ModelError:
    """Return the error for a redirect that would lead to another server than the user chose."""
    message = f"{where} redirects to {one_line(place)}, which is not followed: nothing was sent to it."
    return ModelError(message, fix="If you trust that address, set it as `model.base_url`.")


def _final(status: int, message: str, words: str, kind: type[ModelError]) -> ModelError:
    if status in {400, 403, 422} and quirks().filtered.search(words):
        return ModelError(message, fix=quirks().fixes["filtered"])
    if (kind is ModelError and status == 404) or (status in {400, 422} and quirks().no_model.search(words)):
        return ModelMissing(message)
    if status in {401, 403}:
        message = f"The key was refused. {message}" if status == 401 else f"The key may not do this. {message}"
    return kind(message, fix=_fix(status))


def _fix(status: int) -> str:
    return quirks().fixes.get(str(status if status < 500 else 500), quirks().fixes["other"])


def _long_wait(headers: Mapping[str, str], refusal: Refusal) -> str:
    """Return the fix for a requested wait that is too long for automatic retries, else ""."""
    try:
        asked_s = float(headers.get("retry-after") or refusal.wait_s or 0)
    except ValueError:  # a date
        return ""
    if not asked_s > _LONGEST_WAIT_S:
        return ""
    return f"It says to wait {asked_s:.0f} s: try again then, or choose another model."


def explain_in_stream(error: Any, where: str) -> ModelError:  # Any: foreign JSON
    """Return the error for a refusal that arrives as a chunk of a stream, under status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    return explain(code if isinstance(code, int) else 500, {}, Refusal.of({"error": error}), where)


def base_url_hint(url: str) -> str:
    """Return the fix for an address that answers, but not like the base URL of an endpoint."""
    base = _CALLED.sub("", url)
    better = base if _VERSION.search(urlsplit(base).path) else f"{base}/v1"
    return f"Try the address {better}." if better != url.rstrip("/") else "Check that this is the endpoint's base URL."


def _short(text: str) -> str:
    return one_line(" ".join(text[: 4 * _SHOWN_CHARS].split()), _SHOWN_CHARS)
