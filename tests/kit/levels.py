"""The level that functions run at here, and tests that need another one."""

import pytest

from sandbox import Sandbox


def require_imports_ahead(sandbox: Sandbox) -> None:
    """Skip the test where a package is imported by each call."""
    if sandbox.level == "apart":
        pytest.skip("at level apart each call imports its packages")
