"""A program that ran is kept as a function; its examples are the observed calls and results."""

import json
from typing import Any

import pytest

from tests.conftest import OpenDesk
from tests.grants.support import FETCHES, weather_service
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.contract import said
from tests.kit.desk import VOWELS, answers, outcomes, standings
from tests.kit.drawing import sampled
from tests.kit.sources import function_text

from .support import Person, lay_out

DEF = """
def most_vowels(words: list[str]) -> str:
    return max(words, key=count_vowels)

print(most_vowels(["sky", "queue", "aha"]), most_vowels(["rhythm", "tree"]))
"""
WHOLE = "words = {}\nbest = max(words, key=count_vowels)\nbest + '!'"
KEEP_IT = said("run_program: much like one before").splitlines()[-1]
WORDS = "Find the word with the most vowels.\n\nArgs:\n    words: The words to compare."


async def kept(
    at_desk: OpenDesk, *programs: str, by: str = "run_program", **flags: Any
) -> tuple[list[str], str]:
    """Return the results of these programs and of keeping the last one, and the resulting file."""
    keep = {
        "function_name": "most_vowels",
        "function_code_with_docstring": WORDS,
        "from_program": True,
    }
    wanted: list[dict[str, Any]] = [{"code": code} for code in programs]
    if by == "call_function":
        wanted = [{"name": "run_program", "arguments": arguments} for arguments in wanted]
    calls = [*(Wanted(by, arguments) for arguments in wanted), Wanted("create_function", keep)]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("Done."))], **flags)
    lay_out(desk.workspace.root)
    await desk.workspace.functions.reload()
    told = answers(await desk.say("Go."))
    file = desk.functions / "grown.py"
    return told, file.read_text("utf-8") if file.exists() else ""


@pytest.mark.parametrize("by", ["run_program", "call_function"])
async def test_a_def_of_a_program_is_kept_with_the_calls_that_were_seen(
    at_desk: OpenDesk, by: str
) -> None:
    told, text = await kept(at_desk, DEF, by=by)
    assert ">>> most_vowels(['sky', 'queue', 'aha'])\n    'queue'" in text, told
    assert "from functions.letters import count_vowels" in text


async def test_a_whole_program_is_kept_with_the_values_it_begins_with_as_parameters(
    at_desk: OpenDesk,
) -> None:
    told, text = await kept(
        at_desk, WHOLE.format("['sky', 'queue']"), WHOLE.format("['tree', 'rhythm', 'aha']")
    )
    assert ">>> most_vowels(words=['sky', 'queue'])\n    'queue!'" in text, told
    assert ">>> most_vowels(words=['tree', 'rhythm', 'aha'])\n    'tree!'" in text
    assert KEEP_IT in told[1]


async def test_an_agent_that_makes_no_functions_is_not_advised_to_keep_a_program(
    at_desk: OpenDesk,
) -> None:
    programs = (WHOLE.format("['sky', 'queue']"), WHOLE.format("['tree', 'rhythm', 'aha']"))
    told, _ = await kept(at_desk, *programs, growth__mode="off")
    assert "tree!" in told[1]
    assert KEEP_IT not in told[1]


CALLS = {
    "two calls": ("[count_vowels('{0}'), count_vowels('sky')]", False),
    "calls that have names": (
        "first = count_vowels('{0}')\nsecond = count_vowels('sky')\nfirst, second",
        False,
    ),
    "a loop over what is written": (
        "for word in ['{0}', 'sky']:\n    print(word, count_vowels(word))",
        False,
    ),
    "a list of a call for each": ("[count_vowels(word) for word in ('{0}', 'sky')]", False),
    "a sentence of them": ("f\"{{count_vowels('{0}')}} and {{count_vowels(text='sky')}}\"", False),
    "what they return is added": ("count_vowels('{0}') + count_vowels('sky')", True),
    "what one returns goes into the other": ("count_vowels(f\"{{count_vowels('{0}')}}\")", True),
    "it goes there by a name": ("first = count_vowels('{0}')\ncount_vowels(f'{{first}}')", True),
    "some are selected": ("[word for word in ('{0}', 'sky') if count_vowels(word)]", True),
    "the best of them": ("max(['{0}', 'sky'], key=count_vowels)", True),
}


@pytest.mark.parametrize(("program", "is_advised"), CALLS.values(), ids=CALLS)
async def test_to_keep_a_program_is_advised_if_it_has_logic_of_its_own(
    at_desk: OpenDesk, program: str, is_advised: bool
) -> None:
    told, _ = await kept(at_desk, program.format("aha"), program.format("queue"))
    assert (KEEP_IT in told[1]) == is_advised, told[1]


async def test_what_only_a_program_has_is_not_kept_and_it_says_so(at_desk: OpenDesk) -> None:
    told, text = await kept(at_desk, "each(count_vowels, ['a'])")
    assert "`each` is there in programs only" in told[-1]
    assert text == ""


