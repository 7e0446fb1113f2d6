"""Values of any depth that a worker sends on its own: an answer, and the turn continues."""

from itertools import product

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
async def test_a_value_of_any_depth_is_returned_or_rejected(at_desk: OpenDesk) -> None:
    depths = sampled([100, 99, 150, 101, 202, 300], 3)  # in the suite on both sides of the limit
    cases = [
        (f"send_{kind}_{depth}", kind, depth) for kind, depth in sampled(product(KINDS, depths), 3)
    ]
    script = [(Ask(Wanted(name, {})), Say("Done."), Say("Still here.")) for name, _, _ in cases]
    desk = await at_desk([step for steps in script for step in steps])
    for name, kind, depth in cases:
        body = f'"kind": "returned", "shown": "", "value": {nested(kind, depth)}'
        desk.put(f"{name}.py", SENDING.replace("BODY", body).replace("def send", f"def {name}"))
    await desk.workspace.functions.reload()
    for name, _, depth in cases:
        (answer,) = answers(events := await desk.say("Go."))
        assert ("ended without an answer" in answer) == (depth > 100), name
        assert ended(events).reply == "Done."
        assert ended(await desk.say("And now?")).reply == "Still here."
        await desk.begin()
