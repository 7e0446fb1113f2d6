"""Functions written for a MemGPT agent: uses with an equivalent are mapped, all others are named with their line."""

import ast
from typing import Any

import pytest

from agent_core.functions.service.memgpt_functions import adapt, here_already

HEAD = "from memgpt.agent import Agent\n\n\ndef f(self: Agent, text: str) -> str:\n"


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        pytest.param("self.interface.internal_monologue(text)", "self.progress(0, note=text)", id="thought"),
        pytest.param('self.interface.function_message(f"{text}!")', 'self.progress(0, note=f"{text}!")', id="message"),
        pytest.param('self.interface.internal_monologue("é" + text)', 'self.progress(0, note="é" + text)', id="accent"),
        pytest.param("self.progress(1, 2)", "self.progress(1, 2)", id="own"),
    ],
)
def test_what_has_an_equivalent_is_written_so(line: str, becomes: str) -> None:
    found = adapt(f"{HEAD}    {line}\n    return text\n", "a.py")
    assert found.problems == ()
    head = HEAD.replace(": Agent, text", ", text").replace("from memgpt.agent import Agent", "")
    assert found.text == f"{head}    {becomes}\n    return text\n"
    assert [diff for _, diff in found.mapped.values()][:-1] == (
        [f"-    {line}\n+    {becomes}"] if line != becomes else []
    )
    assert found.mapped[4][1] == "-def f(self: Agent, text: str) -> str:\n+def f(self, text: str) -> str:"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param('self.memory.edit_append("human", text)', "take the text as a parameter", id="core"),
        pytest.param(
            "found = self.persistence_manager.recall_memory.text_search(text)", "the agent searches", id="recall"
        ),
        pytest.param("self.interface.assistant_message(text)", "return the text instead", id="say"),
        pytest.param("kept = self.interface.internal_monologue(text)", "self.progress(0, note=…)", id="value-is-used"),
        pytest.param("self.rebuild_memory()", "leave the line out", id="rebuild"),
        pytest.param("text = self.functions_python['g'](text)", "self.call(name, …)", id="other-function"),
        pytest.param("text = self.whatever.there.may_be", "progress, scratch and call", id="unknown"),
    ],
)
def test_what_has_none_is_named_with_its_line_and_what_to_write(line: str, says: str) -> None:
    (problem,) = adapt(f"def f(self, text: str) -> str:\n    {line}\n    return text\n", "a.py").problems
    assert (problem.code, problem.where.line) == ("foreign-context", 2)
    assert line in problem.message
    assert says in (problem.fix or "")


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
    assert [names["extract_date_from_timestamp"](each) for each in ("2026-11-26 10:00", "no")] == ["2026-11-26", None]
    assert [line for line, _ in sorted(found.mapped.items())] == [2, 6]


def test_an_import_that_is_used_is_named_and_one_that_is_not_goes() -> None:
    text = "from memgpt.constants import LIMIT\nimport memgpt\n\n\ndef f(self) -> int:\n    return LIMIT\n"
    found = adapt(text, "a.py")
    assert [(one.code, one.where.line) for one in found.problems] == [("foreign-import", 1)]
    assert found.text.startswith("LIMIT = None\n\n")
    assert "import" not in found.text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("class A:\n    def f(self):\n        return self.memory\n", id="method"),
        pytest.param("def f(x):\n    return x.interface.internal_monologue(x)\n", id="another-name"),
        pytest.param("def f(:\n", id="not-python"),
        pytest.param("def f(self):\n    return self.call('g')\n", id="ours"),
    ],
)
def test_a_text_that_is_not_of_a_foreign_agent_stays_as_it_is(text: str) -> None:
    found = adapt(text, "a.py")
    assert (found.text, found.problems, found.mapped) == (text, (), {})


def test_of_a_function_that_is_here_already_it_is_told_which_parameters_differ() -> None:
    (node,) = ast.parse("def archival_memory_insert(self, content, importance): ...").body
    assert isinstance(node, ast.FunctionDef)
    told = here_already(node, {"archival_memory_insert": ("content", "tags")})
    assert told.endswith("it also takes `tags`; it does not take `importance`")
