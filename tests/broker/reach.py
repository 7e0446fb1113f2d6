"""A function in a real worker, with its own broker."""

from collections.abc import Sequence
from textwrap import dedent, indent
from typing import Any, Protocol

from agent_core.access.broker import Broker, FetchSession
from sandbox import Access, FunctionCall, Job, Outcome, RequestRefused, Returned, Sandbox
from tests.sandbox.support import modules


class Reach(Protocol):
    """Runs a body as `def go(self)` of the function `weather`, which may reach these hosts."""

    async def __call__(
        self,
        body: str,
        *hosts: str,
        broker: Broker | None = None,
        packages: Sequence[tuple[str, str]] = (),
    ) -> Outcome: ...


class Handler:
    """Answers the sandbox's requests, as `WorkerApi` would."""

    def __init__(self, session: FetchSession) -> None:
        self._session = session

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> Any:
        return await self._session.answer(name, arguments)


def reacher(sandbox: Sandbox) -> Reach:
    async def reach(
        body: str,
        *hosts: str,
        broker: Broker | None = None,
        packages: Sequence[tuple[str, str]] = (),
    ) -> Outcome:
        text = f"def go(self):\n{indent(dedent(body).strip(), '    ')}\n"
        async with (broker or Broker()).session("weather", hosts) as session:
            access = Access(packages=tuple(packages))
            return await sandbox.run(
                Job(
                    modules(web=text),
                    "web",
                    FunctionCall("go", {}),
                    handler=Handler(session),
                    access=access,
                )
            )

    return reach


def value(outcome: Outcome) -> Any:
    """Return the value of a successful outcome."""
    assert isinstance(outcome, Returned), outcome
    return outcome.value


async def refusal(session: FetchSession, **arguments: Any) -> str:
    """Return the text of a refusal; "" if there was none."""
    try:
        await session.answer("fetch", arguments)
    except RequestRefused as refused:
        return str(refused)
    return ""


class Names:
    """A name service that returns the given lists of addresses in order, then repeats the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers[min(len(self.asked), len(self._answers)) - 1]
