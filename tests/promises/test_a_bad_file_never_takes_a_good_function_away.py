"""Promise 6: a rejected save keeps the last good version running, now and at the next start, and says why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS, Desk
from tests.kit.drawing import sampled

GOOD = VOWELS


def broken(folder: Path) -> None:
    (folder / "letters.py").write_text("def count_vowels(text: str -> int:\n")


def binary(folder: Path) -> None:
    (folder / "letters.py").write_bytes(b"\x00\xff\xfe\x00not python")


def huge(folder: Path) -> None:
    with (folder / "letters.py").open("wb") as file:
        file.truncate(50 << 20)


def endless(folder: Path) -> None:
    (folder / "letters.py").write_text("import time\n\nwhile True:\n    time.sleep(1)\n\n" + GOOD)


def raising(folder: Path) -> None:
    (folder / "letters.py").write_text("raise RuntimeError('not today')\n\n" + GOOD)


def linked_away(folder: Path) -> None:
    (folder / "letters.py").unlink()
    (folder / "letters.py").symlink_to("/etc/hostname")


DAMAGE = [broken, binary, huge, endless, raising, linked_away]


async def test_a_rejected_save_leaves_the_last_good_version_running(at_desk: OpenDesk) -> None:
    desk = await at_desk([], sandbox__wall_s=2)
    for damage in DAMAGE:
        (desk.functions / "letters.py").unlink(missing_ok=True)
        await put_good(desk)
        assert not desk.workspace.functions.rejected(), damage
        damage(desk.functions)
        found = await desk.workspace.functions.reload()
        assert found.rejected, damage
        assert all(problem.where.path == "functions/letters.py" for problem in found.rejected)
        assert (await desk.workspace.functions.call("count_vowels", {"text": "aha"})).value == 2, (
            damage
        )
    (desk.functions / "letters.py").unlink()  # a link of the last damage
    (desk.functions / "letters.py").write_text(GOOD.replace("aeiou", "aeiouy"))
    assert (await desk.workspace.functions.reload()).rejected == ()
    assert (await desk.workspace.functions.call("count_vowels", {"text": "yes"})).value == 2


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sampled(DAMAGE, 3), ids=lambda damage: damage.__name__)
async def test_the_last_good_version_is_there_at_the_next_start(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    flags = {"sandbox.wall_s": 2}
    async with Workspace.open(tmp_path, flags=flags) as workspace:
        (tmp_path / "functions" / "letters.py").write_text(GOOD)
        await workspace.functions.reload()
    damage(tmp_path / "functions")
    async with Workspace.open(tmp_path, flags=flags) as workspace:
        assert workspace.functions.rejected()
        assert (await workspace.functions.call("count_vowels", {"text": "aha"})).value == 2


async def test_two_files_with_a_function_of_one_name_keep_the_first_until_it_is_removed(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([])
    await put_good(desk)
    (desk.functions / "again.py").write_text(GOOD)
    (problem,) = (await desk.workspace.functions.reload()).rejected
    assert problem.where.path == "functions/again.py"
    assert "functions/letters.py" in problem.message
    for name in ("again.py", "letters.py"):
        (desk.functions / name).unlink()
    await desk.workspace.functions.reload()
    assert desk.workspace.functions.names() == []


async def put_good(desk: Desk) -> None:
    (desk.functions / "letters.py").write_text(GOOD)
    await desk.workspace.functions.reload()
