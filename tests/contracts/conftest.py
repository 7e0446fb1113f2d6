"""The contracts, as fixtures."""

import pytest

from tests.kit.contract import RENEW, Contracts


@pytest.fixture(scope="session")
def contracts(request: pytest.FixtureRequest) -> Contracts:
    """The files of this folder."""
    return Contracts(is_renewing=request.config.getoption(RENEW))
