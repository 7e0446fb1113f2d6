"""A rehearsal call, which warms up memory pages and caches before the first real call.

Measured: a forked worker spends most of its first call copying some 400 shared pages. A spare worker does this before
anyone waits for it. Every page that the rehearsal touches is copied, so it does not walk the table of all modules.
"""

import marshal
import sys
from binascii import b2a_base64
from pathlib import Path
from typing import Final

from ..wire.protocol import HEADER, Frame, pack, unpack
from . import files
from .channel import Channel
from .finder import ROOT
from .jobs import perform

TIMES: Final = 10  # rehearsals in the zygote, after which the interpreter has specialized this code
_CODE = compile("def add(a: int, b: int = 2) -> int:\n    return a + b\n", "functions/rehearsal.py", "exec")


def _job() -> Frame:
    code = {"kind": "code", "path": "functions/rehearsal.py", "code": b2a_base64(marshal.dumps(_CODE)).decode()}
    call = {"kind": "call", "module": "rehearsal", "function": "add", "arguments": {"a": 1}}
    return call | {"modules": {"rehearsal": code}}


_JOB: Final = pack(_job())[HEADER:]


def rehearse(channel: Channel) -> None:
    """Run the rehearsal job and remove all its traces."""
    finders = list(sys.meta_path)
    perform(unpack(_JOB), channel, Path())
    sys.meta_path[:] = finders
    files.rest()
    for name in (f"{ROOT}.rehearsal", ROOT):
        del sys.modules[name]