async def test_without_a_program_or_with_a_hollow_one_there_is_nothing_to_keep(
    at_desk: OpenDesk,
) -> None:
    words = "Return the tax on an amount.\n\nArgs:\n    amount: The amount."
    keep = {"function_name": "tax_of", "function_code_with_docstring": words, "from_program": True}
    code = "def tax_of(amount: int) -> int:\n    return 0\n\n[tax_of(100), tax_of(5)]"
    calls = [
        Wanted("create_function", keep),
        Wanted("run_program", {"code": code}),
        Wanted("create_function", keep),
    ]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("Done."))])
    told = answers(await desk.say("Go."))
    assert "No program has come to its end here." in told[0]
    assert "tax_of" not in desk.workspace.functions.names(), told


def a_def(name: str, signature: str, body: str, words: str, *calls: str) -> tuple[str, str, str]:
    """Return a program with one `def` that is called: its name, its text, and the text with which it is kept."""
    shown = ", ".join(f"{name}({call})" for call in calls)
    return name, f"def {name}{signature}:\n    {body}\n\n[{shown}]", words


KEPT = [
    a_def(
        "vowels_of_all",
        "(words: list[str]) -> int",
        "return sum(count_vowels(word) for word in words)",
        "Count the vowels of all words.\n\nArgs:\n    words: The words.",
        "['aha', 'queue']",
        "['sky']",
    ),
    a_def(
        "celsius_of",
        "(fahrenheit: float) -> float",
        "return round((fahrenheit - 32) * 5 / 9, 2)",
        "Turn degrees Fahrenheit into degrees Celsius.\n\nArgs:\n    fahrenheit: The degrees.",
        "50.0",
        "212.0",
        "-40.0",
    ),
    a_def(
        "rle",
        "(text: str) -> list[list[object]]",
        "from itertools import groupby\n    return [[key, len([*group])] for key, group in groupby(text)]",
        "Return the runs of equal characters, each with its length.\n\nArgs:\n    text: The text.",
        "'aab'",
        "''",
        "'xyz'",
    ),
    a_def(
        "initials",
        "(name: str) -> str",
        "return ''.join(part[0].upper() for part in name.split())",
        "Return the initials of a name.\n\nArgs:\n    name: The name.",
        "'ada lovelace'",
        "'Grace Brewster Hopper'",
        "''",
    ),
    a_def(
        "minutes_of",
        "(clock: str) -> int",
        "hours, minutes = clock.split(':')\n    return int(hours) * 60 + int(minutes)",
        "Turn a time of day into minutes.\n\nArgs:\n    clock: Hours and minutes, such as 9:30.\n\nRaises:\n"
        "    ValueError: it is none.",
        "'9:30'",
        "'0:05'",
        "'23:59'",
    ),
    a_def(
        "median_of",
        "(numbers: list[int]) -> float",
        "rows = sorted(numbers)\n    half = len(rows) // 2\n    if not rows:\n        return 0.0\n"
        "    return float(rows[half]) if len(rows) % 2 else (rows[half - 1] + rows[half]) / 2",
        "Return the median of numbers; 0.0 of none.\n\nArgs:\n    numbers: The numbers.",
        "[3, 1, 2]",
        "[4, 1, 2, 3]",
        "[]",
    ),
]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "code", "words"), sampled([pytest.param(*row, id=row[0]) for row in KEPT], 2)
)
async def test_a_program_is_kept_and_all_its_examples_were_seen(
    at_desk: OpenDesk, name: str, code: str, words: str
) -> None:
    keep = {"function_name": name, "function_code_with_docstring": words, "from_program": True}
    asks = [Ask(Wanted("run_program", {"code": code})), Ask(Wanted("create_function", keep))]
    desk = await at_desk([*asks, Repeat(Say("Done."))])
    lay_out(desk.workspace.root)
    await desk.workspace.functions.reload()
    told = answers(await desk.say("Go."))
    function = desk.workspace.functions.registry.snapshot().functions.get(name)
    assert function is not None, told
    results = await desk.workspace.store.history(desk.agent.name, kinds=("result",))
    seen = {tuple(call) for call in results[0].payload["detail"]["seen"][name]}
    examples = {(example.call, example.expected.strip()) for example in function.examples}
    assert len(examples) >= 2
    assert examples <= seen


