"""Fixtures that every room may use."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.kit import Script, ScriptedModel
from tests.kit import scripted as running


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Starts scripted models; at the end of the test, each must have gone by its script."""
    with ExitStack() as stack:

        def start(script: Script, **options: Any) -> ScriptedModel:  # Any: what `running` takes
            return stack.enter_context(running(script, **options))

        yield start
