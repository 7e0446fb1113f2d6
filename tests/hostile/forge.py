"""A module whose functions claim any value, or request it from the host."""

import base64
import json
import zlib
from typing import Any

FORGE = '''\
import base64
import json
import sys
import zlib


def claim(raw: str) -> object:
    """Return whatever the text holds, as the worker claims it.

    Args:
        raw: The claim.
    """
    found = json.loads(zlib.decompress(base64.b64decode(raw)))
    sys.modules["sandbox.wire.values"]._ENCODERS[tuple] = lambda *_: found
    return ("as it is",)


def ask(self, raw: str) -> str:
    """Ask the host for whatever the text holds.

    Args:
        raw: The name of the request, and its arguments.
    """
    name, arguments = json.loads(zlib.decompress(base64.b64decode(raw)))
    return str(self._channel.ask({"kind": "request", "name": name, "arguments": arguments}))[:200]
'''


def packed(value: Any) -> dict[str, str]:  # Any: JSON
    """Return the arguments that make one of its functions claim or request a value."""
    return {"raw": base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()}
