"""Runs a sandbox in a process whose kernel refuses some calls: `python -m tests.sandbox.lacking 444:38 272:1`.

Each word is `number:errno`, `landlock`, or `namespaces`. Prints the result of the start as JSON. With `--` and a
command it runs that instead: `python -m tests.sandbox.lacking landlock -- make test` runs the suite as on a machine
without Landlock.
"""

import asyncio
import json
import os
import sys

from sandbox import FunctionCall, Job, Returned, Sandbox, SandboxUnavailable
from sandbox.confine.kernel import PR_SET_NO_NEW_PRIVS, prctl
from sandbox.confine.seccomp import ALLOW, ANY_BIT, EQUAL, LOAD, RETURN, Filter, Program, refuse
from tests.sandbox.support import modules

_OF = {
    "landlock": ["444:38", "445:38", "446:38"],
    "namespaces": ["272:1", "308:1", "435:38"],
}  # clone3 is as in Docker
_CLONE, _FLAGS, _NEW = 56, 16, 0x7E020000


def lack(words: list[str]) -> None:
    """Refuse the calls in this process and its children."""
    program = Program()
    if "namespaces" in words:
        program.add(LOAD, 0)
        program.test(EQUAL, _CLONE, no="no clone")
        program.add(LOAD, _FLAGS)
        program.test(ANY_BIT, _NEW, no="no clone")
        program.add(RETURN, refuse(1))
        program.label("no clone")
    program.add(LOAD, 0)
    for word in [number for group in words for number in _OF.get(group, [group])]:
        number, error = (int(part) for part in word.split(":"))
        program.test(EQUAL, number, no=f"after {word}")
        program.add(RETURN, refuse(error))
        program.label(f"after {word}")
    program.add(RETURN, ALLOW)
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    Filter(program.assemble()).restrict()


async def start(*, override: bool) -> dict[str, object]:
    """Return the result of a start and of one call."""
    try:
        sandbox = await Sandbox.start(packages=(), override=override)
    except SandboxUnavailable as error:
        return {"unavailable": str(error), "missing": error.missing}
    async with sandbox:
        outcome = await sandbox.run(
            Job(modules(m="def f() -> int:\n    return 1\n"), "m", FunctionCall("f", {}))
        )
        facts: dict[str, object] = {
            "level": sandbox.level,
            "layers": sandbox.layers,
            "missing": sandbox.missing,
        }
        return facts | {"works": isinstance(outcome, Returned), "user": sandbox.plan.user}


if __name__ == "__main__":
    words = sys.argv[1:]
    refused = words[: words.index("--")] if "--" in words else words
    lack([word for word in refused if word != "override"])
    if command := words[len(refused) + 1 :]:
        os.execvp(command[0], command)
    print(json.dumps(asyncio.run(start(override="override" in words))))
