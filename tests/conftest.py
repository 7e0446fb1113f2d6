"""Fixtures for all tests."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import httpcore2
import pytest
from hypothesis import settings

from sandbox import Sandbox, SandboxUnavailable
from tests.kit import Script, ScriptedModel
from tests.kit import scripted as running
from tests.kit.contract import RENEW
from tests.kit.databases import database, lasting_database, postgres, template
from tests.kit.desk import Desk, desk
from tests.kit.drawing import SEARCHING, STEADY
from tests.kit.levels import NEEDS, NO_LEVEL, NOTHING_RUNS, level_here, reason_to_skip, start
from tests.kit.signals import restore_signals
from tests.kit.steps import Choose, Step

# The suite uses the same examples each time, so a failure is due to the change; `make soak` searches for new ones.
settings.register_profile(STEADY, derandomize=True, database=None, deadline=None, max_examples=20)
settings.register_profile(SEARCHING, deadline=None)
settings.load_profile(STEADY)

__all__ = ["database", "lasting_database", "postgres", "template"]  # fixtures

OpenDesk: TypeAlias = Callable[..., Awaitable[Desk]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that has the contracts written instead of compared."""
    parser.addoption(RENEW, action="store_true", help="write tests/contracts anew")


def pytest_configure() -> None:
    """Set the signals in the controller and in each worker, before either starts a program."""
    restore_signals()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection; objects that exist afterwards stay to the end, so exempt them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(
            10_000
        )  # 700 would scan the trees of modules, and all that is warm, over and over


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that do not apply to the forced level."""
    for item in items:
        if why := reason_to_skip(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=f"{NEEDS} portable: {why}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a failed test that needed a function to run where no level works.

    Such a test printed the message of a missing level, or has functions in its folder.
    """
    report = yield
    if (
        report.failed
        and (_was_told(call, report) or _has_functions(item))
        and level_here() == "none"
    ):
        report.outcome = "skipped"
        report.longrepr = (
            str(item.path),
            item.reportinfo()[1] or 0,
            f"Skipped: {NEEDS} none: a function has to run",
        )
    return report


def _was_told(call: pytest.CallInfo[None], report: pytest.TestReport) -> bool:
    error = call.excinfo.value if call.excinfo else None
    texts = (str(error), report.longreprtext, *(text for _title, text in report.sections))
    return isinstance(error, SandboxUnavailable) or any(NOTHING_RUNS in text for text in texts)


def _has_functions(item: pytest.Item) -> bool:
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    return folder is not None and any(folder.rglob("functions/*.py"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report in one line how many tests need another level than this machine has."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(
        NEEDS in why or NO_LEVEL in why for why in (str(report.longrepr) for report in skipped)
    ):
        terminalreporter.write_line(
            f"Skipped because of the level here, which is {level_here()}: {count}"
        )


@pytest.fixture(scope="session", autouse=True)
def one_tls_context() -> Iterator[None]:
    """Read the certificates of this machine once: each client of a test would read them again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Start scripted models; at the end of the test, each must have followed its script."""
    with ExitStack() as stack:

        def start(script: Script, **options: Any) -> ScriptedModel:  # Any: what `running` takes
            return stack.enter_context(running(script, **options))

        yield start


@pytest.fixture(scope="session")
async def one_sandbox() -> AsyncIterator[Sandbox]:
    """One sandbox for all desks: each call has its own worker anyway, and a start takes longer than most turns."""
    async with await start() as started:
        yield started


@pytest.fixture
async def at_desk(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> AsyncIterator[OpenDesk]:
    """Open a workspace with an agent whose model follows a script."""
    async with AsyncExitStack() as stack:

        async def open_desk(
            script: Script, *, reader: Step | Choose | None = None, **flags: Any
        ) -> Desk:  # Any: settings
            opened = desk(tmp_path, scripted(script, reader=reader), one_sandbox, **flags)
            return await stack.enter_async_context(opened)

        yield open_desk
