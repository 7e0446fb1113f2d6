"""The questions of a week's work: exports, mails, a picture, a service with a key, an edit by hand, a weekly report."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_core import Decision, Question
from agent_core.access.grants import Approver, Grants
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Script, Wanted
from tests.kit.desk import Desk, answers
from tests.kit.sources import function_text
from tests.kit.steps import Step
from tests.packages.support import placed

from .support import human


@dataclass
class Owner:
    """A person who gives a folder to all that the agent makes wherever that is offered, and says yes to all else."""

    asked: list[str] = field(default_factory=list)

    async def __call__(self, question: Question) -> Decision:
        """Note the question and answer it."""
        self.asked.append(f"{question.function}: {'; '.join(question.missing.sentences())}")
        return Decision("yes", is_wide=bool(question.maker))


def made(name: str, module: str, signature: str, body: str, examples: str = "") -> Wanted:
    """Return the call that makes a function."""
    arguments = [
        part.strip(" *").split(":")[0]
        for part in signature.partition("(")[2].rpartition(")")[0].split(",")
    ]
    said = "".join(
        f"    {each}: What it is given.\n" for each in arguments if each and each != "self"
    )
    says = (
        f"Do the work of {name.replace('_', ' ')}."
        + (f"\n\nArgs:\n{said}".rstrip() if said else "")
        + examples
    )
    code = function_text(signature, says, body)
    return Wanted(
        "create_function",
        {"function_name": name, "function_code_with_docstring": code, "module_name": module},
    )


def edited(name: str, old: str, new: str) -> Wanted:
    """Return the call that edits a function."""
    changes = [{"old_text": old, "new_text": new}]
    return Wanted(
        "edit_function",
        {"function_name": name, "changes": changes, "reason": "The user wants it so."},
    )


def program(code: str) -> Wanted:
    """Return the call that runs a program."""
    return Wanted("run_program", {"code": code})


SHEETS = "def rows(path):\n    return [int(line) for line in open(path)]\n"
CHARTS = "def draw(path, numbers):\n    with open(path, 'w') as file:\n        file.write(str(numbers))\n"
CHARTS += "def entitle(title):\n    pass\n"
READS = "return [int(line) for line in open(path).read().split()]"
USES_ALL = 'rows = read_brzeg(folder + "/brzeg.csv") + read_cisowa(folder + "/cisowa.xml")\nreturn sum(rows)'
NUMBERS = 'import re\nreturn re.findall(r"[BCD]-[0-9]+", text)'
FOUND = "\n\nExamples:\n    >>> find_numbers('B-1 and C-2')\n    ['B-1', 'C-2']\n    >>> find_numbers('none')\n    []"
UNKNOWN = (
    "import os\ntexts = [read_mail(f'{folder}/{name}') for name in sorted(os.listdir(folder))]"
    "\nreturn [one for text in texts for one in find_numbers(text) if len(one) > water(depots)]"
)
DRAWS = (
    "import os\nimport charts\nmark = len(open(logo).read())\nos.makedirs(os.path.dirname(path), exist_ok=True)\n"
    "charts.draw(path, [*numbers, mark])\nreturn len(numbers)"
)
HOLDERS = 'return self.fetch(f"http://HOST{path}", headers={"X-Works-Key": self.secret("WORKS_KEY")}).text()'
WRITES = (
    "import os\nos.makedirs(reports, exist_ok=True)\npath = f'{reports}/{week}.md'\n"
    'with open(path, "w") as file:\n    file.write(str(water(folder)))\nreturn path'
)
WEEK: dict[str, list[Wanted]] = {
    "1 one figure": [
        program("open('depots/brzeg.csv').read()"),
        made("read_brzeg", "depots", "read_brzeg(path: str) -> list[int]", READS),
        made("read_cisowa", "depots", "read_cisowa(path: str) -> list[int]", f"{READS}[::1]"),
        program("read_brzeg('depots/brzeg.csv'), read_cisowa('depots/cisowa.xml')"),
    ],
    "2 a tool": [
        made("water", "depots", "water(folder: str = 'depots') -> int", USES_ALL),
        program("water()"),
    ],
    "3 a workbook": [
        made(
            "read_workbook",
            "workbooks",
            "read_workbook(path: str) -> list[int]",
            "import sheets\nreturn sheets.rows(path)",
        ),
        edited(
            "water",
            "return sum(rows)",
            "return sum(rows) + sum(read_workbook(folder + '/dolina.xlsx'))",
        ),
        program("water()"),
    ],
    "4 mails": [
        program("import os\n[open(f'mails/{name}').read() for name in os.listdir('mails')]"),
        made("find_numbers", "mails", "find_numbers(text: str) -> list[str]", NUMBERS, FOUND),
        made("read_mail", "mails", "read_mail(path: str) -> str", "return open(path).read()"),
        made(
            "unknown",
            "unknowns",
            "unknown(folder: str = 'mails', depots: str = 'depots') -> list[str]",
            UNKNOWN,
        ),
        program("unknown(), [read_mail(f'mails/{n}') for n in (1, 2)]"),
    ],
    "5 a picture": [
        made("draw", "pictures", "draw(path: str, numbers: list[int], logo: str) -> int", DRAWS),
        program("draw('reports/months.png', [water()], 'logo.png')"),
        program(
            "draw('reports/months.png', [water()], 'logo.png'), open('reports/months.png').read()"
        ),
    ],
    "6 a service": [
        made("get_from_works", "holders", "get_from_works(self, path: str) -> str", HOLDERS),
        program("get_from_works('/holders')"),
        made(
            "holders",
            "holders",
            "holders(self) -> list[str]",
            'return self.call("get_from_works", path="/a").split()',
        ),
        program("holders(), water()"),
    ],
    "7 an edit by hand": [
        edited("find_numbers", '[BCD]-[0-9]+", text)[:1]', '[BCD][-/][0-9]+", text)'),
        program("find_numbers('B/1'), unknown(), unknown('mails')"),
    ],
    "8 a new format": [
        program("open('archive/brzeg.csv').read()"),
        edited("read_brzeg", ".read().split()", '.read().replace(",", "").split()'),
        program("water(), read_brzeg('archive/brzeg.csv')"),
    ],
    "9 a new rule": [
        edited("read_cisowa", "[::1]", "[::-1]"),
        edited("water", "sum(rows)", "abs(sum(rows))"),
        program("water()"),
    ],
    "11 another conversation": [program("water(), read_cisowa('depots/cisowa.xml')")],
    "12 each Monday": [
        made(
            "report",
            "reports",
            "report(week: str, folder: str = 'depots', reports: str = 'reports') -> str",
            WRITES,
        ),
        program("path = report('W47')\nopen(path).read(), open('reports/W47.md').read()"),
    ],
    "14 an export": [program("import os\nopen('export/README.md').read(), os.listdir('export')")],
    "15 a quarter": [
        made(
            "quarter",
            "depots",
            "quarter(number: int, folder: str = 'depots') -> int",
            "return water(folder) * number",
        ),
        program("quarter(3)"),
    ],
}


QUESTIONS = {
    "1 one figure": ["run_program: read depots/brzeg.csv"],
    "3 a workbook": ["read_workbook: import the package sheets"],
    "4 mails": ["run_program: read mails/"],
    "5 a picture": [
        "draw: read logo.png; import the package charts",
        "draw: read and write reports/",
    ],
    "6 a service": [
        "get_from_works: fetch from HOST; use the secret WORKS_KEY",
        "holders: call the function get_from_works, which has grants of its own",
    ],
    "7 an edit by hand": ["unknown: read depots/; read mails/; import the package sheets"],
    "8 a new format": ["run_program: read archive/brzeg.csv"],
    "12 each Monday": ["report: read and write reports/; import the package sheets"],
    "14 an export": ["run_program: read export/README.md"],
}


def lay_out(root: Path) -> None:
    """Write the files that the week is about."""
    files = ["depots/brzeg.csv", "depots/cisowa.xml", "depots/dolina.xlsx", "archive/brzeg.csv"]
    for name in (*files, "mails/1", "mails/2", "logo.png", "export/README.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(
            "1\n2\n" if "depots" in name or "archive" in name else "B-1 and C-2"
        )
    placed(root, "sheets", files={"sheets.py": SHEETS})
    placed(root, "charts", files={"charts.py": CHARTS})


async def edit_by_hand(desk: Desk) -> None:
    """Break the function that finds numbers, as a person in an editor does."""
    file = desk.functions / "mails.py"
    await desk.save("mails.py", file.read_text().replace('+", text)', '+", text)[:1]'))


@pytest.mark.slow
async def test_a_week_of_work_asks_eleven_questions_and_none_of_them_twice(
    at_desk: OpenDesk, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAPPER_SECRET_WORKS_KEY", "wk-29-rivers")
    calls = {
        title: [Wanted(each.name, _with_host(each.arguments, host)) for each in row]
        for title, row in WEEK.items()
    }
    script: Script = [
        step for row in calls.values() for each in row for step in (Ask(each), Say("Done."))
    ]
    desk = await at_desk([*script, Repeat(Say("Done."))])
    lay_out(desk.workspace.root)
    owner = desk.workspace.functions.granting.approver = Owner()
    asked = dict[str, list[str]]()
    for title, row in calls.items():
        if title.startswith("7"):
            await edit_by_hand(desk)
        for each in row:
            (text,) = answers(await desk.say("Go."))
            assert not any(word in text for word in ("was not", "raised", "failed")), (
                title,
                each,
                text,
            )
        asked[title], owner.asked = owner.asked, []
    assert {
        title: [one.replace(host, "HOST") for one in each] for title, each in asked.items() if each
    } == QUESTIONS
    assert sum(map(len, asked.values())) == 11


def _with_host(arguments: object, host: str) -> dict[str, object]:
    assert isinstance(arguments, dict)
    return {
        name: value.replace("HOST", host) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


STARTERS = Path(__file__).parents[2] / "functions" / "files.py"
USES_A_STARTER = made(
    "total", "totals", "total(path: str) -> int", "return sum(map(int, read_text(path).split()))"
)
CALLS: dict[str, Wanted] = {
    "lists": Wanted("list_folder", {"path": "depots"}),
    "reads": Wanted("read_text", {"path": "depots/brzeg.csv"}),
    "makes": USES_A_STARTER,
    "uses it": Wanted("total", {"path": "depots/cisowa.xml"}),
    "in a program": program(
        "read_text('depots/brzeg.csv'), total('depots/brzeg.csv'), list_folder('depots')"
    ),
}


@pytest.mark.parametrize("first", ["lists", "reads", "uses it"])
async def test_a_folder_is_asked_for_once_whether_a_starter_or_a_function_of_the_agent_opens_it_first(
    at_desk: OpenDesk, first: str
) -> None:
    order = [*(["makes"] if first == "uses it" else []), first]
    order += [name for name in CALLS if name not in order]
    desk = await at_desk([Ask(CALLS[name]) for name in order] + [Say("Done.")])
    lay_out(desk.workspace.root)
    await desk.save("files.py", STARTERS.read_text())
    owner = desk.workspace.functions.granting.approver = Owner()
    told = answers(await desk.say("Go."))
    assert not any(
        word in text for text in told for word in ("was not", "raised", "failed", "denied")
    ), told
    assert len(owner.asked) == 1, owner.asked


READS_FOR_A_STRANGER = function_text(
    "send(self, path: str) -> str",
    "Send a file.\n\nArgs:\n    path: The file.",
    'return self.fetch("http://HOST/" + self.call("read_text", path=path)).text()',
)


@pytest.mark.parametrize(
    "case", ["by another agent", "after an edit by hand", "by what may send", "outside of a turn"]
)
async def test_a_starter_has_the_folder_of_an_agent_only_for_that_agent_and_as_it_came(
    at_desk: OpenDesk, host: str, case: str
) -> None:
    reads = CALLS["reads"]
    sends = Wanted("send", {"path": "depots/brzeg.csv"})
    again = [Ask(sends if case == "by what may send" else reads), Say("No.")] * (
        case != "outside of a turn"
    )
    desk = await at_desk([Ask(reads), Say("Done."), *again])
    lay_out(desk.workspace.root)
    await desk.save("files.py", STARTERS.read_text())
    functions = desk.workspace.functions
    functions.granting.approver = Owner()
    await desk.say("Go.")
    if case == "after an edit by hand":
        await desk.save("files.py", STARTERS.read_text().replace('"utf-8-sig"', '"utf-8"'))
    if case == "by what may send":
        await desk.save("sends.py", READS_FOR_A_STRANGER.replace("HOST", host))
        await functions.grants.grant("send", Grants(network=(host,)))
    functions.granting.approver = None
    if case == "outside of a turn":
        report = await functions.call("read_text", {"path": "depots/brzeg.csv"})
        assert report.outcome != "returned"
        return
    agent = await desk.workspace.agent("other") if case == "by another agent" else desk.agent
    (text,) = answers([event async for event in agent.turn("Go.")])
    assert "1\n2" not in text, text
    assert "may not" in text or "grant" in text, text


async def test_a_title_that_a_package_gets_is_no_file_and_a_picture_beside_it_is_one_question(
    at_desk: OpenDesk,
) -> None:
    body = "import charts\ncharts.entitle(title)\ncharts.entitle(unit)\n"
    body += "charts.draw(path, [open(logo).read()])\nreturn path"
    makes = made(
        "draw", "pictures", "draw(path: str, title: str, unit: str, logo: str) -> str", body
    )
    given = {"title": "Seed / month, 2026.5", "unit": "grams", "logo": "logo.png"}
    calls = [Wanted("draw", {"path": path, **given}) for path in ("depots/chart.png", "chart.png")]
    desk = await at_desk([Ask(makes), *map(Ask, calls), Say("Done.")])
    lay_out(desk.workspace.root)
    owner = desk.workspace.functions.granting.approver = Owner()
    answers(await desk.say("Go."))
    assert owner.asked == [
        "draw: read logo.png; read and write depots/chart.png; import the package charts",
        "draw: read and write chart.png",
    ]


PLOTS = "import charts\ncharts.draw(path, [len(open(logo).read())])\nreturn path"
DRAW = "draw(path: str, logo: str) -> str"
PICTURE = Wanted("draw", {"path": "reports/chart.png", "logo": "logo.png"})


async def drawn(
    at_desk: OpenDesk, decide: Approver, *calls: Wanted, body: str = PLOTS
) -> tuple[list[str], Desk]:
    """Return what a model reads of making a function that draws, and of these calls."""
    desk = await at_desk(
        [Ask(made("draw", "pictures", DRAW, body)), *map(Ask, calls), Say("Done.")]
    )
    lay_out(desk.workspace.root)
    (desk.workspace.root / "reports").mkdir()
    desk.workspace.functions.granting.approver = decide
    return answers(await desk.say("Go.")), desk


@pytest.mark.parametrize(
    "body",
    [
        PLOTS,
        f"{PLOTS} if logo else path",
        PLOTS.replace("import charts\n", "import charts as c\n").replace("charts.draw", "c.draw"),
        PLOTS.replace("import charts\n", "from charts import draw as paint\n").replace(
            "charts.draw", "paint"
        ),
        PLOTS.replace("charts.draw(path", "target = path\ncharts.draw(target"),
    ],
)
async def test_a_picture_is_one_question_for_the_package_and_all_files_of_the_call(
    at_desk: OpenDesk, body: str
) -> None:
    owner = Owner()
    told, desk = await drawn(at_desk, owner, PICTURE, PICTURE, body=body)
    assert owner.asked == [
        "draw: read logo.png; read and write reports/chart.png; import the package charts"
    ]
    assert "joined" in told[0]
    assert "needs-packages" in told[0]
    assert all(text.startswith('"reports/chart.png"') for text in told[1:]), told
    assert (desk.workspace.root / "reports/chart.png").read_text() == "[11]"


async def test_a_yes_meant_once_gives_package_and_files_to_one_call(at_desk: OpenDesk) -> None:
    owner = human("once", "no")
    told, _ = await drawn(at_desk, owner, PICTURE, PICTURE)
    assert told[1].startswith('"reports/chart.png"'), told
    assert "not" in told[2], told
    assert [bool(question.missing.packages) for question in owner.asked] == [True, True]


async def drawing(at_desk: OpenDesk, decide: Approver, *pictures: tuple[str, str]) -> Desk:
    """Return a desk at which a function that draws is made, and called in a turn of its own for each picture."""
    script: list[Step] = [Ask(made("draw", "pictures", DRAW, PLOTS)), Say("Made.")]
    for path, logo in pictures:
        script += [Ask(Wanted("draw", {"path": path, "logo": logo})), Say("Done.")]
    desk = await at_desk(script)
    lay_out(desk.workspace.root)
    (desk.workspace.root / "reports").mkdir()
    desk.workspace.functions.granting.approver = decide
    await desk.say("Make it.")
    return desk


@pytest.mark.parametrize("path", [f"reports/{'x' * 300}.png", "/proc/1/root/tmp/x.png"])
async def test_a_path_that_cannot_be_looked_at_is_told_and_ends_no_turn(
    at_desk: OpenDesk, path: str
) -> None:
    desk = await drawing(at_desk, Owner(), (path, "logo.png"))
    (told,) = answers(await desk.say("Go."))
    assert "the program" not in told


async def test_where_nobody_can_be_asked_no_answer_tells_which_files_there_are(
    at_desk: OpenDesk,
) -> None:
    logos = ("logo.png", "nothing.png")
    desk = await drawing(at_desk, Owner(), *(("reports/chart.png", logo) for logo in logos))
    desk.workspace.functions.granting.approver = None
    told = [answers(await desk.say("Go."))[0].replace(logo, "LOGO") for logo in logos]
    assert told[0] == told[1]


async def test_a_new_version_asks_again_only_for_what_it_had(at_desk: OpenDesk) -> None:
    asked: list[Question] = []

    async def owner(question: Question) -> Decision:
        asked.append(question)
        return Decision("yes")

    pictures = (("reports/a.png", "logo.png"), ("reports/b.png", "depots/brzeg.csv"))
    desk = await drawing(at_desk, owner, *pictures)
    await desk.say("Go.")
    file = desk.functions / "pictures.py"
    await desk.save("pictures.py", file.read_text().replace("return path", "return path + ''"))
    await desk.say("And another.")
    assert len(asked) > 1
    for question in asked:
        assert not question.is_again or question.granted.covers(question.missing)


async def test_a_no_to_package_and_files_runs_nothing_and_makes_no_file(at_desk: OpenDesk) -> None:
    told, desk = await drawn(at_desk, human("no"), PICTURE)
    assert "was asked and said no" in told[1]
    assert list((desk.workspace.root / "reports").iterdir()) == []


async def test_a_file_that_was_asked_for_before_the_call_is_not_there_before_the_call_writes_it(
    at_desk: OpenDesk,
) -> None:
    body = PLOTS.replace(
        "import charts\n", "import charts\nimport os\nwas = os.path.exists(path)\n"
    )
    told, _ = await drawn(
        at_desk, human("yes"), PICTURE, body=body.replace("return path", "return f'{path} {was}'")
    )
    assert told[1].startswith('"reports/chart.png False"'), told


async def test_a_function_with_an_example_asks_for_its_package_as_it_joins(
    at_desk: OpenDesk,
) -> None:
    head, body = DRAW.replace("-> str", "-> int"), PLOTS.replace("return path", "return len(path)")
    examples = "\n\nExamples:\n    >>> draw('a.png', 'b.png')\n    5\n    >>> draw('ab.png', 'b.png')\n    6"
    makes = made("draw", "pictures", head, body, examples)
    desk = await at_desk([Ask(makes), Say("Done.")])
    lay_out(desk.workspace.root)
    owner = desk.workspace.functions.granting.approver = Owner()
    await desk.say("Go.")
    assert owner.asked == ["draw: import the package charts"]


async def test_a_named_file_is_asked_for_with_the_package_as_the_function_joins(
    at_desk: OpenDesk,
) -> None:
    owner = Owner()
    body = PLOTS.replace("charts.draw(path", "open('reports/log', 'w').close()\ncharts.draw(path")
    await drawn(at_desk, owner, body=body)
    assert owner.asked == ["draw: read and write reports/log; import the package charts"]


async def test_what_reads_by_a_package_asks_for_it_as_it_joins_since_its_folder_may_be_granted(
    at_desk: OpenDesk,
) -> None:
    owner = Owner()
    told, _ = await drawn(at_desk, owner, body="import charts\nreturn charts.text(path, logo)")
    assert owner.asked == ["draw: import the package charts"], told


async def test_what_waits_for_its_package_is_not_put_where_others_would_import_it(
    at_desk: OpenDesk,
) -> None:
    plain = made("plain", "pictures", "plain(path: str) -> str", "return open(path).read()")
    calls = [plain, made("draw", "pictures", DRAW, PLOTS)]
    code = dict(calls[1].arguments)  # type: ignore[arg-type]  # it is no text
    text = str(code["function_code_with_docstring"]).replace(
        "    import charts\n", "    import charts as c\n"
    )
    code["function_code_with_docstring"] = "import charts\n\n\n" + text.replace(
        "charts.draw", "c.draw"
    )
    desk = await at_desk([Ask(plain), Ask(Wanted("create_function", code)), Say("No."), Say("No.")])
    lay_out(desk.workspace.root)
    owner = desk.workspace.functions.granting.approver = Owner()
    told = answers(await desk.say("Go."))
    assert owner.asked == []
    assert "Give `draw` another module_name" in told[1]


async def test_a_folder_around_a_file_that_was_given_is_there_and_nobody_is_asked_to_make_it(
    at_desk: OpenDesk,
) -> None:
    owner = Owner()
    body = PLOTS.replace(
        "import charts\n",
        "import charts\nfrom pathlib import Path\nPath(path).parent.mkdir(parents=True, exist_ok=True)\n",
    )
    told, _ = await drawn(at_desk, owner, PICTURE, body=body)
    assert told[1].startswith('"reports/chart.png"'), told
    assert len(owner.asked) == 1, owner.asked
