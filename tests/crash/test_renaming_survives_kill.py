"""A function has one name in all files after `kill -9` at any moment of a change of several files."""

import os
import random
from pathlib import Path

import pytest

from agent_core.workspace.workspace import Workspace
from tests.crash.renaming_work import NAMES, rename
from tests.functions.support import USER
from tests.kit.crash import Worker, kill_at_work
from tests.kit.desk import VOWELS

FILES = {
    "words.py": VOWELS,
    "uses.py": f"from functions.words import count_vowels\n\n\n{USER}",
    "more.py": "import functions.words as w\n\n\n"
    + USER.replace("count_twice", "count_more").replace(" count_vowels(", " w.count_vowels("),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_new_name_is_in_all_files_or_in_none_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    async with Workspace.open(tmp_path, flags={"model.base_url": "http://127.0.0.1:9/v1"}):
        pass
    chance = random.Random(os.getpid())
    for number in range(40):
        kill_at_work(Worker(rename, str(tmp_path)), chance.uniform(0.2, 2.5))
        async with Workspace.open(
            tmp_path, flags={"model.base_url": "http://127.0.0.1:9/v1"}
        ) as workspace:
            assert not workspace.functions.rejected(), number
            (now,) = {*workspace.functions.names()} & {*NAMES}
            (then,) = {*NAMES} - {now}
            texts = {path.name: path.read_text() for path in folder.glob("*.py")}
            assert not any(f"{then}(" in text for text in texts.values()), number
            assert await workspace.store.open_writes() == []
