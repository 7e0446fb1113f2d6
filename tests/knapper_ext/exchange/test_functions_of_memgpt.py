"""Functions for a MemGPT agent: what is mapped or named with its line, and what its own ten become (docs/gate.md)."""

import ast
import re
from pathlib import Path
from typing import Any

from agent_core.functions.service.memgpt_functions import adapt, here_already
from knapper_ext.exchange.library import ImportedFunction, ImportRequest, import_library
from tests.functions.support import Room

OWN = """send_message(self: Agent, message: str)
pause_heartbeats(self: Agent, minutes: int)
conversation_search(self: Agent, query: str, page: Optional[int] = 0)
conversation_search_date(self: Agent, start_date: str, end_date: str, page: Optional[int] = 0)
archival_memory_insert(self: Agent, content: str)
archival_memory_search(self: Agent, query: str, page: Optional[int] = 0)"""
BASE = "from typing import Optional\n\nfrom memgpt.agent import Agent\n" + "".join(
    f'\n\ndef {signature} -> Optional[str]:\n    """Do it."""\n    return self.interface.done("it")\n'
    for signature in OWN.split("\n")
)


EXTRAS = '''import json
import os
from typing import Optional

import requests
from memgpt.constants import JSON_ENSURE_ASCII, JSON_LOADS_STRICT
from memgpt.openai_tools import completions


def message_chatgpt(self, message: str):
    """Ask another model.

    Args:
        message (str): The question.
    """
    return completions(model="gpt", messages=[{"role": "user", "content": str(message)}])


def read_from_text_file(self, filename: str, line_start: int, num_lines: Optional[int] = 1):
    """Read some lines of a text file.

    Args:
        filename (str): Which file.
        line_start (int): The first line.
        num_lines (Optional[int]): How many.
    """
    if not os.path.exists(filename):
        raise FileNotFoundError(f"there is no {filename}")
    with open(filename, "r") as file:
        lines = file.readlines()
    return "\\n".join(lines[line_start - 1 : line_start - 1 + num_lines])


def append_to_text_file(self, filename: str, content: str):
    """Write a text at the end of a text file.

    Args:
        filename (str): Which file.
        content (str): The text.
    """
    if not os.path.exists(filename):
        raise FileNotFoundError(f"there is no {filename}")
    with open(filename, "a") as file:
        file.write(content + "\\n")


def http_request(self, method: str, url: str, payload_json: Optional[str] = None):
    """Ask a server for something.

    Args:
        method (str): `GET` or `POST`.
        url (str): Its address.
        payload_json (Optional[str]): What is sent, as JSON.
    """
    headers = {"Content-Type": "application/json"}
    if method == "GET":
        response = requests.get(url, headers=headers)
    else:
        data = json.loads(payload_json, strict=JSON_LOADS_STRICT) if payload_json else {}
        response = requests.request(method, url, headers=headers, json=data)
    return {"status_code": response.status_code, "headers": dict(response.headers), "body": response.text}
'''
ROW = re.compile(r"^\| (`.+`) \| (.+) \|$", re.MULTILINE)


def told() -> dict[str, str]:
    """Return the table in the documentation: its result for each name."""
    text = Path(__file__).parents[3].joinpath("docs", "gate.md").read_text()
    table = text.partition("| MemGPT's function | here |")[2].partition("\n\n")[0]
    rows = [
        (names, says.replace("it also takes", "they also take"))
        for names, says in ROW.findall(table)
    ]
    return {name: says for names, says in rows for name in re.findall(r"`(\w+)`", names)}


def became(row: ImportedFunction) -> str:
    """Return the result that the import reports for a function, in the words of the table."""
    (first, *_), codes = row.problems, {problem.code for problem in row.problems}
    if row.outcome == "skipped":
        shown, _, difference = first.message.partition(" is ")[2].partition(
            ": a function of the agent itself; "
        )
        more = re.sub("^it also takes", "they also take", difference).replace(
            "its parameters are the same", "with the same parameters"
        )
        return f"{shown}{',' if more == 'with the same parameters' else ';'} {more}"
    assert row.standing == "draft", row
    needs = [code for code in codes if code.startswith("needs-")]
    if row.name == "http_request":
        assert needs == ["needs-packages"]
        return "a draft; `requests` is asked for at the first call, each host when it comes"
    assert needs == []
    return "drafts; the file is asked for when a call opens it"


async def test_the_documentation_says_what_becomes_of_each_of_the_ten(
    here: Room, tmp_path: Path
) -> None:
    for name, text in (("base", BASE), ("extras", EXTRAS)):
        (tmp_path / f"{name}.py").write_text(text)
    results = [
        row
        for name in ("base", "extras")
        for row in (
            await import_library(
                here.shop, ImportRequest(tmp_path / f"{name}.py"), lambda _: None, lambda _: None
            )
        ).functions
    ]
    outcome, documented = {row.name: became(row) for row in results}, told()
    assert len(documented) == len(outcome) == 10
    assert outcome == documented
    assert here.shop.names() == ["append_to_text_file", "http_request", "read_from_text_file"]


HEAD = "from memgpt.agent import Agent\n\n\ndef f(self: Agent, text: str) -> str:\n"


