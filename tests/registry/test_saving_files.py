"""A module's file is written atomically, and never over a save that someone else made in the meantime."""

import os
import resource
import stat
from pathlib import Path

import pytest

from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.registry.module_edits import remove, save
from agent_core.registry.source import hash_of


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_a_new_module_is_written_with_its_folders(tmp_path: Path) -> None:
    save(tmp_path, "functions/web/pages.py", "x = 'ä'\r\n", None)
    assert (tmp_path / "web/pages.py").read_bytes() == "x = 'ä'\r\n".encode()
    assert leftovers(tmp_path) == ["pages.py"]


def test_a_module_that_was_read_is_replaced_and_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    path.chmod(0o640)
    save(tmp_path, "functions/a.py", "x = 2\n", hash_of("x = 1\n"))
    assert path.read_text() == "x = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert leftovers(tmp_path) == ["a.py"]


def test_a_byte_order_mark_stays_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    save(tmp_path, "functions/a.py", "x = 2\n", hash_of("x = 1\n"))
    assert (tmp_path / "a.py").read_bytes() == b"\xef\xbb\xbfx = 2\n"


def test_what_a_human_saved_meanwhile_is_kept_and_shown(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 'mine'\n")
    with pytest.raises(StaleFile) as caught:
        save(tmp_path, "functions/a.py", "x = 'theirs'\n", hash_of("x = 1\n"))
    assert (tmp_path / "a.py").read_text() == "x = 'mine'\n"
    assert "-x = 'mine'\n+x = 'theirs'" in str(caught.value)
    assert leftovers(tmp_path) == ["a.py"]


def test_a_new_module_never_replaces_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(StaleFile, match="exists already"):
        save(tmp_path, "functions/a.py", "x = 2\n", None)
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


def test_a_module_that_is_gone_is_not_written_again(tmp_path: Path) -> None:
    with pytest.raises(StaleFile, match="gone"):
        save(tmp_path, "functions/a.py", "x = 2\n", hash_of("x = 1\n"))
    assert leftovers(tmp_path) == []


def test_a_path_that_is_no_module_of_the_folder_is_refused(tmp_path: Path) -> None:
    for path in [
        "functions/../x.py",
        "../functions/x.py",
        "/etc/x.py",
        "x.py",
        "functions",
        "functions/x.txt",
        "functions/class.py",
        "other/x.py",
        "functions/.hidden.py",
        "",
    ]:
        root = tmp_path / "functions"
        root.mkdir(exist_ok=True)
        with pytest.raises(WorkspaceError):
            save(root, path, "x = 1\n", None)
        assert leftovers(tmp_path) == [], path


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    root = tmp_path / "functions"
    root.mkdir(exist_ok=True)
    (tmp_path / "outside.py").write_text("x = 1\n")
    (root / "a.py").symlink_to(tmp_path / "outside.py")
    (root / "web").symlink_to(tmp_path, target_is_directory=True)
    for path in ("functions/a.py", "functions/web/outside.py"):
        with pytest.raises(WorkspaceError, match="is a link"):
            save(root, path, "x = 2\n", hash_of("x = 1\n"))
    assert (tmp_path / "outside.py").read_text() == "x = 1\n"


def test_a_text_without_a_utf8_form_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="UTF-8"):
        save(tmp_path, "functions/a.py", "x = '\ud800'\n", None)
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_explained(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(WorkspaceError, match="cannot be written"):
        save(tmp_path, "functions/a.py", "x = 1\n", None)


def test_a_file_in_the_place_of_a_folder_is_explained(tmp_path: Path) -> None:
    (tmp_path / "web").write_text("")
    with pytest.raises(WorkspaceError, match="cannot be written"):
        save(tmp_path, "functions/web/pages.py", "x = 1\n", None)


def test_a_disk_that_takes_no_more_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(WorkspaceError, match="nothing was changed"):
            save(tmp_path, "functions/a.py", "x" * 1000, hash_of("x = 1\n"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ((tmp_path / "a.py").read_text(), leftovers(tmp_path)) == ("x = 1\n", ["a.py"])


def test_a_module_is_removed_only_as_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(StaleFile):
        remove(tmp_path, "functions/a.py", hash_of("x = 2\n"))
    remove(tmp_path, "functions/a.py", hash_of("x = 1\n"))
    assert leftovers(tmp_path) == []
