"""The tools that are no functions of the workspace: three that are always there, three for clients that may grow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

FIND: Final = "find_functions"
DESCRIBE: Final = "describe_function"
CALL: Final = "call_function"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients see it. `result` is the JSON Schema of its structured result, if it has one."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # Any: JSON Schema
    result: Mapping[str, Any] | None = None
    reads_only: bool = False


def _object(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:  # Any: JSON Schema
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_NAME: Final = _text("The name of the function.")
_ARGUMENTS: Final = {"type": "object", "description": "Its arguments, by name."}
_REASON: Final = _text("Why, in a few words.")

LOOKING: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            FIND,
            "Find functions of this workspace by what is to be done. New ones may appear at any time.",
            _object(
                ("need",),
                need=_text("What is to be done, in a few words."),
                count={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "default": 5,
                    "description": "At most so many.",
                },
            ),
            reads_only=True,
        ),
        Tool(
            DESCRIBE,
            "Describe a function: what it does, its arguments as JSON Schema, its examples.",
            _object(("function_name",), function_name=_NAME),
            reads_only=True,
        ),
        Tool(
            CALL,
            "Call any function of this workspace by name, also one that is no tool of its own.",
            _object(("function_name",), function_name=_NAME, arguments=_ARGUMENTS),
        ),
    )
}

GROWING: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "create_function",
            "Make a new Python function. It is tested in a sandbox, and can be called at once if it passes. It needs"
            " type hints, and a docstring with a description, `Args:` and two examples with different results.",
            _object(
                ("function_name", "function_code_with_docstring"),
                function_name=_NAME,
                function_code_with_docstring=_text("The whole source: imports it needs, then one function."),
                module_name=_text("The module it joins, such as `text`."),
                reason=_REASON,
            ),
        ),
        Tool(
            "edit_function",
            "Change one place in the source of a function, or of a candidate that was rejected.",
            _object(
                ("function_name", "old_text", "new_text"),
                function_name=_NAME,
                old_text=_text("The exact text to replace; it must occur exactly once."),
                new_text=_text("The text in its place."),
                reason=_REASON,
            ),
        ),
        Tool(
            "test_function",
            "Run a function's examples or, with arguments, one call of it, off the record.",
            _object(("function_name",), function_name=_NAME, arguments=_ARGUMENTS),
        ),
    )
}
