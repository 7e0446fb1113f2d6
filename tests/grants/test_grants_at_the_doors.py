"""Grants by commands, in an agent's turn, and where `grants.unattended = "file"` lets the reviewed file decide."""

import json
from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from tests.conftest import OpenDesk
from tests.functions.support import Room
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers
from tests.kit.program import knapper
from tests.kit.terminal import terminal

from .support import AGENT, FETCHES, PLAIN, human


@pytest.fixture
def sky(tmp_path: Path, host: str) -> Path:
    """A workspace with a function that needs a host."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "sky.py").write_text(FETCHES.replace("{HOST}", host))
    return tmp_path


def typed(*arguments: str, cwd: Path, home: Path, given: str = "") -> tuple[int, str, str]:
    """Return the exit code, the standard output and the standard error."""
    done = knapper(*arguments, cwd=cwd, given=given, environment={"XDG_DATA_HOME": str(home)})
    return done.returncode, done.stdout, done.stderr


def test_a_grant_is_given_looked_at_and_taken_back_by_commands(
    sky: Path, home: Path, host: str
) -> None:
    call = ("functions", "call", "weather", "--args", '{"city": "Oslo"}')
    file = sky / "functions" / "grants.toml"
    code, _, said = typed(*call, cwd=sky, home=home)
    assert (code, f"functions grant weather --network {host}" in said) == (1, True)
    code, _, said = typed("functions", "grant", "weather", cwd=sky, home=home, given="y\n")
    assert (code, "give -y" in said, file.exists()) == (2, True, False)
    code, result, _ = typed("functions", "grant", "weather", "-y", "--json", cwd=sky, home=home)
    assert (code, json.loads(result)["grants"]) == (0, {"network": [host]})
    assert "rain in Oslo" in typed(*call, cwd=sky, home=home)[1]
    (row,) = json.loads(typed("functions", "grants", "--json", cwd=sky, home=home)[1])["grants"]
    assert (row["name"], row["grants"], row["in_force"]) == (
        "weather",
        {"network": [host]},
        {"network": [host]},
    )
    assert typed("functions", "revoke", "weather", "--all", cwd=sky, home=home)[0] == 0
    assert typed(*call, cwd=sky, home=home)[0] == 1
    file.write_text("[weather")
    code, result, _ = typed("functions", "grants", "--json", cwd=sky, home=home)
    assert (code, json.loads(result)["problems"][0]["code"]) == (1, "grants-file")
    assert typed("functions", "grant", "weather", "-y", cwd=sky, home=home)[0] == 1
    assert file.read_text() == "[weather"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(
            ("--package", "x @ https://evil.example/x.whl"),
            "cannot be granted",
            id="a-wheel-from-anywhere",
        ),
        pytest.param(("--memory", "512"), "Every call has 512 MiB already", id="the-usual-memory"),
    ],
)
def test_what_cannot_be_granted_is_refused_by_its_name(
    sky: Path, home: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, _, said = typed("functions", "grant", "weather", *arguments, "-y", cwd=sky, home=home)
    assert (code, says in said) == (1, True)


def create(code: str, name: str) -> Wanted:
    wanted = {
        "function_name": name,
        "function_code_with_docstring": code,
        "module_name": "sky",
        "reason": "asked",
    }
    return Wanted("create_function", wanted)


async def test_an_agent_grows_what_fetches_and_uses_it_in_the_same_turn(
    at_desk: OpenDesk, host: str
) -> None:
    desk = await at_desk(
        [
            Ask(create(FETCHES.replace("{HOST}", host), "weather")),
            Ask(Wanted("weather", {"city": "Oslo"})),
            Say("Rain."),
        ]
    )
    desk.workspace.functions.granting.approver = human("yes")
    made, called = answers(await desk.say("What is the weather in Oslo?"))
    assert f"A human lets it: fetch from {host}." in made
    assert "rain in Oslo" in called
    shown = desk.model.requests[-1].functions
    assert not [name for name in shown if "grant" in name or "approve" in name]


async def test_a_yes_for_the_next_call_counts_in_its_turn_and_for_nobody_else(
    at_desk: OpenDesk, host: str
) -> None:
    makes = Ask(create(FETCHES.replace("{HOST}", host), "weather"))
    calls = Ask(Wanted("weather", {"city": "Oslo"}))
    desk = await at_desk([makes, Say("Made."), calls, Say("No."), makes, calls, Say("Rain.")])
    functions = desk.workspace.functions
    functions.granting.approver = human("once")
    await desk.say("Make it.")
    functions.granting.approver = None
    (denied,) = answers(await desk.say("What is the weather in Oslo?"))
    await functions.delete("weather")
    functions.granting.approver = human("once")
    _, called = answers(await desk.say("Make it, and tell me."))
    assert ("rain" in denied, "rain in Oslo" in called) == (False, True)


OPENS = '''\
def opens(path: str, hides: bool = False) -> str:
    """Read a file, and perhaps hide why it fails."""
    try:
        return open(path).read()
    except PermissionError:
        if hides:
            raise ValueError("no") from None
        raise


def has_opened(self, path: str) -> str:
    """Have another function read a file."""
    return self.call("opens", path=path)


def signs(self) -> str:
    """Have another function use a secret."""
    return self.call("signed")


def signed(self) -> str:
    """Use a secret."""
    return self.secret("SKY_KEY")


def fetches(self) -> str:
    """Have another function fetch."""
    return self.call("weather", city="Oslo")


'''
GENERAL = "Fix the arguments or the function"
REFUSED = (
    Wanted("opens", {"path": "data/a.csv"}),
    Wanted("opens", {"path": "data/a.csv", "hides": True}),
    Wanted("has_opened", {"path": "data/a.csv"}),
    Wanted("signs", {}),
    Wanted("fetches", {}),
)
FAILS = 'def fails() -> str:\n    """Fail."""\n    return "a"["b"]\n\n\n'


async def test_after_a_refusal_the_model_reads_what_to_do_instead_and_after_another_failure_to_fix_it(
    at_desk: OpenDesk, host: str
) -> None:
    asked = [*REFUSED * 2, Wanted("fails", {})]
    desk = await at_desk([step for wanted in asked for step in (Ask(wanted), Say("I may not."))])
    desk.put("sky.py", FAILS + OPENS + FETCHES.replace("{HOST}", host))
    (folder := desk.workspace.root / "data").mkdir()
    (folder / "a.csv").write_text("")
    await desk.workspace.functions.reload()
    for who in (human("no"), None):
        desk.workspace.functions.granting.approver = who
        for wanted in REFUSED:
            (told,) = answers(await desk.say("Reach."))
            assert told.startswith("The function raised"), (wanted, told)
            assert GENERAL not in told, wanted
            assert "in a way that needs less, or tell the user" in told, wanted
    assert GENERAL in answers(await desk.say("Fail."))[0]


VARIABLE = {"KNAPPER_GRANTS_UNATTENDED": "file"}


@pytest.fixture
async def there(here: Room, host: str) -> Room:
    """A pulled function and entry, on a machine where the file decides."""
    granting = here.shop.granting
    granting._settings = granting._settings.model_copy(update={"unattended": "file"})
    await here.save(FETCHES.replace("{HOST}", host), here.root / "functions" / "sky.py")
    (here.root / "functions" / "grants.toml").write_text(
        f'[weather]\nnetwork = ["{host}"]\nread = ["data/"]\n'
    )
    return here


async def oslo(there: Room) -> object:
    found = await there.shop.call("weather", {"city": "Oslo"})
    return found.value or found.outcome


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


@pytest.mark.parametrize(
    "is_attended", [False, True], ids=["nobody is asked", "a human can be asked"]
)
async def test_examples_have_the_time_that_the_file_gives_where_it_decides(
    there: Room, is_attended: bool
) -> None:
    (there.root / "functions" / "grants.toml").write_text(
        "[double]\nseconds = 20\nmemory_mib = 1024\n"
    )
    there.shop.granting.approver = human("yes") if is_attended else None
    found = await there.shop.granting.packages.of_text(PLAIN)
    assert found.grants == (Grants() if is_attended else Grants(seconds=20, memory_mib=1024))


async def test_an_agent_gets_no_version_past_the_file_that_nobody_reviewed(
    there: Room, host: str
) -> None:
    worse = FETCHES.replace("{HOST}", host).replace(
        "return self", f'self.fetch("http://{host}/x")\n    return self'
    )
    assert not (await there.shop.replace("weather", worse, author=AGENT)).admitted
    assert await oslo(there) == "rain in Oslo"


def test_doctor_and_the_answer_of_a_failed_call_say_that_the_file_decides(
    tmp_path: Path, host: str
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "sky.py").write_text(
        FETCHES.replace("{HOST}/{city}", f"{host}/{{int(city)}}")
    )
    (tmp_path / "functions" / "grants.toml").write_text(f'[weather]\nnetwork = ["{host}"]\n')
    call = ("functions", "call", "weather", "--args", '{"city": "Oslo"}')
    told = knapper(*call, cwd=tmp_path, environment=VARIABLE).stderr
    assert "by functions/grants.toml alone" in told
    report = json.loads(knapper("doctor", "--json", cwd=tmp_path, environment=VARIABLE).stdout)
    assert report["grants"] == {"unattended": "file"}


def test_after_a_move_of_the_folder_the_question_says_why_an_earlier_yes_does_not_count(
    tmp_path: Path,
) -> None:
    first, moved = tmp_path / "first", tmp_path / "moved"
    (first / "functions").mkdir(parents=True)
    (first / "data").mkdir()
    (first / "data" / "a.txt").write_text("hi")
    (first / "knapper.toml").touch()
    reads = 'def reads() -> str:\n    """Read."""\n    return open("data/a.txt").read()\n'
    (first / "functions" / "reads.py").write_text(reads)
    assert knapper("functions", "grant", "reads", "--read", "data", "-y", cwd=first).returncode == 0
    told = "A yes to it is stored, but does not count here: it was given in another folder or by another user"
    assert told not in knapper("functions", "grants", cwd=first).stdout
    first.rename(moved)
    assert told in knapper("functions", "grants", cwd=moved).stdout
    with terminal("functions", "call", "reads", cwd=moved, columns=140) as screen:
        screen.wait_for("Type o (once)")
        assert told in " ".join(screen.scrolled().split())
        screen.line("y")
        assert screen.exit_code() == 0
    assert told not in knapper("functions", "grants", cwd=moved).stdout
