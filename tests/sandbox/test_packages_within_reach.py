"""Granted packages: imported ahead in a separate zygote, read-only, and trusted no more than necessary."""

import asyncio
import os
import shutil
import socket
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Access, FunctionCall, Job, Outcome, Raised, Refused, Returned, Sandbox
from sandbox.confine import mounts as visible
from sandbox.processes import pool
from sandbox.processes.startup import LEVELS
from tests.kit.drawing import crossed, sampled
from tests.kit.levels import require_imports_ahead
from tests.sandbox.support import modules
from tests.sandbox.test_files_within_reach import there

pytestmark = pytest.mark.sampled
_FIXTURES = (there,)
SLOW = "import importlib.metadata, os\nPID = os.getpid()\n__version__ = importlib.metadata.version('slow')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with a package and its metadata, and another next to it that was not granted."""
    for name in ("slow", "other"):
        info = tmp_path / f"{name}-1.2.dist-info"
        tmp_path.joinpath(name).mkdir()
        info.mkdir()
        tmp_path.joinpath(name, "__init__.py").write_text(SLOW if name == "slow" else "")
        tmp_path.joinpath(name, "data.txt").write_text(f"data of {name}")
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        info.joinpath("RECORD").write_text(
            f"{name}/__init__.py,,\n{name}-1.2.dist-info/METADATA,,\n"
        )
    return tmp_path


def access(folder: Path, *names: str, ahead: bool = True) -> Access:
    return Access(
        packages=tuple((name, str(folder)) for name in names), preload=names if ahead else ()
    )


async def run(sandbox: Sandbox, access: Access, text: str, **arguments: Any) -> Outcome:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    code = modules(m=f"def f(folder: str = '') -> object:\n{lines}")
    return await sandbox.run(Job(code, "m", FunctionCall("f", arguments), access=access))


def value(outcome: Outcome) -> Any:
    return outcome.value if isinstance(outcome, Returned) else outcome


async def test_a_granted_package_is_imported_ahead_and_once(there: Sandbox, folder: Path) -> None:
    require_imports_ahead(there)
    text = "import os, slow\nreturn [slow.PID, slow.PID != os.getpid(), slow.__version__]"
    found = [value(await run(there, access(folder, "slow"), text)) for _time in range(2)]
    assert found[0][1:] == [True, "1.2"]
    assert found[0] == found[1]


async def test_a_package_that_is_not_imported_ahead_is_imported_by_the_function(
    there: Sandbox, folder: Path
) -> None:
    text = "import os, slow\nreturn slow.PID == os.getpid()"
    assert value(await run(there, access(folder, "slow", ahead=False), text)) is True


async def test_no_more_than_the_package_is_read_and_that_only_with_the_grant(
    there: Sandbox, folder: Path
) -> None:
    for text in (
        "import other",
        "import sys\nsys.path.append(folder)\nimport other\nother.__file__.x",
        "open(folder + '/other/data.txt').read()",
        "open(folder + '/slow/new.py', 'w')",
        "import os\nos.rename(folder + '/slow/data.txt', 'x')",
    ):
        outcome = await run(there, access(folder, "slow"), f"{text}\nreturn 1", folder=str(folder))
        assert isinstance(outcome, Raised), (text, outcome)
    outcome = await run(there, Access(), "import slow\nreturn 1")
    assert isinstance(outcome, Raised), outcome
    assert outcome.failure.type == "ModuleNotFoundError"


async def test_a_package_that_cannot_be_imported_ahead_is_said(
    there: Sandbox, tmp_path: Path
) -> None:
    require_imports_ahead(there)
    for number, (text, says) in enumerate(
        (
            (
                "raise ValueError('too old')",
                "packages: broken0 cannot be imported: ValueError: too old",
            ),
            (
                "import missing",
                "packages: broken1 cannot be imported: ModuleNotFoundError: No module named 'missing'",
            ),
            ("raise SystemExit(0)", "packages: broken2 cannot be imported: SystemExit"),
            ("import os\nos._exit(1)\n", "ended"),  # and its zygote with it
        )
    ):
        tmp_path.joinpath(f"broken{number}.py").write_text(text)
        outcome = await run(there, access(tmp_path, f"broken{number}"), "return 1")
        assert isinstance(outcome, Refused), outcome
        assert says in outcome.reason


