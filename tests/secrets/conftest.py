"""A workspace, and next to it the user's configuration folder without secrets."""

from pathlib import Path

import pytest

from tests.kit.levels import lend
from tests.secrets.support import KEY


@pytest.fixture(autouse=True)
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for secrets, outside of every workspace."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    lend(home / "data")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home / "config" / "knapper"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The value of a secret in the environment."""
    monkeypatch.setenv("KNAPPER_SECRET_KEY", KEY)
    return KEY
