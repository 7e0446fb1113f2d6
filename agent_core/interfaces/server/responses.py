"""Answers over HTTP: JSON of a result, or an error in the one shape."""

import json

from starlette.responses import Response

from agent_core.base.errors import ToolwrightError
from agent_core.base.json_form import to_json

from .failures import ApiRefusal


def json_response(value: object, status: int = 200) -> Response:
    """Return the published JSON of a result."""
    text = json.dumps(to_json(value), ensure_ascii=False, default=str)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def error_response(status: int, code: str, message: str, fix: str = "") -> Response:
    """Return an error."""
    return failure(ApiRefusal(status, code, message, fix))


def failure(error: ToolwrightError) -> Response:
    """Return the answer to a request that failed as one may."""
    refused = ApiRefusal.of(error)
    return json_response(refused.document, refused.status)
