"""Requirements are resolved, shown, installed once, found again, and removed when no function needs them."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent_core.access.packages import Environment, PackagesError
from agent_core.access.packages.environment import Pip, names_in
from agent_core.access.packages.resolution import Lock, Pin, meaning
from agent_core.base.programs import pip_environment as scrubbed
from agent_core.base.seal import ELSEWHERE
from tests.kit.pace import least_s, time_of
from tests.kit.program import children
from tests.kit.waiting import until_it_is
from tests.packages.support import opened, placed, put, wheel


async def test_a_human_sees_names_versions_sizes_and_what_else_comes(
    environment: Environment,
) -> None:
    resolution = await environment.resolve(["abacus"])
    assert resolution.sentences() == (
        "would be installed: abacus 1.0 (1 kB)",
        "with 1 that it needs: beads 2.0 (1 kB)",
    )
    assert environment.find(("abacus",)) is None


async def test_what_is_agreed_to_is_installed_pinned_found_and_told(
    index: Path, root: Path
) -> None:
    told: list[str] = []
    environment = opened(root, tell=told.append)
    folder = await put(environment, "abacus")
    assert environment.folders(("abacus",)) == (
        (("abacus", str(folder)), ("beads", str(folder))),
        ("abacus",),
    )
    assert dict(environment.projects(("abacus",))) == {"abacus": "abacus"}
    assert (folder / "abacus/__init__.py").exists()
    assert environment.folders(("abacus", "beads")) == ((), ())
    lines = (root / "functions/requirements.lock").read_text().splitlines()
    assert [line.partition(" --hash=sha256:")[0] for line in lines[3:]] == [
        "# for: abacus",
        "abacus==1.0",
        "beads==2.0",
    ]
    assert [told[0], told[-1]] == ["Looking up abacus", ""]
    assert any(line.startswith("Installing") for line in told)
    environment.close()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=" * 100_000, id="equal-signs"),
        pytest.param("a==" * 33_000, id="names-and-equal-signs"),
        pytest.param("==a" * 33_000, id="versions"),
        pytest.param("a==1 --hash=sha256:" * 5_000, id="hashes-on-one-line"),
        pytest.param("a" * 100_000, id="one-word"),
        pytest.param(
            "\n".join(f"p{n}==1 --hash=sha256:{n:064}" for n in range(3_000)),
            id="thousands-of-pins",
        ),
        pytest.param("# for: " + "a, " * 80_000, id="thousands-of-requirements"),
        pytest.param("# for: " + "a.-" * 80_000, id="a-long-requirement"),
        pytest.param("a==" + "1." * 50_000 + " --hash=sha256:0", id="a-long-version"),
        pytest.param("\n" * 300_000, id="more-than-its-limit"),
        pytest.param(" " * 100_000 + "=", id="blanks"),
    ],
)
def test_a_lock_of_any_shape_is_refused_at_once_with_a_short_sentence(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "requirements.lock").write_text(f"# for: abacus\n{text}\n")
    assert least_s(0.1, lambda: time_of(lambda: Lock(tmp_path).read())) <= 0.1
    assert 0 < len(Lock(tmp_path).read().problem) < 250


def test_a_lock_that_would_be_too_long_is_not_written(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    pins = tuple(Pin(f"p{number}", "1" * 100, "0" * 64) for number in range(300))
    for number in range(4):
        lock.put((f"p{number}",), pins)
    with pytest.raises(PackagesError, match="more than 256 KiB"):
        lock.put(("p4",), pins)
    assert len(lock.understood()) == 4


async def test_what_is_installed_is_found_again_without_pip(index: Path, root: Path) -> None:
    there, folder = opened(root), placed(root, "nowhere")
    assert (await there.resolve(["nowhere"])).is_installed
    assert there.folders(("nowhere",)) == ((("nowhere", str(folder)),), ())


def test_import_names_are_known_to_belong_to_their_project(tmp_path: Path) -> None:
    data = {"py_counting-1.0.data/purelib/more.py": "", "py_counting-1.0.data/scripts/counts": ""}
    path = wheel(
        tmp_path, "Py-Counting", "1.0", {"counting/__init__.py": "", "_counting.so": "", **data}
    )
    assert names_in(path, {}) == dict.fromkeys(("counting", "_counting", "more"), "py-counting")


async def test_versions_in_a_requirement_are_kept_to(environment: Environment, index: Path) -> None:
    wheel(index, "beads", "3.0", {"beads.py": ""})
    old, new = await environment.resolve(["beads<3"]), await environment.resolve(["beads"])
    assert [pin.version for pin in (*old.pins, *new.pins)] == ["2.0", "3.0"]


async def test_what_the_lock_pins_is_not_resolved_to_something_newer(
    environment: Environment, index: Path, root: Path
) -> None:
    first = await environment.resolve(["abacus"])
    Lock(root / "functions").put(first.requirements, first.pins)
    wheel(index, "beads", "9.0", {"beads.py": ""})
    again = await environment.resolve(["abacus"])
    assert (again.pins, again.is_installed) == (first.pins, False)


async def test_what_no_function_is_granted_is_removed_and_the_rest_stays(
    environment: Environment, root: Path
) -> None:
    kept, gone = placed(root, "beads"), placed(root, "abacus")
    assert await environment.clean([("beads",)]) == [gone.name]
    assert (kept.is_dir(), gone.exists()) == (True, False)
    assert list(environment.sections()) == [("beads",)]


async def test_what_another_process_uses_is_not_removed(
    environment: Environment, root: Path
) -> None:
    folder = placed(root, "abacus")
    assert environment.find(("abacus",))
    assert await opened(root).clean([]) == []
    assert folder.is_dir()


async def test_what_was_left_half_is_removed_with_the_rest(
    environment: Environment, root: Path
) -> None:
    (root / ".knapper/env/.new-left/root").mkdir(parents=True)
    (root / ".knapper/env/half").mkdir()
    assert await environment.clean([]) == [".new-left", "half"]


async def test_an_interruption_leaves_neither_a_process_nor_a_folder(
    environment: Environment, root: Path
) -> None:
    task = asyncio.ensure_future(environment.resolve(["abacus"]))
    await until_it_is(lambda: children(b"pip"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list((root / ".knapper/env").iterdir()) == []
    assert not children(b"pip")


async def test_pip_that_takes_too_long_is_ended(index: Path, tmp_path: Path) -> None:
    with pytest.raises(PackagesError, match="did not finish within"):
        await Pip(tmp_path, lambda said: None, 1 << 20).run("--version", within_s=0.001)


def test_pip_is_given_no_key_and_no_other_place_to_install_in(tmp_path: Path) -> None:
    around = {
        "OPENAI_API_KEY": "k",
        "KNAPPER_SECRET_X": "s",
        "PIP_TARGET": "/",
        "PIP_INDEX_URL": "u",
        "HOME": "/h",
    }
    given = scrubbed(around, tmp_path)
    assert given.keys() & around.keys() == {"PIP_INDEX_URL", "HOME"}


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([], id="alone"),
        pytest.param(
            ["WARNING: You are using pip version 22.0.", "[notice] A new release of pip is there:"],
            id="remarks",
        ),
    ],
)
def test_a_failure_of_pip_is_told_by_its_last_words(after: list[str]) -> None:
    output = [
        "Collecting a",
        "ERROR: Exception:",
        "Traceback (most recent call last):",
        "  File x",
        "OSError: no space left",
    ]
    assert (
        meaning([*output, *after]).message
        == "pip failed. Its last words: `OSError: no space left`."
    )


async def test_after_a_move_of_the_folder_the_question_says_why_what_is_there_does_not_count(
    index: Path, root: Path
) -> None:
    environment = opened(root)
    await put(environment, "abacus")
    assert (await environment.resolve(["abacus"])).sentences() == ("is installed already",)
    environment.close()
    shutil.move(root, root.with_name("moved"))
    moved = opened(root.with_name("moved"))
    assert (await moved.resolve(["abacus"])).sentences()[-1] == f"{ELSEWHERE}."
    moved.close()
