"""Names that make a tool load or call code are not allowed for modules and functions; other names are."""

from pathlib import Path, PurePosixPath

from agent_core.base.problem import Problem
from agent_core.registry.source import OF_THE_PROGRAM, check_module_name, module_of, read_file
from agent_core.runtime import host_functions
from tests.gate.support import ADD, codes, on_text

from .support import read

MODULES = [
    "conftest",
    "Conftest",
    "web.conftest",
    "sitecustomize",
    "usercustomize.x",
    "setup",
    "noxfile",
    "test_text",
    "web.test_pages",
    "text_test",
    "Test_text",
    "tests",
    "web.test_",
]
FUNCTIONS = [
    "pytest_configure",
    "load_tests",
    "setUpModule",
    "tearDownModule",
    "setup_module",
    "teardown_module",
]


def test_a_module_that_a_tool_would_load_is_rejected_and_another_name_proposed() -> None:
    for name in MODULES:
        problem, of_file = (
            check_module_name(name),
            module_of(PurePosixPath(f"{name.replace('.', '/')}.py")),
        )
        assert isinstance(problem, Problem), name
        assert isinstance(of_file, Problem), name
        assert ("outside of the sandbox" in problem.message, problem.message) == (
            True,
            of_file.message,
        ), name
        assert problem.fix is not None, name
        assert check_module_name(problem.fix.split("`")[1]) is None, name


def test_a_file_that_runs_a_folder_as_a_program_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("x = 1\n")
    problem = read_file(tmp_path, Path("__main__.py"))
    assert isinstance(problem, Problem)
    assert "python" in problem.message


def test_a_topic_may_be_called_as_a_module_of_the_standard_library() -> None:
    for name in [
        "calendar",
        "email",
        "statistics",
        "random",
        "json",
        "os",
        "contest",
        "latest",
        "site",
    ]:
        assert check_module_name(name) is None, name


def test_a_function_that_a_tool_would_call_is_rejected_wherever_it_comes_from() -> None:
    for name in FUNCTIONS:
        assert codes(on_text(ADD.replace("def add", f"def {name}"), name)) >= {"bad-name"}, name
        reading = read(f"def {name}(): ...\ndef other(): ...")
        assert [function.name for function in reading.functions] == ["other"], name
        assert "by that name" in reading.problems[0].message, name


def test_a_function_may_be_called_what_no_tool_calls() -> None:
    for name in ["main", "setup", "pytestify", "test_password", "load_test"]:
        assert "bad-name" not in codes(on_text(ADD.replace("def add", f"def {name}"), name)), name


def test_the_listed_names_are_those_of_the_program() -> None:
    assert {*OF_THE_PROGRAM} == {*host_functions.parameters()}
