"""One call of our own, made ahead, so that the first real one finds its memory pages and caches warm.

Measured: a forked worker spends most of its first call copying some 400 shared pages. A worker
that is forked ahead does this while nobody waits.
"""

import marshal
import sys
from binascii import b2a_base64
from pathlib import Path

from ..protocol import Frame, pack, unpack
from .channel import Channel
from .jobs import perform

_CODE = compile("def add(a: int, b: int = 2) -> int:\n    return a + b\n", "functions/rehearsal.py", "exec")


def rehearse(channel: Channel) -> None:
    """Do the job and take back every trace of it."""
    finders, modules = list(sys.meta_path), set(sys.modules)
    perform(unpack(pack(_job())[4:]), channel, Path())
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def _job() -> Frame:
    code = {"kind": "code", "path": "functions/rehearsal.py", "code": b2a_base64(marshal.dumps(_CODE)).decode()}
    call = {"kind": "call", "module": "rehearsal", "function": "add", "arguments": {"a": 1}}
    return call | {"modules": {"rehearsal": code}}
