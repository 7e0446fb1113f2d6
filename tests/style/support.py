"""Shared by the tests of the MemGPT style: an agent, its model's calls, and the requests to its model."""

import json
from typing import Any

from tests.conftest import OpenDesk
from tests.kit import Ask, ScriptedModel, Wanted
from tests.kit.desk import Desk
from tests.kit.steps import Script

WINDOW = 32_768
"""Room for all functions with their heartbeat parameter, and for the turn."""


async def memgpt(
    at_desk: OpenDesk, script: Script, *, verify: bool = False, **flags: Any
) -> Desk:  # Any: settings
    """Return a desk with an agent of the preset memgpt; its first reply is accepted unchecked unless `verify`."""
    desk = await at_desk(
        script, memory__preset="memgpt", **{"model__context_tokens": WINDOW, **flags}
    )
    desk.agent.session.verify = verify
    return desk


def send(message: str, *, thought: str = "", heartbeat: object = False) -> Ask:
    """Return a reply that sends the user a message."""
    return Ask(
        Wanted("send_message", {"message": message, "request_heartbeat": heartbeat}), text=thought
    )


def told(model: ScriptedModel, request: int = -1) -> list[dict[str, Any]]:
    """Return the packed messages of a request, in order; consecutive ones of one role travel as one."""
    said = [
        str(each["content"]) for each in model.requests[request].messages if each["role"] == "user"
    ]
    return [json.loads(text) for each in said for text in each.split("\n\n")]


def types(model: ScriptedModel, request: int = -1) -> list[str]:
    """Return the types of the packed messages of a request."""
    return [str(each["type"]) for each in told(model, request)]