CONTEXT_USES = (
    "self.progress(1, 2)",
    'text = self.fetch("https://a.example").text()',
    'text = self.secret("KEY")',
    'self.state["last"] = text',
    "text = str(self.now())",
    'text = self.memory.read("human")',
    'self.memory.append("human", text)',
)


def test_what_has_an_equivalent_is_written_so() -> None:
    for line, becomes in (
        ("self.interface.internal_monologue(text)", "self.progress(0, note=text)"),  # thought
        (
            'self.interface.function_message(f"{text}!")',
            'self.progress(0, note=f"{text}!")',
        ),  # message
        (
            'self.interface.internal_monologue("é" + text)',
            'self.progress(0, note="é" + text)',
        ),  # accent
        *((line, line) for line in CONTEXT_USES),
    ):
        found = adapt(f"{HEAD}    {line}\n    return text\n", "a.py")
        assert found.problems == (), line
        head = HEAD.replace(": Agent, text", ", text").replace("from memgpt.agent import Agent", "")
        assert found.text == f"{head}    {becomes}\n    return text\n", line
        assert [diff for _, diff in found.mapped.values()][:-1] == (
            [f"-    {line}\n+    {becomes}"] if line != becomes else []
        ), line
        assert (
            found.mapped[4][1]
            == "-def f(self: Agent, text: str) -> str:\n+def f(self, text: str) -> str:"
        ), line


def test_what_has_none_is_named_with_its_line_and_what_to_write() -> None:
    for line, says in (
        ('self.memory.edit_append("human", text)', "take the text as a parameter"),  # core
        (
            "found = self.persistence_manager.recall_memory.text_search(text)",
            "the agent searches",
        ),  # recall
        ("self.interface.assistant_message(text)", "return the text instead"),  # say
        (
            "kept = self.interface.internal_monologue(text)",
            "self.progress(0, note=…)",
        ),  # value is used
        ("self.rebuild_memory()", "leave the line out"),  # rebuild
        ("text = self.functions_python['g'](text)", "self.call(name, …)"),  # other function
        ("text = self.whatever.there.may_be", "scratch, progress and call"),  # unknown
    ):
        (problem,) = adapt(
            f"def f(self, text: str) -> str:\n    {line}\n    return text\n", "a.py"
        ).problems
        assert (problem.code, problem.where.line) == ("foreign-context", 2), line
        assert line in problem.message, line
        assert says in (problem.fix or ""), line


def test_names_of_its_modules_are_defined_where_they_were_imported() -> None:
    text = (
        "import json\nfrom memgpt.constants import (\n    JSON_ENSURE_ASCII as PLAIN,\n    LIMIT,\n)\n"
        "from memgpt.utils import extract_date_from_timestamp, json_dumps as dumps, parse_json, printd\n\n\n"
        "def f(self) -> int:\n    return dumps(parse_json('{}'))\n"
    )
    found = adapt(text, "a.py")
    assert (found.problems, found.text.count("\n")) == ((), text.count("\n"))
    names: dict[str, Any] = {}
    exec(found.text, names)
    assert (names["f"](None), names["PLAIN"], "LIMIT" in names) == ("{}", False, False)
    assert names["dumps"]({"a": "é"}, indent=None) == '{"a": "é"}'
    assert [names["extract_date_from_timestamp"](each) for each in ("2026-11-26 10:00", "no")] == [
        "2026-11-26",
        None,
    ]
    assert [line for line, _ in sorted(found.mapped.items())] == [2, 6]


def test_an_import_that_is_used_is_named_and_one_that_is_not_goes() -> None:
    text = "from memgpt.constants import LIMIT\nimport memgpt\n\n\ndef f(self) -> int:\n    return LIMIT\n"
    found = adapt(text, "a.py")
    assert [(one.code, one.where.line) for one in found.problems] == [("foreign-import", 1)]
    assert found.text.startswith("LIMIT = None\n\n")
    assert "import" not in found.text


def test_a_text_that_is_not_of_a_foreign_agent_stays_as_it_is() -> None:
    for text in (
        "class A:\n    def f(self):\n        return self.memory\n",  # method
        "def f(x):\n    return x.interface.internal_monologue(x)\n",  # another name
        "def f(:\n",  # not python
        "def f(self):\n    return self.call('g')\n",  # ours
    ):
        found = adapt(text, "a.py")
        assert (found.text, found.problems, found.mapped) == (text, (), {}), text


def test_of_a_function_that_is_here_already_it_is_told_which_parameters_differ() -> None:
    (node,) = ast.parse("def archival_memory_insert(self, content, importance): ...").body
    assert isinstance(node, ast.FunctionDef)
    told = here_already(node, {"archival_memory_insert": ("content", "tags")})
    assert told.endswith("it also takes `tags`; it does not take `importance`")


def test_an_argument_in_parentheses_keeps_them() -> None:
    text = (
        'def think(self, text: str):\n    """Think."""\n'
        '    self.interface.internal_monologue(("thinking "\n        "about it"))\n'
        "    self.interface.assistant_message (\n        (text))\n"
    )
    after = adapt(text, "mine.py").text
    ast.parse(after)
    assert 'self.progress(0, note=("thinking "' in after
    assert "return (\n        (text))" in after
