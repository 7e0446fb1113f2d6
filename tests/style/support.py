"""What tests of the MemGPT style share: an agent of it, the calls of its model, and what its model was sent."""

import json
from typing import Any

from tests.conftest import OpenDesk
from tests.kit import Ask, ScriptedModel, Wanted
from tests.kit.desk import Desk
from tests.kit.steps import Script

WINDOW = 32_768
"""Room for all functions with their wish for a heartbeat, and for the turn."""


async def memgpt(at_desk: OpenDesk, script: Script, *, verify: bool = False, **flags: Any) -> Desk:  # Any: settings
    """A desk whose agent is of the preset memgpt; its first reply is taken as it is."""
    desk = await at_desk(script, memory__preset="memgpt", **{"model__context_tokens": WINDOW, **flags})
    desk.agent.session.verify = verify
    return desk


def send(message: str, *, thought: str = "", heartbeat: object = False) -> Ask:
    """A reply that sends the user a message."""
    return Ask(Wanted("send_message", {"message": message, "request_heartbeat": heartbeat}), text=thought)


def told(model: ScriptedModel, request: int = -1) -> list[dict[str, Any]]:
    """The packed messages of a request, in order; those of one role that follow one another travel as one."""
    said = [str(each["content"]) for each in model.requests[request].messages if each["role"] == "user"]
    return [json.loads(text) for each in said for text in each.split("\n\n")]


def types(model: ScriptedModel, request: int = -1) -> list[str]:
    """The types of the packed messages of a request."""
    return [str(each["type"]) for each in told(model, request)]
