"""A gate over the sandbox of all tests."""

import pytest

from agent_core.functions.gate import Gate
from sandbox import Limits, Sandbox


@pytest.fixture(scope="session")
def gate(one_sandbox: Sandbox) -> Gate:
    """The gate over a real sandbox; a call ends after two seconds."""
    return Gate(one_sandbox, limits=Limits(wall_s=2))
