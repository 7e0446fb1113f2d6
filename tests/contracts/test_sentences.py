"""What people and models read, as the program says it: one table a door, and a section for each row.

A row is what is done; `sentences.md` has what comes back, under the row's name.
"""

import json
import shlex
from pathlib import Path

import pytest

from agent_core.base.events import GrantAsked
from tests.conftest import OpenDesk
from tests.contracts.commands import run_commands
from tests.grants.support import human
from tests.interfaces.support import COUNT_VOWELS, FLAWED, flags
from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted
from tests.kit.contract import COMMAND, SENTENCES, Contracts, read_sections, steady
from tests.kit.desk import SHIPPING, answers, of
from tests.kit.program import knapper

UNDESCRIBED = "def broken(x):\n    pass\n"
UNPROVEN = '''\
def mood(text: str) -> str:
    """Tell the mood of a text.

    Args:
        text: The text.
    """
    return "calm" if text.islower() else "loud"
'''
WRITES = '''\
def note(word: str) -> int:
    """Keep a word in a file of notes.

    Args:
        word: The word.
    """
    with open("out/notes.txt", "a") as file:
        return file.write(word)
'''
FAILS = '''\
def third(values: list[int]) -> int:
    """Return the third of some values.

    Args:
        values: The values.

    >>> third([1, 2, 3])
    3
    >>> third([4, 5, 9, 2])
    9
    """
    return values[2]
'''
LOOP = "words = {}\nmost = ''\nfor word in words:\n    if count_vowels(word) > 1:\n        most = word.upper()\nmost"


def created(name: str, code: str, **more: str) -> Wanted:
    """Return the call that makes a function."""
    return Wanted(
        "create_function", {"function_name": name, "function_code_with_docstring": code, **more}
    )


def program(code: str) -> Wanted:
    """Return the call that runs a program."""
    return Wanted("run_program", {"code": code})


VOWELS = created("count_vowels", COUNT_VOWELS, module_name="words")
BROKEN = created("broken", UNDESCRIBED)
CALLS: dict[str, Wanted] = {
    "create_function: it joins": VOWELS,
    "create_function: it is there already": VOWELS,
    "create_function: it repeats another": created(
        "vowels", COUNT_VOWELS.replace("count_vowels", "vowels")
    ),
    "create_function: nothing is described": BROKEN,
    "create_function: the same code again": BROKEN,
    "create_function: an example disagrees": created(
        "shipping", SHIPPING.replace("    9\n", "    8\n")
    ),
    "create_function: no module can be called so": created("mood", UNPROVEN, module_name="1st"),
    "create_function: no example": created("mood", UNPROVEN),
    "create_function: results are asked for": created("shipping", SHIPPING),
    "create_function: another that joins": created("third", FAILS, module_name="lists"),
    "edit_function: it is changed": Wanted(
        "edit_function",
        {
            "function_name": "third",
            "changes": [
                {"old_text": "Return the third of some", "new_text": "Tell the third of the"}
            ],
        },
    ),
    "edit_function: the text is not there": Wanted(
        "edit_function",
        {"function_name": "third", "changes": [{"old_text": "fourth", "new_text": "fifth"}]},
    ),
    "add_example: it has it already": Wanted(
        "add_example",
        {"function_name": "third", "call": "third([1, 2, 3])", "expected": "3"},
    ),
    "rollback_function: to the version before": Wanted(
        "rollback_function", {"function_name": "third"}
    ),
    "rollback_function: there is none before": Wanted(
        "rollback_function", {"function_name": "count_vowels"}
    ),
    "function_history: of a function that never was": Wanted(
        "function_history", {"function_name": "nobody"}
    ),
    "introspect_function: a function": Wanted(
        "introspect_function", {"function_name": "count_vowels"}
    ),
    "list_functions: nothing of the program's": Wanted(
        "list_functions", {"pattern": "zeppelin", "module": "meta"}
    ),
    "a call: of no function": Wanted("no_such_function", {"n": 1}),
    "a call: no such argument": Wanted("count_vowels", {"letters": "aha"}),
    "a call: no JSON": Wanted("count_vowels", "not json"),
    "a call: an argument is read as another": Wanted("count_vowels", {"Text": "aha"}),
    "a call: it fails": Wanted("third", {"values": [1]}),
    "run_program: nothing may be opened": program("open('notes/today').read()"),
    "run_program: it is not run": program("import numpy\ncreate_function('a', 'b')"),
    "run_program: values are kept": program("few = [1, 2]\nlen(few)"),
    "run_program: it fails": program("count_vowels('aha')\n1 / 0"),
    "run_program: one with logic": program(LOOP.format("['sky', 'queue']")),
    "run_program: much like one before": program(LOOP.format("['tree', 'aha']")),
    "core_memory_append: a line": Wanted(
        "core_memory_append", {"name": "human", "content": "Name: Ada"}
    ),
    "core_memory_replace: not there": Wanted(
        "core_memory_replace",
        {"name": "human", "old_content": "Name: Bob", "new_content": "Name: Eve"},
    ),
    "delete_function: it goes": Wanted("delete_function", {"function_name": "third"}),
    "delete_function: it is not there": Wanted("delete_function", {"function_name": "nobody"}),
}
ASKED: dict[str, Wanted] = {
    "a question: to read and write": created("note", WRITES),
    "a question: to fetch with a secret": created(
        "rate_of",
        '''\
def rate_of(self, currency: str) -> float:
    """Fetch the exchange rate of a currency, in euros.

    Args:
        currency: Its code.
    """
    key = self.secret("RATES_KEY")
    return float(self.fetch(f"https://rates.example.org/{currency}", headers={"X-Key": key}).json()["rate"])
''',
    ),
}
WAITING = (
    created("count_vowels", FLAWED),
    created(
        "twice",
        COUNT_VOWELS.replace("count_vowels", "twice").replace(
            "sum(letter", "2 * count_vowels(text) + sum(letter"
        ),
    ),
    program("count_vowels('aha')"),
)
COMMANDS: dict[str, str] = {
    "no command": "functions lst",
    "no function": "functions show nobody",
    "functions list: none": "functions list",
    "functions create: it joins": "functions create count_vowels words.py",
    "functions create: refused": "functions create flawed flawed.py",
    "functions grant: never": "functions grant count_vowels --write ../notes.txt --yes",
    "functions show: one": "functions show count_vowels",
    "functions call: a value": 'functions call count_vowels --args \'{"text": "aha"}\'',
    "functions call: no such argument": "functions call count_vowels --args '{\"letters\": 1}'",
    "functions test: all agree": "functions test count_vowels",
    "functions history: one": "functions history count_vowels",
    "functions rollback: none before": "functions rollback count_vowels",
    "functions pending: one": "functions pending flawed",
    "functions confirm: refused": "functions confirm nobody",
    "functions good: rated": "functions good count_vowels",
    "functions grant: given": "functions grant count_vowels --network a.example.org --write out/ --yes",
    "functions grants: one": "functions grants",
    "functions revoke: all": "functions revoke count_vowels --all",
    "functions revoke: none is named": "functions revoke count_vowels",
    "functions release: none": "functions release count_vowels",
    "functions delete: gone": "functions delete count_vowels",
    "memory show: nothing": "memory show",
    "memory forget: nothing": "memory forget zeppelin",
    "calls show: none": "calls show 99",
    "agents show: none": "agents show nobody",
    "run: an address that was not confirmed": "run --message Hello",
    "log: nothing": "log",
}
TYPED = (
    "/undo",
    "/changes",
    "/cost",
    "/show",
    "/retry",
    "/pop",
    "/break",
    "/grants",
    "/pending",
    "/agents",
    "/log",
    "/functions nothing",
    "/about nobody",
    "/switch nobody",
    "/nosuch",
    "/attach",
)


