"""Values of any depth that a worker sends on its own: an answer, and the turn continues."""

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers, ended
from tests.kit.drawing import sampled

SENDING = '''
def send(self) -> object:
    """Send something past the encoder."""
    import json, os
    self._channel.say({BODY})
    os._exit(0)
'''
KINDS = {
    "list": ("[", "]"),
    "tuple": ('{"$": "tuple", "v": [', "]}"),
    "dict": ('{"$": "dict", "v": [[1, ', "]]}"),
    "object": ('{"a": ', "}"),
}


def nested(kind: str, depth: int) -> str:
    begin, end = KINDS[kind]
    return f"json.loads({begin!r} * {depth} + '1' + {end!r} * {depth})"


@pytest.mark.sampled
@pytest.mark.parametrize("depth", sampled([100, 99, 150, 101, 202, 300], 3))  # in the suite on both sides of the limit
@pytest.mark.parametrize("kind", KINDS)
async def test_a_value_of_any_depth_is_returned_or_rejected(at_desk: OpenDesk, kind: str, depth: int) -> None:
    desk = await at_desk([Ask(Wanted("send", {})), Say("Done."), Say("Still here.")])
    body = f'"kind": "returned", "shown": "", "value": {nested(kind, depth)}'
    desk.put("sending.py", SENDING.replace("BODY", body))
    await desk.workspace.functions.reload()
    (answer,) = answers(events := await desk.say("Go."))
    assert ("ended without an answer" in answer) == (depth > 100)
    assert ended(events).reply == "Done."
    assert ended(await desk.say("And now?")).reply == "Still here."
