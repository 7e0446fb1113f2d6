"""Workspace files that are pipes, links or endless block nothing: they are not read, and that is reported."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.access.grants.book import GrantsFile
from agent_core.base.errors import SettingsError, UsageError
from agent_core.base.plain_files import NotPlainError, read_plain
from agent_core.base.settings import load, write_values
from agent_core.model.prices import read_prices
from knapper.prompt.completion import KeptHistory
from knapper.prompt.prompt import EarlySettings, read_early_settings
from tests.kit.program import knapper

pytestmark = pytest.mark.timeout(20)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 33)


PLANTS = [
    pytest.param(os.mkfifo, id="pipe"),
    pytest.param(endless, id="link-to-a-device"),
    pytest.param(huge, id="huge"),
]
Plant = Callable[[Path], None]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_not_plain_is_neither_read_nor_waited_for_and_that_is_told(
    tmp_path: Path, plant: Plant
) -> None:
    (tmp_path / "functions").mkdir()
    for name in ("history", "prices.toml", "functions/grants.toml", "knapper.toml"):
        plant(tmp_path / name)
    with pytest.raises(NotPlainError, match="it is"):
        read_plain(tmp_path / "history", 1_000)
    history = KeptHistory(tmp_path / "history")
    history.store_string("hello")
    assert list(history.load_history_strings()) in ([], ["hello"])
    with pytest.raises(UsageError, match="it is"):
        read_prices(tmp_path / "prices.toml")
    assert GrantsFile(tmp_path / "functions").read().problems
    assert read_early_settings(tmp_path, {}) == EarlySettings()
    with pytest.raises(SettingsError, match=r"knapper\.toml"):
        load(tmp_path)
    with pytest.raises(SettingsError, match=r"knapper\.toml"):
        write_values(tmp_path, {"model.name": "m"})
    done = knapper("functions", "list", cwd=tmp_path)
    assert (done.returncode != 0, "knapper.toml" in done.stderr) == (True, True)


def test_a_history_is_read_as_it_was_kept_and_its_longest_lines_are_left_out(
    tmp_path: Path,
) -> None:
    history = KeptHistory(tmp_path / "history")
    for text in ("one", "two\nlines", "x" * 30_000_000, "last"):
        history.store_string(text)
    assert next(iter(history.load_history_strings())) == "last"
    assert all(len(text) < 100_000 for text in history.load_history_strings())
    short = KeptHistory(tmp_path / "short")
    short.store_string("two\nlines")
    short.store_string("last")
    assert list(short.load_history_strings()) == ["last", "two\nlines"]
