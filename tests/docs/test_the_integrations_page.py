"""The names that docs/integrations.md gives to other programs exist. `make conformance` runs the programs."""

import json
import re
import sys
from pathlib import Path
from typing import Final

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agent_core import Workspace

PAGE: Final = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text("utf-8")


async def test_a_host_of_mcp_servers_starts_the_workspace_by_its_configuration(
    tmp_path: Path,
) -> None:
    Workspace.create(tmp_path)
    block = re.findall(r"```json\n(.+?)```", PAGE, re.DOTALL)[0].replace(
        "/path/to/workspace", str(tmp_path)
    )
    entry = json.loads(block)["mcpServers"]["knapper"]
    assert entry["command"] == "/path/to/knapper"
    ours = StdioServerParameters(command=sys.executable, args=["-m", "knapper", *entry["args"]])
    async with Client(stdio_client(ours)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("find_functions", {"need": "days between two dates"})
    assert {"find_functions", "describe_function", "call_function"} <= names
    assert "days_between" in str(found.content)
