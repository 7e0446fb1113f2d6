"""A team that resumes from a saved state, as a separate program: `resumed.py FOLDER MODEL_URL STATE`."""

import asyncio
import json
import sys

from autogen_agentchat.teams import RoundRobinGroupChat

from agent_core import connect
from knapper_ext.frameworks.autogen import AutoGenAgent


async def main(folder: str, url: str, state: str) -> None:
    """Print the reply, and which modules of `mcp` were loaded."""
    flags = {"model.base_url": url, "model.name": "scripted", "model.context_tokens": 8_192}
    async with await connect(folder, flags=flags) as client:
        team = RoundRobinGroupChat([AutoGenAgent("ada", client, conversation="trip")], max_turns=1)
        await team.load_state(json.loads(state))
        result = await team.run(task="And now?")
    loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "mcp_types"})
    print(json.dumps({"reply": result.messages[-1].content, "mcp": loaded}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
