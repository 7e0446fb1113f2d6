"""`knapper uninstall`: lists every place that the program has made, and deletes nothing; its commands remove them."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_core.workspace import footprint
from tests.kit.program import knapper

VARIABLES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
SERVICES = ("systemd/user/knapper.service", "systemd/user/knapper-worker@.service", "knapper.env")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is no workspace."""
    for path in tmp_path.iterdir():
        path.unlink()
    return tmp_path


def kept(
    home: Path, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:  # Any: JSON
    """Return the document of the command."""
    environment = {"HOME": str(home), **(variables or {})}
    done = knapper("uninstall", "--json", *words, cwd=cwd or home, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_where_nothing_is_it_says_so_and_makes_nothing(tmp_path: Path) -> None:
    done = knapper("uninstall", cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "Nothing was deleted.\n")
    first, _, command, *more = done.stdout.splitlines()
    assert (first, more) == ("Nothing is kept here but the program itself.", [])
    assert "uninstall" in command
    assert list(tmp_path.iterdir()) == []
    assert kept(tmp_path)["places"] == []


@pytest.mark.parametrize("name", ["home", "Users/Ada Lovelace", "it's"])
@pytest.mark.parametrize("has_variables", [False, True])
def test_each_place_is_listed_with_its_size_and_the_commands_remove_all_but_the_functions(
    tmp_path: Path, name: str, has_variables: bool
) -> None:
    (home := tmp_path / name).mkdir(parents=True)
    variables = (
        {each: str(tmp_path / "else where" / each) for each in VARIABLES} if has_variables else {}
    )
    usual = (".local/share", ".config", ".cache")
    data, config, cache = (
        Path(variables.get(each, home / place))
        for each, place in zip(VARIABLES, usual, strict=True)
    )
    write(data / "knapper" / "models" / "weights", "x" * 2_500_000)
    made = [
        write(config / "knapper" / "secrets.toml"),
        write(cache / "knapper" / "prefixes" / "state"),
    ]
    made += [write(config / service) for service in SERVICES]
    for root in (home / "assistant", home / "work" / "deep" / "other", tmp_path / "outside"):
        write(root / "knapper.toml")
        write(root / "functions" / "own.py")
        made.append(write(root / ".knapper" / "state.db"))
    made.append(write(home / "gone" / ".knapper" / "state.db"))
    others = [
        write(home / "strange" / ".knapper" / "file"),
        write(home / ".config" / "others" / "file"),
    ]
    (home / "link").symlink_to(tmp_path / "outside")
    before = files(tmp_path)
    found = kept(home, str(tmp_path / "outside"), str(home), variables=variables)
    assert files(tmp_path) == before, "nothing was deleted"
    sizes = {place["path"]: place["size"] for place in found["places"]}
    folders = [
        data / "knapper",
        config / "knapper",
        cache / "knapper",
        *(config / service for service in SERVICES),
    ]
    roots = (
        home / "assistant",
        home / "work" / "deep" / "other",
        tmp_path / "outside",
        home / "gone",
    )
    assert sizes.keys() == {
        str(place) for place in (*folders, *(root / ".knapper" for root in roots))
    }
    assert (sizes[str(data / "knapper")], sizes[str(home / "gone" / ".knapper")]) == (2_500_000, 1)
    removals = [command for command in found["commands"] if command.startswith("rm ")]
    assert [command for command in found["commands"] if command.startswith("systemctl")] == [
        "systemctl --user disable --now 'knapper-worker@*'",
        "systemctl --user disable --now knapper",
    ]
    subprocess.run(["sh", "-ec", "\n".join(removals)], check=True, cwd=tmp_path)
    left = files(tmp_path)
    assert not left & set(made)
    assert {*others, home / "link", *(root / "functions" / "own.py" for root in roots[:3])} <= left
    assert kept(home, str(tmp_path / "outside"), variables=variables)["places"] == []


def test_a_day_of_work_leaves_nothing_that_is_not_listed(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    around = {"HOME": str(home)}
    root = tmp_path / "outside" / "assistant"
    assert knapper("init", str(root), cwd=home, environment=around).returncode == 0
    assert (
        knapper(
            "secrets", "set", "KEY", cwd=root, environment=around, given="a-long-enough-value\n"
        ).returncode
        == 0
    )
    given = '{"start": "2026-01-01", "end": "2026-01-03"}'
    assert (
        knapper(
            "functions", "call", "days_between", "--args", given, cwd=root, environment=around
        ).returncode
        == 0
    )
    own = {path for path in files(root) if ".knapper" not in path.parts}
    places = [Path(place["path"]) for place in kept(home, cwd=root)["places"]]
    assert {root / ".knapper", home / ".config" / "knapper"} <= set(places), (
        "the workspace that one stands in, too"
    )
    assert [
        path
        for path in files(tmp_path) - own
        if not any(path.is_relative_to(place) for place in places)
    ] == []


def test_a_link_in_place_of_a_folder_is_removed_with_what_it_leads_to(tmp_path: Path) -> None:
    write(tmp_path / "disk" / "models" / "weights")
    (tmp_path / ".local" / "share").mkdir(parents=True)
    (tmp_path / ".local" / "share" / "knapper").symlink_to(tmp_path / "disk")
    (place,) = kept(tmp_path)["places"]
    assert place["size"] == 1
    subprocess.run(["sh", "-ec", *place["remove"]], check=True)
    assert list((tmp_path / ".local" / "share").iterdir()) == []
    assert not (tmp_path / "disk").exists()


def test_a_link_that_came_with_a_folder_is_named_and_what_it_leads_to_is_not(
    tmp_path: Path,
) -> None:
    home, clone = tmp_path / "home", tmp_path / "home" / "clone"
    (home / "Documents").mkdir(parents=True)
    (home / "Documents" / "thesis.txt").write_text("The work of years.")
    (clone / "functions").mkdir(parents=True)
    (clone / "knapper.toml").touch()
    (clone / ".knapper").symlink_to("../Documents")
    told = knapper("uninstall", cwd=clone, environment={"HOME": str(home)}).stdout
    assert "Documents" not in told
    assert f"rm -r -- {clone / '.knapper'}\n" in told


def test_a_path_that_would_be_several_rows_gets_no_command(tmp_path: Path) -> None:
    clone = tmp_path / "clone\n  rm -r -- Documents\n"
    write(clone / ".knapper" / "state.db")
    (clone / "knapper.toml").touch()
    (tmp_path / "own").mkdir()
    told = knapper("uninstall", cwd=tmp_path / "own", environment={"HOME": str(tmp_path)}).stdout
    assert not [row for row in told.splitlines() if row.strip() == "rm -r -- Documents"]
    assert "remove it by hand" in told


def test_without_a_home_it_lists_what_it_can_and_says_what_it_cannot(tmp_path: Path) -> None:
    write(tmp_path / "data" / "knapper" / "grants.key")
    found = kept(Path("nowhere"), cwd=tmp_path, variables={"XDG_DATA_HOME": str(tmp_path / "data")})
    assert [place["path"] for place in found["places"]] == [str(tmp_path / "data" / "knapper")]
    assert [
        "XDG_CONFIG_HOME" in text or "XDG_CACHE_HOME" in text for text in found["problems"]
    ] == [True, True]


def test_a_search_that_is_not_whole_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (tmp_path / f"folder{number}").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for most, is_whole in ((10, True), (9, False)):
        monkeypatch.setattr(footprint, "_MOST_FOLDERS", most)
        assert (footprint.footprint(tmp_path).problems == ()) == is_whole


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = knapper("uninstall", "nowhere", cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert (done.returncode, "nowhere" in done.stderr) == (2, True)