async def test_a_package_whose_import_has_no_end_refuses_the_call(
    there: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_imports_ahead(there)
    tmp_path.joinpath("endless.py").write_text("while True:\n    pass\n")
    monkeypatch.setattr(pool, "START_S", 1.0)
    outcome = await run(there, access(tmp_path, "endless"), "return 1")
    assert isinstance(outcome, Refused), outcome
    assert "endless took more than 1 s to be imported" in outcome.reason


async def test_an_extension_module_of_a_package_is_imported_ahead_at_every_level(
    there: Sandbox, tmp_path: Path
) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    source = next(visible.extensions().glob(f"_bisect*{suffix}"), None)
    if source is None:
        pytest.skip("this interpreter has no extension module in a file")
    tmp_path.joinpath("native").mkdir()
    tmp_path.joinpath("native/__init__.py").write_text("from . import _bisect\n")
    shutil.copy(source, tmp_path / "native")
    text = "import native\nreturn native._bisect.bisect_right([1, 2], 1)"
    assert value(await run(there, access(tmp_path, "native"), text)) == 1


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a package may try to reach while it is imported."""
    place = tmp_path / "outside"
    place.mkdir()
    place.joinpath("secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"{place}/socket")
        unix.listen()
        for path in (place, place / "socket"):
            path.chmod(0o777)
        yield {"place": str(place), "port": tcp.getsockname()[1], "parent": os.getpid()}


STRIKES = [
    "open(f'{place}/secret').read()",
    "open(f'{place}/new', 'w')",
    "socket.create_connection(('127.0.0.1', port), 1)",
    "socket.socket(socket.AF_UNIX).connect(f'{place}/socket')",
    "subprocess.run(['/bin/true'])",
    "os.kill(parent, 0)",
    "os.chown(place, 12345, 12345)",
]


async def test_what_a_package_does_when_it_is_imported_stays_inside(
    there: Sandbox, tmp_path: Path, outside: dict[str, Any]
) -> None:
    env = tmp_path / "env"
    env.mkdir()
    told = "".join(f"{name} = {what!r}\n" for name, what in outside.items())
    tries = (
        f"try:\n    FOUND.append(({one!r}, {one}))\nexcept OSError:\n    pass\n" for one in STRIKES
    )
    env.joinpath("evil.py").write_text(
        f"import os, socket, subprocess\n{told}FOUND = []\n{''.join(tries)}TRIED = True\n"
    )
    outcome = await run(
        there, access(env, "evil"), "import evil\nreturn [evil.TRIED, str(evil.FOUND)]"
    )
    assert value(outcome) == [True, "[]"]
    assert not (tmp_path / "outside/new").exists()


NULL = "null = os.open('/dev/null', 0)\n"
SPOKEN = [
    pytest.param(
        "real = os.pidfd_open\nos.pidfd_open = lambda pid: real(VICTIM)",
        id="another-process-as-a-worker",
    ),
    pytest.param(f"{NULL}os.pidfd_open = lambda pid: os.dup(null)", id="no-process-at-all"),
    pytest.param(f"{NULL}os.pipe = lambda: (os.dup(null), os.dup(null))", id="no-pipe"),
    pytest.param("import json\njson.dumps = lambda message: 'odd'", id="an-answer-of-no-shape"),
    pytest.param(
        'import json\njson.dumps = lambda message: \'{"kind": "forked"}\'',
        id="an-answer-without-a-number",
    ),
    pytest.param("import json\njson.dumps = lambda message: '[]'", id="an-answer-of-another-kind"),
]


@pytest.mark.parametrize(
    ("text", "there"),
    sampled(crossed(SPOKEN, [at for at in LEVELS if at != "apart"]), 2),
    indirect=["there"],
)
async def test_a_package_that_speaks_for_the_process_that_imported_it_ahead_harms_nobody(
    there: Sandbox, tmp_path: Path, text: str
) -> None:
    require_imports_ahead(there)
    victim = await asyncio.create_subprocess_exec("sleep", "60")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "__init__.py").write_text(f"import os\nVICTIM = {victim.pid}\n{text}\n")
    try:
        async with asyncio.timeout(30):
            outcome = await run(there, access(tmp_path, "bad"), "return 1")
        assert isinstance(outcome, Refused), outcome
        assert victim.returncode is None
        assert value(await run(there, Access(), "return 1")) == 1
    finally:
        victim.kill() if victim.returncode is None else None
        await victim.wait()
