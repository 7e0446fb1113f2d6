"""The description of the API, made of the same operations and parts that check its requests."""

from collections.abc import Iterable
from typing import Any, Final

from agent_core import __version__

from .operations import Operation
from .parts import Nothing

Json = dict[str, Any]  # Any: JSON
_REFS: Final = "#/components/schemas/{model}"
_ERROR: Final[Json] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "fix": {"type": ["string", "null"]},
                "problems": {"type": "array", "items": {"type": "object"}},
            },
        }
    },
}


def openapi(operations: Iterable[Operation]) -> Json:
    """Return the document."""
    schemas: Json = {"Error": _ERROR}
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Knapper", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _described(operation: Operation, schemas: Json) -> Json:
    kind = "text/event-stream" if operation.streams else "application/json"
    schema: Json = {"type": "string"} if operation.streams else {"type": "object"}
    answers = {
        str(operation.status): {"description": operation.summary, "content": {kind: {"schema": schema}}},
        "default": {
            "description": "What went wrong.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        },
    }
    described: Json = {
        "operationId": f"{operation.method.lower()}_{operation.handler.__name__}",
        "summary": operation.summary,
        "description": f"{(operation.handler.__doc__ or '').strip()} Scopes: {' or '.join(operation.scopes)}.",
        "parameters": [*map(_in_path, operation.names), *_in_query(operation)],
        "responses": answers,
    }
    if operation.body is not Nothing:
        name = operation.body.__name__
        schema = operation.body.model_json_schema(ref_template=_REFS)
        schemas |= schema.pop("$defs", {}) | {name: schema}
        content = {"application/json": {"schema": {"$ref": _REFS.format(model=name)}}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(operation: Operation) -> list[Json]:
    schema = operation.query.model_json_schema(ref_template=_REFS)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": part}
        for name, part in schema.get("properties", {}).items()
    ]
