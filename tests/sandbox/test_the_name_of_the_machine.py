"""The machine name that a function gets."""

import socket

from sandbox import FunctionCall, Job, Returned, Sandbox
from tests.sandbox.support import modules

ASKS = modules(
    asks="""
    import os
    import socket

    def name() -> list[str]:
        return [socket.gethostname(), os.uname().nodename]
    """
)


async def test_in_a_root_of_its_own_a_worker_does_not_learn_the_hosts_name(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(ASKS, "asks", FunctionCall("name", {})))
    assert isinstance(outcome, Returned), outcome
    name = "sandbox" if sandbox.layers["namespaces"] else socket.gethostname()
    assert outcome.value == [name, name]
