"""`grants.unattended = "file"`: on a server, exactly the reviewed entries of functions/grants.toml are in force."""

import json
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.access.grants import Grants
from tests.functions.support import Room
from tests.kit.program import knapper

from .support import AGENT, FETCHES, PLAIN, human

in_one_loop = pytest.mark.asyncio(loop_scope="module")
VARIABLE = {"KNAPPER_GRANTS_UNATTENDED": "file"}


@pytest_asyncio.fixture(loop_scope="module")
async def there(here: Room, host: str) -> Room:
    """A pulled function and entry, on a machine where the file decides."""
    granting = here.shop.granting
    granting._settings = granting._settings.model_copy(update={"unattended": "file"})
    await here.save(FETCHES.replace("{HOST}", host), here.root / "functions" / "sky.py")
    (here.root / "functions" / "grants.toml").write_text(f'[weather]\nnetwork = ["{host}"]\nread = ["data/"]\n')
    return here


async def oslo(there: Room) -> object:
    found = await there.shop.call("weather", {"city": "Oslo"})
    return found.value or found.outcome


@in_one_loop
async def test_what_the_file_proposes_is_in_force_as_far_as_the_text_uses_it_where_nobody_can_be_asked(
    there: Room, host: str
) -> None:
    assert await oslo(there) == "rain in Oslo"
    [row] = (await there.shop.grants.listing()).grants
    assert row.in_force == Grants(network=(host,))
    asked = there.shop.granting.approver = human("no")
    assert await oslo(there) == "refused"
    assert len(asked.asked) == 1
    there.shop.granting.approver = None
    (there.root / "functions" / "grants.toml").write_text("")
    assert await oslo(there) == "raised"


@in_one_loop
@pytest.mark.parametrize("is_attended", [False, True], ids=["nobody is asked", "a human can be asked"])
async def test_examples_have_the_time_that_the_file_gives_where_it_decides(there: Room, is_attended: bool) -> None:
    (there.root / "functions" / "grants.toml").write_text("[double]\nseconds = 20\nmemory_mib = 1024\n")
    there.shop.granting.approver = human("yes") if is_attended else None
    found = await there.shop.granting.packages.of_text(PLAIN)
    assert found.grants == (Grants() if is_attended else Grants(seconds=20, memory_mib=1024))


@in_one_loop
async def test_an_agent_gets_no_version_past_the_file_that_nobody_reviewed(there: Room, host: str) -> None:
    worse = FETCHES.replace("{HOST}", host).replace("return self", f'self.fetch("http://{host}/x")\n    return self')
    assert not (await there.shop.replace("weather", worse, author=AGENT)).admitted
    assert await oslo(there) == "rain in Oslo"


def test_doctor_and_the_answer_of_a_failed_call_say_that_the_file_decides(tmp_path: Path, host: str) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "sky.py").write_text(FETCHES.replace("{HOST}/{city}", f"{host}/{{int(city)}}"))
    (tmp_path / "functions" / "grants.toml").write_text(f'[weather]\nnetwork = ["{host}"]\n')
    call = ("functions", "call", "weather", "--args", '{"city": "Oslo"}')
    told = knapper(*call, cwd=tmp_path, environment=VARIABLE).stderr
    assert "by functions/grants.toml alone" in told
    report = json.loads(knapper("doctor", "--json", cwd=tmp_path, environment=VARIABLE).stdout)
    assert report["grants"] == {"unattended": "file"}
