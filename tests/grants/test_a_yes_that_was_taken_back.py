"""An approval that was revoked or narrowed does not return with an older state of the folder."""

import shutil
from pathlib import Path

import pytest

from agent_core.access.grants import NOTHING, Grants
from agent_core.functions.sandbox_client import SandboxClient
from tests.functions.support import room
from tests.kit.drawing import sampled

from .support import PLAIN, now

HOSTS = Grants(network=("a.example.org", "b.example.org"), write=("out/",))


def brought_back(root: Path, folder: Path) -> None:
    for name in (".knapper", "functions"):
        shutil.rmtree(root / name)
        shutil.copytree(folder / name, root / name)


async def agreed(root: Path, sandbox: SandboxClient, older: Path) -> None:
    async with room(root, sandbox) as here:
        await here.shop.create("double", PLAIN, "sums")
        await here.shop.grants.grant("double", HOSTS)
        assert await now(here, "double") == HOSTS
    shutil.rmtree(older, ignore_errors=True)
    shutil.copytree(root, older)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.mark.parametrize("way", ["revoked", "narrowed", "the entry is gone"])
async def test_one_that_was_taken_back_does_not_return(
    root: Path, sandbox: SandboxClient, tmp_path: Path, way: str
) -> None:
    await agreed(root, sandbox, tmp_path / "older")
    async with room(root, sandbox) as here:
        if way == "narrowed":
            await here.shop.grants.revoke("double", Grants(network=("b.example.org",)))
            assert await now(here, "double") == Grants(network=("a.example.org",), write=("out/",))
        elif way == "revoked":
            await here.shop.grants.revoke("double", None)
        else:
            (root / "functions" / "grants.toml").unlink()
            assert await now(here, "double") == NOTHING
    brought_back(root, tmp_path / "older")
    async with room(root, sandbox) as here:
        assert await now(here, "double") == NOTHING


async def test_one_that_is_given_again_counts(
    root: Path, sandbox: SandboxClient, tmp_path: Path
) -> None:
    await agreed(root, sandbox, tmp_path / "older")
    async with room(root, sandbox) as here:
        await here.shop.grants.revoke("double", None)
        await here.shop.grants.grant("double", HOSTS)
    async with room(root, sandbox) as here:
        assert await now(here, "double") == HOSTS


@pytest.mark.sampled
@pytest.mark.parametrize(
    "spoiled", sampled(['{"taken_back": 1}', "{", "link", "[]", "readable"], 2)
)
async def test_a_record_that_cannot_be_trusted_makes_every_yes_count_for_nothing(
    root: Path, sandbox: SandboxClient, tmp_path: Path, home: Path, spoiled: str
) -> None:
    await agreed(root, sandbox, tmp_path / "older")
    (record,) = (home / "knapper" / "workspaces").glob("*.json") or [home]
    if spoiled == "readable":
        record.chmod(0o644)
    elif spoiled == "link":
        record.rename(home / "moved")
        record.symlink_to(home / "moved")
    else:
        record.write_text(spoiled)
    async with room(root, sandbox) as here:
        assert await now(here, "double") == NOTHING
