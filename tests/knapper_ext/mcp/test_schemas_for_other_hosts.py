"""Schemas that the strictest common hosts take, with arguments read back under the function's own names."""

import re
from pathlib import Path
from typing import Any

from agent_core import Workspace
from sandbox import Sandbox

from .conftest import piped, text_of

NAME = "x" * 65
FUNCTION = f'''\
from typing import TypedDict


class Size(TypedDict):
    """A size.

    Attributes:
        höhe: The height.
    """

    höhe: int


def measure(länge: int, items: list, pair: tuple[int, int], size: Size, {NAME}: int = 0) -> int:
    """Measure what there is.

    Args:
        länge: The length.
        items: What to count.
        pair: Two numbers.
        size: The size.
        {NAME}: One more.
    """
    return länge + len(items) + sum(pair) + size["höhe"] + {NAME}
'''


def schemas_in(value: Any) -> list[dict[str, Any]]:  # Any: JSON
    if isinstance(value, list):
        return [inner for part in value for inner in schemas_in(part)]
    inner = (
        [part for each in value.values() for part in schemas_in(each)]
        if isinstance(value, dict)
        else []
    )
    return [value, *inner] if isinstance(value, dict) else inner


async def test_a_schema_has_items_and_plain_keys_and_a_call_the_own_names(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sizes.py").write_text(FUNCTION)
    flags = {"mcp.standings": ["draft", "trial", "trusted"]}
    async with (
        Workspace.open(tmp_path, sandbox=one_sandbox, flags=flags) as workspace,
        piped(workspace) as client,
    ):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = tools["measure"].input_schema
        assert [
            part
            for part in schemas_in(schema)
            if part.get("type") == "array" and "items" not in part
        ] == []
        keys = [key for part in schemas_in(schema) for key in part.get("properties", {})]
        assert [key for key in keys if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key)] == []
        named = dict(
            zip(("länge", "items", "pair", "size", NAME), schema["properties"], strict=True)
        )
        assert set(schema["required"]) == {named[key] for key in ("länge", "items", "pair", "size")}
        height = next(key for key in keys if key.startswith("h_he"))
        arguments = {
            named["länge"]: 1,
            "items": [0],
            "pair": [2, 3],
            "size": {height: 4},
            named[NAME]: 5,
        }
        assert text_of(await client.call_tool("measure", arguments)) == "16"
        own = {"länge": 1, "items": [0], "pair": [2, 3], "size": {"höhe": 4}}
        assert text_of(await client.call_tool("measure", own)) == "11"