READING = function_text(
    "read_all(path: str) -> str",
    "Read a text file.\n\nArgs:\n    path: The file.\n\n"
    "Examples:\n    >>> import tempfile; path = tempfile.mkdtemp() + '/a'; _ = open(path, 'w').write('x')\n"
    "    >>> read_all(path)\n    'x'\n"
    "    >>> other = path + 'b'; _ = open(other, 'w').write('yz')\n    >>> read_all(other)\n    'yz'",
    "with open(path) as file:\n    return file.read()",
)
COUNTING = function_text(
    "count_up(self, text: str) -> int",
    "Count how often it was called, with the length of a text.\n\nArgs:\n    text: Any.",
    'self.state["n"] = self.state.get("n", 0) + 1\nreturn self.state["n"] + len(text)',
)
GRANTED = {
    "files": ("path = 'out/a.txt'\nlen(read_all(path))", "read_all(path)", "import read_all"),
    "its own files": (
        "path = 'out/a.txt'\nlen(open(path).read())",
        "open(path)",
        "def kept_one(path: str)",
    ),
    "a host": (
        "city = 'oslo'\nweather(city).upper()",
        "weather(self, city)",
        "def kept_one(self, city: str)",
    ),
    "in a def": (
        "def loud(city):\n    return weather(city).upper()\ncity = 'oslo'\nloud(city) + '!'",
        "weather(self, city)",
        "    def loud(city):",
    ),
    "a state": (
        "text = 'abc'\ncount_up(text) - count_up(text=text)",
        "self.call('count_up', text=text) - self.call('count_up', text=text)",
        "def kept_one(self, text: str)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "called", "also"), GRANTED.values(), ids=GRANTED)
async def test_a_program_that_calls_what_reaches_outside_is_kept_and_does_the_same(
    at_desk: OpenDesk, code: str, called: str, also: str
) -> None:
    name = code.partition(" = ")[0].rpartition("\n")[2]
    about = f"{name}: What it is about."
    keep = {
        "function_name": "kept_one",
        "function_code_with_docstring": f"Do what the program did.\n\nArgs:\n    {about}",
        "from_program": True,
    }
    steps = [Ask(Wanted("run_program", {"code": code})), Ask(Wanted("create_function", keep))]
    with weather_service() as host:
        desk = await at_desk([*steps, Repeat(Say("Done."))])
        root = desk.workspace.root
        lay_out(root)
        (root / "out" / "a.txt").write_text("twelve chars")
        texts = {"reading": READING, "sky": FETCHES.replace("{HOST}", host), "counting": COUNTING}
        for name, text in texts.items():
            (root / "functions" / f"{name}.py").write_text(text)
        await desk.workspace.functions.reload()
        desk.workspace.functions.granting.approver = Person()
        events = await desk.say("Go.")
        ran, told = answers(events)
        file = (root / "functions" / "grown.py").read_text("utf-8")
        assert outcomes(events)[1] == "returned", (ran, told)
        assert called in file
        assert also in file
        given = {"path": "out/a.txt", "city": "oslo", "text": "abc"}
        function = desk.workspace.functions.registry.snapshot().functions["kept_one"]
        arguments = {name: given[name] for name in function.parameters["properties"]}
        report = await desk.workspace.functions.call("kept_one", arguments)
        assert json.dumps(report.value) == ran.splitlines()[0], report


async def test_a_name_that_an_earlier_program_kept_is_said_to_be_one(at_desk: OpenDesk) -> None:
    told, _ = await kept(
        at_desk, "words = ['aha', 'sky']\nlen(words)", "max(words, key=count_vowels)"
    )
    assert "The program uses `words`, which an earlier program has kept." in told[-1]
    assert "`words = …` at its beginning" in told[-1]


async def test_what_only_an_assistant_can_call_is_not_kept(at_desk: OpenDesk) -> None:
    told, _ = await kept(at_desk, "list_functions(pattern='count_*')")
    assert "Only an assistant can call `list_functions`." in told[-1]


async def test_a_program_that_calls_a_function_of_the_module_that_it_joins_is_kept(
    at_desk: OpenDesk,
) -> None:
    code = "words = {}\nsum(count_vowels(word) for word in words)"
    words = "Count the vowels of several words together.\n\nArgs:\n    words: The words."
    keep = {
        "function_name": "vowels_of_all",
        "function_code_with_docstring": words,
        "from_program": True,
    }
    made = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}
    calls = [
        Wanted("create_function", made),
        Wanted("run_program", {"code": code.format("['queueing', 'rhythm']")}),
        Wanted("run_program", {"code": code.format("['aha']")}),
        Wanted("create_function", keep),
    ]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("Done."))])
    events = await desk.say("Go.")
    assert standings(events)[-1] == "trial", answers(events)[-1]
    assert "import count_vowels" not in (desk.functions / "grown.py").read_text("utf-8")


PRIMES = "[number for number in range(2, {0}) if all(number % less for less in range(2, number))]"


@pytest.mark.parametrize(
    ("program", "written"),
    [
        (PRIMES.format(30), "`2`, `30`"),
        ("sorted([3, 1, 2])", "`3`, `2`"),
        ("count_vowels('queueing') + count_vowels('sky')", "`'queueing'`, `'sky'`"),
        ("import math\nround(math.sqrt(2.5), 3)", "`2.5`, `3`"),
        ("words = 'a b'.split()\nlen(words)", "`'a b'`"),
        ("import datetime\nstr(datetime.date.today().year + 5)", ""),  # another value each day
        ("limit = 30\n" + PRIMES.format("limit"), ""),
        ("open('notes.txt').read().count('e')", ""),  # what is in a file changes
    ],
)
async def test_a_program_that_would_always_return_the_same_is_kept_with_a_parameter_only(
    at_desk: OpenDesk, program: str, written: str
) -> None:
    told, _ = await kept(at_desk, program)
    says = f"`most_vowels()` would always return the same: its values ({written}) are fixed. Run it once more with"
    assert (says in told[1]) is bool(written), told