async def test_answers_to_a_model_are_kept(
    at_desk: OpenDesk, tmp_path: Path, contracts: Contracts
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "today").write_text("Rain.")
    script: Script = [*(Ask(call) for call in CALLS.values()), Repeat(Say("Done."))]
    desk = await at_desk(script, turn__max_steps=100, model__context_tokens=128_000)
    texts = [steady(text, {}) for text in answers(await desk.say("Go."))]
    contracts.sentences(dict(zip(CALLS, texts, strict=True)))


async def test_what_waits_for_a_refused_function_is_kept(
    at_desk: OpenDesk, contracts: Contracts
) -> None:
    desk = await at_desk([Ask(*WAITING), Repeat(Say("Done."))])
    _, function, waiting = answers(await desk.say("Go."))
    contracts.sentences(
        {
            "a reply: a function waits for one that is refused": function,
            "a reply: a program waits for one that is refused": waiting,
        }
    )


async def test_questions_for_a_grant_are_kept(at_desk: OpenDesk, contracts: Contracts) -> None:
    desk = await at_desk([*(Ask(call) for call in ASKED.values()), Repeat(Say("Done."))])
    desk.workspace.functions.granting.approver = human("yes", "no: not now")
    events = await desk.say("Go.")
    texts = [
        steady("\n".join([*question.says, "", answer]), {})
        for question, answer in zip(of(GrantAsked, events), answers(events), strict=True)
    ]
    contracts.sentences(dict(zip(ASKED, texts, strict=True)))


def test_what_commands_print_is_kept(tmp_path: Path, contracts: Contracts) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "functions").mkdir(parents=True)
    for name, text in {
        "knapper.toml": '[model]\nbase_url = "https://models.example.org/v1"\n',
        "words.py": COUNT_VOWELS,
        "flawed.py": FLAWED.replace("count_vowels", "flawed"),
    }.items():
        (workspace / name).write_text(text)
    environment = {"HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "120", "USER": "ada"}
    commands = [shlex.split(line) for line in COMMANDS.values()]
    texts = {}
    rows = run_commands(commands, workspace, environment)
    for (name, line), (code, out, err) in zip(COMMANDS.items(), rows, strict=True):
        printed = f"$ knapper {line}\n{out}{err}[{code}]"
        texts[name] = steady(printed, {str(tmp_path): "FOLDER"})
    contracts.sentences(texts)


def test_what_the_prompt_says_in_a_new_session_is_kept(
    tmp_path: Path, contracts: Contracts
) -> None:
    (tmp_path / "knapper.toml").touch()
    with scripted([]) as model:
        given = "".join(f"{line}\n" for line in TYPED)
        done = knapper("run", "-y", *flags(model), cwd=tmp_path, given=given)
    text = steady(done.stdout, {model.base_url: "URL"})
    contracts.sentences({"the prompt: commands in a new session": text})


def test_every_section_is_made_by_a_row() -> None:
    source = Path(__file__).read_text("utf-8")
    assert [
        name for name in read_sections() if json.dumps(name, ensure_ascii=False) not in source
    ] == []


def test_a_changed_sentence_is_shown_with_the_command_that_renews_it_and_nothing_is_written() -> (
    None
):
    before = SENTENCES.read_bytes()
    with pytest.raises(pytest.fail.Exception) as failure:
        Contracts(is_renewing=False).sentences({"no function": "There is nothing of that name."})
    assert COMMAND in str(failure.value)
    assert "+There is nothing of that name." in str(failure.value)
    assert "-✗ There is no function `nobody` in functions/." in str(failure.value)
    assert SENTENCES.read_bytes() == before
