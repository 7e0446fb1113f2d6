"""Hostile wheels, locks and names: none of it is installed, and none of it runs."""

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Workspace
from agent_core.access.packages import Environment, PackagesError, Pin
from agent_core.access.packages.environment import names_in
from agent_core.access.packages.resolution import Lock, required
from tests.grants.support import human
from tests.kit.levels import require_imports_ahead
from tests.kit.sources import function_text
from tests.packages.support import ABACUS, opened, placed, put, source, wheel

BOARD = """import mmap

_KEPT = mmap.mmap(-1, 16)


def swap(text):
    before = _KEPT[:].rstrip(bytes(1)).decode()
    _KEPT[:] = text.encode().ljust(16, bytes(1))
    return before
"""
SWAPS = "\n\n".join(
    [
        "import board\n",
        function_text(
            "swap(text: str) -> str",
            "Leave a text, and take the one before.\n\nArgs:\n    text: What is left.\n\nReturns:\n    "
            "What was left before.",
            "return board.swap(text)",
        ),
    ]
)


async def test_what_is_no_plain_requirement_never_reaches_pip(
    environment: Environment, root: Path
) -> None:
    options = (
        "--index-url=x",
        "-r other.txt",
        "abacus --hash=sha256:0",
        "abacus\n-e .",
        "abacus; python_version > '3'",
    )
    paths = (
        "abacus @ file:///tmp/a.whl",
        "git+ssh://x/y",
        "./abacus",
        "../index/abacus-1.0-py3-none-any.whl",
    )
    names = (
        "rеquests",
        "abacus\u202e",
        "a" * 400,
        "",
    )  # the first with a letter of another alphabet
    for requirement in (*options, *paths, *names):
        with pytest.raises(PackagesError, match="names no package"):
            await environment.resolve([requirement])
    assert not (root / ".knapper/env").exists()


@given(st.text(max_size=40))
def test_no_text_becomes_an_option_or_an_address(text: str) -> None:
    try:
        found = required([text])
    except PackagesError:
        return
    assert found[0].isascii()
    assert found[0][0].isalnum()
    assert not set(found[0]) & set("/:;@ \n'\"\\")


def test_a_wheel_with_what_must_not_be_there_is_refused_unopened(tmp_path: Path) -> None:
    for file, told in {
        "../../escaped.py": "leaves its folder",
        "/tmp/escaped.py": "leaves its folder",
        "evil-1.0.data/purelib/../../../escaped.py": "leaves its folder",
        "json.py": "`json`",
        "evil-1.0.data/purelib/json/__init__.py": "`json`",
        "pydantic/__init__.py": "`pydantic`",
        "functions/__init__.py": "`functions`",
        "sandbox/wire/protocol.py": "`sandbox`",
        "sitecustomize.py": "`sitecustomize`",
    }.items():
        path = wheel(tmp_path, "evil", "1.0", {"evil.py": "", file: ""})
        with pytest.raises(PackagesError, match=told):
            names_in(path, {"pydantic": "pydantic"})


async def test_what_is_refused_leaves_neither_a_folder_nor_a_pin(
    environment: Environment, index: Path, root: Path
) -> None:
    wheel(index, "evil", "1.0", {"evil.py": "", "pydantic/__init__.py": ""})
    with pytest.raises(PackagesError, match="`pydantic`"):
        await put(environment, "evil")
    assert list((root / ".knapper/env").iterdir()) == []
    assert not (root / "functions/requirements.lock").exists()


def test_a_package_that_all_functions_see_is_no_stranger_to_its_own_name(tmp_path: Path) -> None:
    path = wheel(tmp_path, "pydantic", "2.0", {"pydantic/__init__.py": "", "pydantic_extra.py": ""})
    assert names_in(path, {"pydantic": "pydantic"}) == {"pydantic_extra": "pydantic"}


async def test_nothing_of_a_package_runs_when_it_is_installed_and_nothing_that_runs_at_a_start_is_kept(
    environment: Environment, index: Path, root: Path
) -> None:
    canary = root / "canary"
    act = f"open({str(canary)!r}, 'w').close()\n"
    data = {"evil-1.0.data/scripts/evil": "#!python\n", "evil-1.0.data/data/random.py": act}
    entry = {"evil-1.0.dist-info/entry_points.txt": "[console_scripts]\npython = evil:main\n"}
    names = ("evil/__init__.py", "setup.py", "conftest.py", "pip.py")
    wheel(
        index,
        "evil",
        "1.0",
        {**dict.fromkeys(names, act), "evil.pth": f"import os; {act}", **data, **entry},
    )
    folder = await put(environment, "evil")
    assert not canary.exists()
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == ["conftest.py", "evil", "evil-1.0.dist-info", "pip.py", "setup.py"]
    assert {name for name, _ in environment.folders(("evil",))[0]} == {
        "conftest",
        "evil",
        "pip",
        "setup",
    }


def test_a_link_in_a_wheel_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = wheel(tmp_path, "evil", "1.0", {"evil.py": ""})
    info = zipfile.ZipInfo("out")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "/etc")
    with pytest.raises(PackagesError, match="leaves its folder"):
        names_in(path, {})


async def test_a_wheel_that_became_another_after_the_yes_is_not_installed(
    environment: Environment, index: Path
) -> None:
    resolution = await environment.resolve(["abacus"])
    wheel(index, "abacus", "1.0", {"abacus/__init__.py": "print('another')\n"}, ["beads>=1"])
    with pytest.raises(PackagesError, match="with the approved hash"):
        await environment.install(resolution)
    assert environment.find(("abacus",)) is None


