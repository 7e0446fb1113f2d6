"""Calls as the agent makes them: each function reaches only its own hosts."""

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest_asyncio

from agent_core.access.call_exit import CallExit
from agent_core.access.grants import AccessResolver, CallFlow, FileRequests, Grants, Permit
from agent_core.base.settings import SandboxSettings
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.worker_api import WorkerApi
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Outcome, Raised
from tests.broker.reach import value
from tests.broker.servers import Server
from tests.kit.levels import FORCED

TEXT = '''
def weather(self, url: str) -> str:
    """Look it up."""
    return self.fetch(url).text()

def relay(self, url: str) -> str:
    """Let another look it up."""
    return self.call("weather", url=url)
'''


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def sandbox() -> AsyncIterator[SandboxClient]:
    started = SandboxClient(SandboxSettings(level=FORCED), parallel=2)
    yield started
    await started.aclose()


@dataclass
class Human:
    """Grants only what the test allows; when asked, approves these places."""

    sandbox: SandboxClient
    granted: dict[str, tuple[str, ...]]
    agrees: tuple[str, ...] = ()

    async def permit(
        self,
        function: Function,
        snapshot: Snapshot,
        caller: str = "",
        flow: CallFlow | None = None,
        arguments: object = None,
    ) -> Permit:
        grants = Grants(network=self.granted.get(function.name, ()))
        return Permit(snapshot.modules, self.sandbox.limits, grants, is_bound=True)

    async def want(
        self,
        function: str,
        snapshot: Snapshot,
        grants: Grants,
        caller: str = "",
        flow: CallFlow | None = None,
    ) -> bool:
        return function == "weather" and set(grants.network) <= set(self.agrees)

    async def guarded(self, snapshot: Snapshot) -> frozenset[str]:
        return frozenset()

    async def want_path(
        self,
        function: str,
        snapshot: Snapshot,
        grants: Grants,
        folder: str,
        doubt: str,
        *,
        caller: str = "",
        flow: CallFlow | None = None,
    ) -> tuple[Grants, str]:
        raise AssertionError("no function opens a file")

    def files_of(self, function: str, permit: Permit, exit: CallExit) -> FileRequests:
        resolver = AccessResolver(Path("/nowhere"), lambda names: ((), ()), self.sandbox.secrets)
        return FileRequests(resolver, function, permit, exit)


async def call(human: Human, name: str, url: str) -> Outcome:
    snapshot = Snapshot.empty().with_module(read_module(ModuleSource.of("web", dedent(TEXT))))
    requests = WorkerApi(human.sandbox, snapshot, lambda done, total, note: None, human)
    function = snapshot.functions[name]
    return await requests.run(function, {"url": url}, await human.permit(function, snapshot))


async def test_a_call_reaches_the_hosts_of_its_function_alone_and_one_in_the_middle_is_asked_for(
    sandbox: SandboxClient, server: Server
) -> None:
    place = f"localhost:{server.port}"
    outcome = await call(Human(sandbox, {}), "weather", "http://localhost/")
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "PermissionError"
    assert "`knapper functions grant weather --network localhost`" in outcome.failure.message
    outcome = await call(Human(sandbox, {"relay": (place,)}), "relay", f"http://{place}/")
    assert isinstance(outcome, Raised)
    assert f"`weather` may not reach {place}" in outcome.failure.message
    assert server.connections == 0
    assert (
        value(await call(Human(sandbox, {"weather": (place,)}), "weather", f"http://{place}/"))
        == "hello"
    )
    assert value(await call(Human(sandbox, {}, (place,)), "relay", f"http://{place}/")) == "hello"


def test_nothing_of_an_http_client_is_imported_before_a_fetch() -> None:
    program = "import agent_core.workspace.workspace, sys; print({'httpx2', 'httpcore2', 'anyio'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
