"""Granted files and folders: honest use works, and nothing reaches further, at each level, for root and others."""

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox import Access, FunctionCall, Job, Outcome, Raised, Refused, Returned, Sandbox
from sandbox.access import AccessRefused
from sandbox.confine.opened_grants import walk
from sandbox.processes.startup import LEVELS
from tests.kit.drawing import crossed, sampled
from tests.sandbox import reaching
from tests.sandbox.support import modules

pytestmark = pytest.mark.sampled
_NOBODY = 65534
_ROOTS = ("make_a_device", "give_a_file_away")  # only root may do this, with or without layers
_RENAMEAT2, _EXCHANGE = 316, 2
REPOSITORY = Path(__file__).resolve().parents[2]
IMPORTED = [
    *(Path(str(one.__file__)).resolve().parent for one in (os, pytest)),
    REPOSITORY / "sandbox",
    REPOSITORY,
]
FILES = modules(
    files="""
    import os

    def read(path: str) -> str:
        return open(path).read()

    def write(path: str, text: str = "new") -> None:
        open(path, "w").write(text)
    """
)


def _python_for_everybody() -> str:
    if os.geteuid() != 0:
        pytest.skip("the tests already run as an ordinary user")
    # It can start itself, so it read nothing with the privileges that `setpriv` still held at first.
    code = "import sys; sys.path.insert(0, sys.argv[1]); import sandbox, subprocess"
    code += "; subprocess.run([sys.executable, '-c', ''], check=True); assert sys.version_info >= (3, 11)"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [
            "setpriv",
            f"--reuid={_NOBODY}",
            f"--regid={_NOBODY}",
            "--clear-groups",
            python,
            "-B",
            "-c",
            code,
        ]
        if (
            Path(python).exists()
            and not subprocess.run([*probe, REPOSITORY], capture_output=True).returncode
        ):
            return python
    pytest.skip("no Python ≥ 3.11 and copy of this repository that an ordinary user can read")


@pytest.mark.parametrize(
    ("level", "user"),
    crossed(
        LEVELS, [pytest.param(None, id="whoever-tests"), pytest.param(_NOBODY, id="ordinary-user")]
    ),
)
def test_what_was_granted_is_reached_and_nothing_else(level: str, user: int | None) -> None:
    as_user = (
        [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    )
    python = sys.executable if user is None else _python_for_everybody()
    command = [*as_user, python, "-B", "-m", "tests.sandbox.reaching", level]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, list[str]] = json.loads(done.stdout)
    if "" in results:
        pytest.skip(f"no level {level} here: {results['']}")
    assert results.keys() == {name for file in reaching.FILES for name in reaching.functions(file)}
    assert {name: failed for name, failed in results.items() if failed} == {}


async def test_where_no_layer_holds_every_attempt_is_noticed() -> None:
    unnoticed = []
    async with reaching.sandbox_without_layers() as sandbox:
        for name in reaching.functions("reaching_attempts.py"):
            if "mount" not in name and (
                os.getuid() == 0 or name not in _ROOTS
            ):  # root would mount on this machine
                with reaching.world() as root:
                    found = await reaching.tried(sandbox, root, "reaching_attempts.py", name)
                unnoticed += [] if found else [name]
    assert unnoticed == []


