"""A workspace, and beside it a configuration folder of the user's own with no secret in it yet."""

from pathlib import Path

import pytest

from tests.secrets.support import KEY


@pytest.fixture(autouse=True)
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folders, outside of every workspace; where secrets are kept."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home / "config" / "knapper"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret in the environment: its value."""
    monkeypatch.setenv("KNAPPER_SECRET_KEY", KEY)
    return KEY
