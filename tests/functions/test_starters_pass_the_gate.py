"""The functions that every workspace starts with follow the rules for agents."""

import runpy
from pathlib import Path

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Sandbox
from tests.kit.drawing import sampled

DOUBTS = {"weak-examples", "fails-on"}  # warnings that an agent may ignore

FOLDER = Path(__file__).parents[2] / "functions"
STARTERS = {
    name: ModuleSource.of(name, (FOLDER / f"{name}.py").read_text("utf-8"))
    for name in ["clock", "text", "calculate", "files", "tables", "compare"]
}
FUNCTIONS = [function for source in STARTERS.values() for function in read_module(source).functions]


@pytest.fixture
def gate(one_sandbox: Sandbox) -> Gate:
    return Gate(one_sandbox)


@pytest.mark.parametrize("source", STARTERS.values(), ids=STARTERS)
async def test_every_starter_passes_the_gate_under_the_agents_policy(
    gate: Gate, source: ModuleSource
) -> None:
    verdict = await gate.judge_module(source, Snapshot.empty(), "agent")
    assert [str(problem) for problem in verdict.problems] == []
    assert {standing for _, standing in verdict.standings} == {"trial"}


@pytest.mark.sampled
@pytest.mark.parametrize("function", sampled(FUNCTIONS, 7), ids=lambda function: function.name)
async def test_a_starter_that_is_sent_again_changes_nothing(gate: Gate, function: Function) -> None:
    source = STARTERS[function.module]
    snapshot = Snapshot.empty().with_module(read_module(source))
    code = "".join(source.text.splitlines(keepends=True)[function.line - 1 : function.end_line])
    verdict = await gate.judge(
        Candidate(function.name, code, function.module, replaces=True), snapshot
    )
    assert [str(problem) for problem in verdict.problems if problem.code not in DOUBTS] == []
    assert verdict.admitted
    assert verdict.module_text == source.text


def test_every_starter_is_a_short_module_of_a_few_functions() -> None:
    for name, source in STARTERS.items():
        assert source.text.count("\n") <= 150, name
        assert 2 <= len(read_module(source).functions) <= 6, name


@pytest.mark.parametrize(
    ("function", "more", "result"),
    [
        ("count_text", (), {"characters": 25, "words": 6, "lines": 2, "sentences": 2}),
        ("most_frequent_words", (1,), [("a", 2)]),
        ("extract_between", ("[", "]"), ["todo"]),
    ],
)
def test_what_is_asked_of_a_text_can_be_asked_of_a_file(
    tmp_path: Path, function: str, more: tuple[object, ...], result: object
) -> None:
    text = "A word, a [todo].\nSo on.\n"
    (tmp_path / "my notes.TXT").write_text(text)
    starter = runpy.run_path(str(FOLDER / "text.py"))[function]
    assert starter(str(tmp_path / "my notes.TXT"), *more) == starter(text, *more) == result


def test_a_sentence_that_ends_in_the_name_of_a_file_is_a_text_and_a_path_without_a_file_is_none() -> (
    None
):
    count = runpy.run_path(str(FOLDER / "text.py"))["count_text"]
    for text in ("I changed plan.txt", "Have a look at docs/GUIDE.md", f"{'So ' * 200}see LOG.md"):
        assert count(text)["words"] == len(text.split()), text
    for path in ("mistyped.txt", "docs/mistyped.md", "/no such folder/my notes.txt"):
        with pytest.raises(FileNotFoundError, match="No such file"):
            count(path)
