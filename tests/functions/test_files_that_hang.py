"""A file whose import did not end is told, and waited for again only where something changed."""

from pathlib import Path

from agent_core.functions.sandbox_client import SandboxClient
from tests.functions.support import named, room
from tests.kit.desk import VOWELS

HANGING = "import time\n\nwhile True:\n    time.sleep(1)\n"  # costs no processor, as a loop would


async def rejected_at_a_start(
    root: Path, sandbox: SandboxClient, *, by_reload: bool = False
) -> dict[str, bool]:
    """Return the rejected files that another process finds, and whether it waited for each."""
    async with room(root, sandbox) as other:
        if by_reload:
            await other.shop.reload()
        rejected = other.shop.registry.snapshot().rejected
        assert "count_vowels" in other.shop.names()
        return {
            problem.where.path: "only tried again by" not in (problem.fix or "")
            for problem in rejected
        }


async def test_an_unchanged_file_that_hung_is_not_waited_for_again(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "letters.py").write_text(VOWELS)
    (folder / "slow.py").write_text(HANGING)
    slow = "functions/slow.py"
    assert await rejected_at_a_start(tmp_path, sandbox) == {slow: True}
    assert await rejected_at_a_start(tmp_path, sandbox) == {slow: False}
    (folder / "other.py").write_text(named("count_more"))
    assert await rejected_at_a_start(tmp_path, sandbox) == {slow: False}  # the save of another file
    assert await rejected_at_a_start(tmp_path, sandbox, by_reload=True) == {slow: True}
    (folder / "slow.py").write_text(f"# Changed.\n{HANGING}")
    assert await rejected_at_a_start(tmp_path, sandbox) == {slow: True}
    assert await rejected_at_a_start(tmp_path, sandbox) == {slow: False}


async def test_a_file_that_hung_is_tried_again_where_what_it_imports_changed(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "letters.py").write_text(VOWELS)
    (folder / "_wait.py").write_text(
        "import time\n\ndef wait():\n    while True:\n        time.sleep(1)\n"
    )
    (folder / "slow.py").write_text(
        f"from functions._wait import wait\n\nwait()\n\n\n{named('count_more')}"
    )
    assert await rejected_at_a_start(tmp_path, sandbox) == {"functions/slow.py": True}
    assert await rejected_at_a_start(tmp_path, sandbox) == {"functions/slow.py": False}
    (folder / "_wait.py").write_text("def wait():\n    pass\n")
    assert await rejected_at_a_start(tmp_path, sandbox) == {}
