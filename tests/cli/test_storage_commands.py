"""`knapper storage`: a workspace's state in a database is copied, checked, and rejected if it is foreign."""

from pathlib import Path

from tests.kit.program import knapper


def test_a_workspace_moves_into_a_database_and_belongs_to_one_folder(tmp_path: Path, database: str) -> None:
    (tmp_path / "functions").mkdir()
    (elsewhere := tmp_path / "elsewhere" / "functions").mkdir(parents=True)
    (elsewhere.parent / "knapper.toml").touch()
    there = {"KNAPPER_STORAGE_URL": database}
    assert knapper("agents", "list", cwd=tmp_path).returncode == 0  # creates the file
    file = f"sqlite:///{tmp_path}/.knapper/state.db"
    copied = knapper("storage", "copy", "--from", file, "--to", database, cwd=tmp_path)
    assert "compared by their hashes" in copied.stdout, copied.stderr
    assert "whole" in knapper("storage", "check", cwd=tmp_path, environment=there).stdout
    told = knapper("storage", "stats", "--json", cwd=tmp_path, environment=there).stdout
    assert '"place":"postgresql://' in told.replace(" ", "")
    refused = knapper("storage", "check", cwd=elsewhere.parent, environment=there)
    assert (refused.returncode, "knapper storage join" in refused.stderr) == (1, True)
    assert knapper("storage", "claim", cwd=elsewhere.parent, environment=there).returncode == 0
    assert knapper("storage", "check", cwd=elsewhere.parent, environment=there).returncode == 0


def test_a_database_that_only_the_folder_names_is_used_after_a_yes(tmp_path: Path, database: str) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").write_text(f'[storage]\nurl = "{database}"\n')
    refused = knapper("storage", "check", cwd=tmp_path)
    assert "you did not confirm here" in refused.stderr
    assert knapper("storage", "confirm", cwd=tmp_path).returncode == 0
    assert knapper("storage", "check", cwd=tmp_path).stdout.strip() == "✓ whole: 0 turns with 0 entries"


def test_a_state_that_is_not_there_is_not_copied(tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    done = knapper(
        "storage", "copy", "--from", f"sqlite:///{tmp_path}/typo.db", "--to", f"sqlite:///{new}", cwd=tmp_path
    )
    assert (done.returncode, "There is no state at" in done.stderr) == (1, True)
    assert not [*tmp_path.glob("*.db")]
