"""Functions that a client offers with a request: what of them the model is told, and what is refused."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.registry.validation import check_schema

from .parts import Open

Json: TypeAlias = dict[str, Any]  # Any: JSON
MOST_TOOLS: Final = 128
_MOST_BYTES: Final = 16 << 10  # of one schema
_MOST_IN_ALL: Final = 96 << 10
_DEEPEST: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTHING: Final[Json] = {"type": "object", "properties": {}}


class Unsupported(UsageError):
    """A parameter that cannot have its effect here, by its place; `parameter` is the one of the request that has it."""

    code = "unsupported_parameter"

    def __init__(self, parameter: str, why: str, fix: str = "Leave it out.") -> None:
        super().__init__(f"`{parameter}` {why}", fix=fix)
        self.parameter = parameter.partition(".")[0]


class ToolFunction(Open):
    """A function of a client, as the client describes it."""

    name: Annotated[str, Field(max_length=200)]
    description: Annotated[str | None, Field(max_length=8_000)] = None
    parameters: Json | None = None
    strict: bool | None = None


class ClientTool(Open):
    """A tool of a client. Chat completions put the function into a field of its own, responses do not."""

    type: str
    function: ToolFunction | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str | None, Field(max_length=8_000)] = None
    parameters: Json | None = None
    strict: bool | None = None

    @property
    def described(self) -> ToolFunction:
        """The function."""
        if self.function is not None:
            return self.function
        name, about, schema = self.name, self.description, self.parameters
        return ToolFunction(name=name, description=about, parameters=schema, strict=self.strict)


Tools: TypeAlias = Annotated[list[ClientTool], Field(max_length=MOST_TOOLS, fail_fast=True)]
NamedTools: TypeAlias = Annotated[list["NamedTool"], Field(max_length=MOST_TOOLS, fail_fast=True)]


class NamedTool(Open):
    """A tool that is named."""

    type: str = "function"
    name: str | None = None
    function: ToolFunction | None = None

    @property
    def named(self) -> str:
        """Its name."""
        return self.function.name if self.function else self.name or ""


class AllowedTools(Open):
    """The tools that may be called now, and whether one must be."""

    mode: Literal["auto", "required"] = "auto"
    tools: NamedTools = Field(default_factory=list)


class ToolChoice(NamedTool):
    """A choice of one tool, or of those that are allowed."""

    mode: Literal["auto", "required"] = "auto"
    tools: NamedTools = Field(default_factory=list)
    allowed_tools: AllowedTools | None = None

    @property
    def chosen(self) -> tuple[Sequence[str], bool]:
        """The names of those that may be called, and whether one must be."""
        if self.type == "function":
            return [self.named], True
        allowed = self.allowed_tools or AllowedTools(mode=self.mode, tools=self.tools)
        return [tool.named for tool in allowed.tools], allowed.mode == "required"


Choice: TypeAlias = Literal["none", "auto", "required"] | ToolChoice | None


def offered(
    tools: Sequence[ClientTool] | None, choice: Choice, *, parallel: bool | None, taken: Collection[str]
) -> Json:
    """Return what a turn is told of a client's functions; `taken` are the names that functions have here.

    Raises:
        Unsupported: they cannot be passed on, or what is chosen is not among them.
    """
    rows = [_row(tool.described) for tool in tools or ()]
    names = [row["name"] for row in rows]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Unsupported("tools", f"has two tools named `{name}`.", "Give each a name of its own.")
        if name in taken:
            why = f"has `{name}`, which is the name of a function that the agent has here."
            raise Unsupported("tools", why, f"Give the tool another name, such as `client_{name}`.")
    if sum(_size(row) for row in rows) > _MOST_IN_ALL:
        why = f"has more than {_MOST_IN_ALL >> 10} KiB in all."
        raise Unsupported("tools", why, "Send fewer, or describe them in fewer words.")
    chosen, is_required = _chosen(choice, names)
    rows = [row for row in rows if row["name"] in chosen]
    return {"functions": rows, "required": is_required, "one_at_a_time": parallel is False}


def _row(function: ToolFunction) -> Json:
    name = function.name
    if not _NAME.fullmatch(name):
        fix = "Use up to 64 letters, digits, underscores and dashes."
        raise Unsupported("tools", f"has `{one_line(name, 80)}`, which cannot be the name of a tool.", fix)
    schema = function.parameters or _NOTHING
    if schema.get("type", "object") != "object":
        why = f"has `{name}`, whose parameters are of the type `{one_line(str(schema['type']), 40)}`."
        raise Unsupported("tools", why, 'Describe them as a JSON Schema of {"type": "object"}.')
    if _depth(schema) > _DEEPEST or _size(schema) > _MOST_BYTES:
        limits = f"at most {_MOST_BYTES >> 10} KiB and {_DEEPEST} levels"
        raise Unsupported("tools", f"has `{name}`, whose schema is too large.", f"Make it smaller: {limits}.")
    row = {"name": name, "description": function.description or "", "parameters": _NOTHING | schema}
    if not function.strict:
        return row
    if (problem := check_schema(row["parameters"])) is not None:
        raise Unsupported("tools", f"has `{name}`, which is strict: {problem.message}.")
    return {**row, "strict": True}


def _chosen(choice: Choice, names: Sequence[str]) -> tuple[Collection[str], bool]:
    """Return which functions may be called, and whether one must be."""
    if choice is None or isinstance(choice, str):
        wanted, is_required = () if choice == "none" else names, choice == "required"
    else:
        wanted, is_required = choice.chosen
    for name in wanted:
        if name not in names:
            why = f"names `{one_line(name, 80)}`, which is not in `tools`."
            fix = "Name one that is; the functions of the agent cannot be chosen by a client."
            raise Unsupported("tool_choice", why, fix)
    if is_required and not wanted:
        fix = "Send the tools of which one must be called."
        raise Unsupported("tool_choice", "requires a call, and there are no tools.", fix)
    return wanted, is_required


def _size(value: Json) -> int:
    return len(json.dumps(value))


def _depth(value: object) -> int:
    """Return how many levels a value has; it was read within bounds."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_depth, parts), default=0)