@pytest_asyncio.fixture(params=sampled(LEVELS, 2), scope="module", loop_scope="package")
async def there(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    async with reaching.sandbox_at(request.param) as sandbox:
        if isinstance(sandbox, str):
            pytest.skip(f"no level {request.param} here: {sandbox}")
        yield sandbox


async def read(sandbox: Sandbox, path: Path, access: Access) -> Outcome:
    return await sandbox.run(
        Job(FILES, "files", FunctionCall("read", {"path": str(path)}), access=access)
    )


async def write(sandbox: Sandbox, path: Path, access: Access) -> Outcome:
    return await sandbox.run(
        Job(FILES, "files", FunctionCall("write", {"path": str(path)}), access=access)
    )


def text_of(outcome: Outcome) -> object:
    return outcome.value if isinstance(outcome, Returned) else outcome


async def test_a_link_in_the_place_of_a_granted_folder_or_on_the_way_is_refused(
    there: Sandbox, tmp_path: Path
) -> None:
    folder, secret = tmp_path / "data", tmp_path / "secret"
    folder.mkdir()
    secret.mkdir()
    for place in (folder, secret):
        (place / "a").write_text(place.name)
    access = Access(readable=(str(folder),))
    assert text_of(await read(there, folder / "a", access)) == "data"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(secret)
    outcome = await read(there, folder / "a", access)
    assert isinstance(outcome, Refused), outcome
    assert "'data' is a symbolic link" in outcome.reason
    outcome = await read(there, tmp_path, Access(readable=(f"{tmp_path}/data/deeper",)))
    assert isinstance(outcome, Refused), outcome
    assert "'data' is a symbolic link" in outcome.reason, "a link on the way, too"


def test_a_folder_that_changes_places_with_a_link_all_the_time_is_itself_or_refused(
    tmp_path: Path,
) -> None:
    for name in ("data", "secret"):
        tmp_path.joinpath(name).mkdir()
    tmp_path.joinpath("link").symlink_to("secret")
    libc, over = ctypes.CDLL(None), threading.Event()
    one, other = f"{tmp_path}/data".encode(), f"{tmp_path}/link".encode()

    def swap() -> None:
        while not over.is_set():
            libc.syscall(_RENAMEAT2, -100, one, -100, other, _EXCHANGE)

    wanted = (tmp_path / "data").stat().st_ino
    with ThreadPoolExecutor() as pool:
        swapping = pool.submit(swap)
        found = {_inode_at(f"{tmp_path}/data") for _time in range(2000)}
        for _time in range(50_000 if len(found) < 2 else 0):
            found.add(_inode_at(f"{tmp_path}/data"))
        over.set()
        swapping.result()
    assert found <= {wanted, None}
    assert len(found) == 2, "the race was not won once: the test shows nothing"


def _inode_at(path: str) -> int | None:
    try:
        descriptor, chain = walk(path)
    except AccessRefused:
        return None
    os.close(descriptor)
    return chain[-1][1]


async def test_what_the_host_replaced_is_seen_as_it_is_now_by_none_but_whom_it_was_granted(
    there: Sandbox, tmp_path: Path
) -> None:
    for name in ("mine", "yours"):
        tmp_path.joinpath(name).mkdir()
    file = tmp_path / "mine/file"
    mine, yours = (Access(readable=(f"{tmp_path}/{name}",)) for name in ("mine/file", "yours"))
    for text in ("old", "new"):
        tmp_path.joinpath("next").write_text(text)
        tmp_path.joinpath("next").replace(file)
        assert text_of(await read(there, file, mine)) == text
    for access in (yours, Access()):
        assert isinstance(await read(there, file, access), Raised)


async def test_a_folder_for_writing_within_one_for_reading_is_both(
    there: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "all/out").mkdir(parents=True)
    access = Access(readable=(f"{tmp_path}/all",), writable=(f"{tmp_path}/all/out",))
    for place, kind in (("all/out/x", Returned), ("all/x", Raised)):
        outcome = await write(there, tmp_path / place, access)
        assert isinstance(outcome, kind), outcome


async def test_what_cannot_be_shown_is_refused_and_said(sandbox: Sandbox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        ("/no/such/folder", "No such file or directory at 'no'"),
        ("/", "the sandbox has its own there"),
        ("/scratch", "the sandbox has its own there"),
        ("/proc", "reaches the kernel"),
        ("/proc/self/root", "reaches the kernel"),
        ("/sys/kernel", "reaches the kernel"),
        ("/dev/null", ""),
        ("relative", "not a plain absolute path"),
        ("/tmp/../etc", "not a plain absolute path"),
        ("//etc", "not a plain absolute path"),
        (f"{tmp_path}/pipe", "neither a file nor a folder"),
    ):
        outcome = await read(sandbox, Path(path), Access(readable=(path,)))
        assert isinstance(outcome, Refused), (path, outcome)
        assert outcome.reason.startswith("access: ")
        assert says in outcome.reason, path


async def test_a_file_with_two_names_is_not_granted_for_writing(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "one").write_text("x")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    outcome = await read(sandbox, tmp_path / "two", Access(writable=(f"{tmp_path}/two",)))
    assert isinstance(outcome, Refused)
    assert "another name" in outcome.reason
    assert (
        text_of(await read(sandbox, tmp_path / "two", Access(readable=(f"{tmp_path}/two",)))) == "x"
    )


async def test_what_is_guarded_is_never_written_through_a_granted_parent(tmp_path: Path) -> None:
    for folder in ("functions/web", ".knapper", "data"):
        tmp_path.joinpath(folder).mkdir(parents=True)
    for file in ("functions/web/page.py", "knapper.toml"):
        tmp_path.joinpath(file).write_text("")
    guarded = [str(tmp_path / name) for name in ("functions", ".knapper", "knapper.toml", ".git")]
    grants = [
        "",
        "functions",
        "functions/web",
        "functions/web/page.py",
        ".knapper",
        "knapper.toml",
        "data",
    ]
    async with await Sandbox.start(packages=(), guarded=guarded) as sandbox:
        for grant in grants:
            outcome = await write(
                sandbox, tmp_path / "data/x", Access(writable=(str(tmp_path / grant),))
            )
            assert isinstance(outcome, Returned if grant == "data" else Refused), (grant, outcome)
            assert "no function may change" in getattr(
                outcome, "reason", "no function may change"
            ), grant
        async with sandbox.share(
            guarded=[f"{tmp_path}/data/.git"]
        ) as sharing:  # which is not there yet
            unborn = await write(
                sharing, tmp_path / "data/.git", Access(writable=(f"{tmp_path}/data",))
            )
            assert isinstance(unborn, Refused), unborn


async def test_those_that_share_each_guard_their_own(tmp_path: Path) -> None:
    async with await Sandbox.start(packages=()) as lender:
        outcomes = []
        for name in ("own", "others"):
            folder = tmp_path / name
            folder.mkdir()
            access = Access(writable=(str(folder),))
            async with lender.share(guarded=[str(tmp_path / "own")]) as sharing:
                outcomes.append(await write(sharing, folder / "x", access))
            outcomes.append(await write(lender, folder / "x", access))
    assert [type(outcome) for outcome in outcomes] == [Refused, Returned, Returned, Returned], (
        outcomes
    )


async def test_what_the_host_imports_is_never_granted_for_writing(sandbox: Sandbox) -> None:
    for folder in IMPORTED:
        outcome = await read(sandbox, folder, Access(writable=(str(folder),)))
        assert isinstance(outcome, Refused), outcome
        assert "no function may change" in outcome.reason


async def test_what_the_workers_user_may_not_read_is_refused_with_whose_it_is(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to have files of two users")
    for name, user in (("mine", 0), ("theirs", 12345)):
        tmp_path.joinpath(name).mkdir(mode=0o700)
        os.chown(tmp_path / name, user, user)
    access = Access(readable=(f"{tmp_path}/mine", f"{tmp_path}/theirs"))
    async with await Sandbox.start(packages=()) as sandbox:
        outcome = await read(sandbox, tmp_path, access)
    assert isinstance(outcome, Refused), outcome
    assert "it belongs to user 12345, mode 700" in outcome.reason


async def test_what_is_written_belongs_to_whom_the_folder_belongs(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's files are that user's")
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 23456)
    async with await Sandbox.start(packages=()) as sandbox:
        if not sandbox.layers["namespaces"]:
            pytest.skip(
                "without a root of their own workers cannot go through this folder's parents"
            )
        access = Access(writable=(str(folder),))
        outcome = await write(sandbox, folder / "new", access)
    assert isinstance(outcome, Returned), outcome
    facts = folder.joinpath("new").stat()
    assert (facts.st_uid, facts.st_gid) == (12345, 23456)
