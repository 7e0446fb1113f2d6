"""Runs a sandbox in a process whose kernel refuses some calls: `python -m tests.sandbox.lacking 444:38 272:1`.

Each word is `number:errno`. Prints how the start went, as JSON.
"""

import asyncio
import json
import sys

from sandbox import FunctionCall, Job, Returned, Sandbox, SandboxUnavailable
from sandbox.confine.kernel import PR_SET_NO_NEW_PRIVS, prctl
from sandbox.confine.seccomp import ALLOW, EQUAL, LOAD, RETURN, Filter, Program, refuse
from tests.sandbox.support import modules


def lack(words: list[str]) -> None:
    """Refuse the calls, in this process and all that it starts."""
    program = Program()
    program.add(LOAD, 0)
    for word in words:
        number, error = (int(part) for part in word.split(":"))
        program.test(EQUAL, number, no=f"after {word}")
        program.add(RETURN, refuse(error))
        program.label(f"after {word}")
    program.add(RETURN, ALLOW)
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    Filter(program.assemble()).restrict()


async def start(*, override: bool) -> dict[str, object]:
    """What becomes of a start, and of one call."""
    try:
        sandbox = await Sandbox.start(packages=(), override=override)
    except SandboxUnavailable as error:
        return {"unavailable": str(error), "missing": error.missing}
    async with sandbox:
        outcome = await sandbox.run(Job(modules(m="def f() -> int:\n    return 1\n"), "m", FunctionCall("f", {})))
        facts: dict[str, object] = {"level": sandbox.level, "layers": sandbox.layers, "missing": sandbox.missing}
        return facts | {"works": isinstance(outcome, Returned), "user": sandbox.plan.user}


if __name__ == "__main__":
    lack([word for word in sys.argv[1:] if ":" in word])
    print(json.dumps(asyncio.run(start(override="override" in sys.argv))))