async def test_a_wheel_that_is_not_the_one_of_the_lock_is_told_before_anybody_is_asked(
    environment: Environment, root: Path
) -> None:
    Lock(root / "functions").put(("beads",), (Pin("beads", "2.0", "0" * 64),))
    with pytest.raises(PackagesError, match="is not the file that"):
        await environment.resolve(["beads"])


async def test_a_dependency_that_is_source_alone_is_never_built(
    environment: Environment, index: Path, root: Path
) -> None:
    source(index, "strange", "1.0", root / "canary")
    wheel(index, "abacus", "2.0", ABACUS, ["beads", "strange"])
    with pytest.raises(PackagesError, match="no wheel of `strange`"):
        await environment.resolve(["abacus>=2"])
    assert not (root / "canary").exists()


async def test_what_is_larger_than_it_may_be_is_not_unpacked(index: Path, root: Path) -> None:
    wheel(index, "huge", "1.0", {"huge.py": "#" * (40 << 20)})
    with pytest.raises(PackagesError, match="larger than 2 MiB"):
        await put(opened(root, most_mib=2), "huge")
    assert list((root / ".knapper/env").iterdir()) == []


def test_a_lock_from_elsewhere_installs_nothing_and_lets_nothing_be_found(
    environment: Environment, root: Path, tmp_path: Path
) -> None:
    placed(root, "abacus")
    assert environment.find(("abacus",))
    root.rename(tmp_path / "moved")  # like an unpacked folder: the same files in another place
    there = opened(tmp_path / "moved")
    assert there.sections()
    assert there.folders(("abacus",)) == ((), ())


def test_a_folder_whose_facts_were_changed_is_not_used(
    environment: Environment, root: Path
) -> None:
    folder = placed(root, "abacus")
    facts = folder.parent / f"{folder.name}.json"
    facts.write_text(facts.read_text().replace('\\"size\\": 1', '\\"size\\": 2'))
    assert '\\"size\\": 2' in facts.read_text()
    assert environment.folders(("abacus",)) == ((), ())


def test_a_folder_whose_files_were_changed_by_a_pull_is_not_used(root: Path) -> None:
    for path, text in {
        "extra.py": "",
        "abacus/__init__.py": "evil",
        "abacus/deep/down.py": "",
    }.items():
        folder = placed(root, "abacus", files={"abacus/__init__.py": "good"})
        assert opened(root).find(("abacus",)) is not None
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        assert opened(root).find(("abacus",)) is None, path


async def test_a_lock_that_is_not_understood_counts_for_nothing_and_is_not_written_over(
    environment: Environment, root: Path
) -> None:
    placed(root, "abacus")
    lock = root / "functions/requirements.lock"
    good = lock.read_text()
    options = (
        "--index-url https://elsewhere",
        "-r other.txt",
        "# for: --index-url=x",
        "<<<<<<< HEAD",
    )
    pins = ("abacus @ file:///tmp/a.whl", "abacus==1.0", "abacus==1.0 --hash=sha256:" + "0" * 63)
    for line in (*options, *pins):
        lock.write_text(text := f"{good}{line}\n")
        assert environment.folders(("abacus",)) == ((), ()), line
        with pytest.raises(PackagesError, match="none of it counts"):
            await environment.resolve(["beads"])
        assert lock.read_text() == text, line


def test_a_lock_that_is_a_link_is_not_followed(
    environment: Environment, root: Path, tmp_path: Path
) -> None:
    (root / "functions/requirements.lock").symlink_to(tmp_path / "index")
    assert "none of it counts" in environment.problem


async def test_an_environment_that_is_a_link_is_not_written_through(
    environment: Environment, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").mkdir()
    (root / ".knapper/env").symlink_to(tmp_path / "victim")
    with pytest.raises(PackagesError, match="cannot hold packages"):
        await environment.resolve(["abacus"])
    assert list((tmp_path / "victim").iterdir()) == []


def test_a_newer_pin_in_a_pulled_lock_is_not_what_is_installed(
    environment: Environment, root: Path
) -> None:
    placed(root, "beads")
    assert environment.find(("beads",))
    lock = root / "functions/requirements.lock"
    lock.write_text(lock.read_text().replace("beads==1.0", "beads==9.9"))
    assert environment.find(("beads",)) is None


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        pytest.param(
            lambda patch: patch.setattr(sys, "executable", "/bin/false"),
            "pip failed",
            id="pip fails",
        ),
        pytest.param(
            lambda patch: _away(patch), "cannot be reached", id="no network", marks=pytest.mark.slow
        ),
    ],
)
async def test_where_packages_cannot_be_had_it_is_said_why(
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[pytest.MonkeyPatch], None],
    told: str,
) -> None:
    break_it(monkeypatch)
    with pytest.raises(PackagesError, match=told):
        await environment.resolve(["abacus"])


def _away(patch: pytest.MonkeyPatch) -> None:
    patch.delenv("PIP_NO_INDEX")
    patch.delenv("PIP_FIND_LINKS")
    patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    patch.setenv("PIP_RETRIES", "0")


async def test_what_a_package_that_is_imported_ahead_keeps_is_never_anothers(
    index: Path, root: Path
) -> None:
    require_imports_ahead()
    wheel(index, "board", "1.0", {"board.py": BOARD})
    (root / "functions").mkdir()
    for name in ("swap", "other"):
        (root / "functions" / f"of_{name}.py").write_text(SWAPS.replace("def swap", f"def {name}"))
    async with Workspace.open(root, approver=human("yes")) as workspace:
        shop = workspace.functions
        calls = [("swap", "mine"), ("other", "yours"), ("swap", "done")]
        found = [(await shop.call(name, {"text": text})).value for name, text in calls]
    assert "mine" in (
        found[1],
        found[2],
    )  # the package does carry its state from one call to another, …
    assert found[1] != "mine"  # … but not to another function
