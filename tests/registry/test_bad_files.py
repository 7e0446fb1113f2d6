"""An unusable file is a problem with a place and a fix, never a crash."""

import os
import unicodedata
from pathlib import Path, PurePosixPath

import pytest

from agent_core.base.problem import Problem
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, check_module_name, module_of, read_file
from tests.registry.support import read


def problem_of(root: Path, name: str = "probe.py", limit: int = 262_144) -> Problem:
    found = read_file(root, root / name, limit)
    assert isinstance(found, Problem)
    return found


CONTENTS = {
    "wrong bytes": (b"x = 1\ny = '\xe9'\n", "encoding", 2),
    "declared encoding": (b"# -*- coding: latin-1 -*-\ny = '\xe9'\n", "encoding", 1),
    "utf-16": ("x = 1".encode("utf-16"), "encoding", 1),
}


def test_a_wrong_encoding_is_told_with_its_line(tmp_path: Path) -> None:
    for case, (content, code, line) in CONTENTS.items():
        (tmp_path / "probe.py").write_bytes(content)
        problem = problem_of(tmp_path)
        assert (problem.code, problem.where.path, problem.where.line) == (
            code,
            "functions/probe.py",
            line,
        ), case
        assert "UTF-8" in str(problem.fix), case


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    source = read_file(tmp_path, tmp_path / "probe.py")
    assert isinstance(source, ModuleSource)
    assert source == ModuleSource.of("probe", "x = 1\r\n")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "probe.py").open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    assert problem_of(tmp_path).code == "too-large"


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "functions"
    root.mkdir()
    (tmp_path / "secret.py").write_text("x = 1")
    (root / "probe.py").symlink_to(tmp_path / "secret.py")
    (root / "web").symlink_to(tmp_path, target_is_directory=True)
    (root / "gone.py").symlink_to(root / "nowhere.py")
    assert problem_of(root).code == "symlink"
    assert problem_of(root, "web/secret.py").code == "symlink"
    assert problem_of(root, "web").code == "symlink"
    assert problem_of(root, "gone.py").code == "unreadable"


def test_a_link_within_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("x = 1")
    (tmp_path / "probe.py").symlink_to(tmp_path / "real.py")
    assert isinstance(read_file(tmp_path, Path("probe.py")), ModuleSource)


def test_what_is_no_regular_file_does_not_stop_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "probe.py")
    (tmp_path / "folder.py").mkdir()
    assert problem_of(tmp_path).code == "not-a-file"
    assert problem_of(tmp_path, "folder.py").code == "not-a-file"
    assert problem_of(tmp_path, "missing.py").code == "unreadable"


def test_a_path_that_can_be_no_module_says_why() -> None:
    rows: list[tuple[str, str, str]] = [
        ("climbs", "../x.py", "leaves-folder"),
        ("climbs-later", "web/../../x.py", "leaves-folder"),
        ("absolute", "/etc/x.py", "leaves-folder"),
        ("dash", "my-module.py", "module-name"),
        ("digit", "3d.py", "module-name"),
        ("keyword", "class.py", "module-name"),
        ("keyword-folder", "web/import/x.py", "module-name"),
        ("ligature", "\ufb01x.py", "module-name"),
        ("ligature-folder", "web/\ufb01x/x.py", "module-name"),
        ("two-characters-for-one", "gro\u0308\u00dfe.py", "module-name"),
        ("selector", "da\ufe0fta.py", "module-name"),
        ("joiner-of-graphemes", "da\u034fta/x.py", "module-name"),
        ("filler", "\u115fx.py", "module-name"),
        ("joiner", "da\u200dta.py", "module-name"),
        ("line-separator", "da\u2028ta/x.py", "module-name"),
        ("selector-of-ideographs", "x\U000e0100.py", "module-name"),
        ("ending", "x.txt", "not-python"),
        ("root-package", "__init__.py", "no-module"),
    ]
    for case, path, code in rows:
        problem = module_of(PurePosixPath(path))
        assert isinstance(problem, Problem), case
        assert problem.code == code, case
        assert problem.fix, case


def test_a_path_names_its_module() -> None:
    rows: list[tuple[str, str]] = [
        ("text.py", "text"),
        ("web/pages.py", "web.pages"),
        ("web/__init__.py", "web"),
        ("größe.py", "größe"),
    ]
    for path, module in rows:
        assert module_of(PurePosixPath(path)) == module, path


def test_a_module_name_from_a_model_is_checked() -> None:
    for name in [
        "da\ufe0fta",
        "\u1160x.y",
        "x\u180b",
        "../x",
        "a/b",
        ".x",
        "",
        "a..b",
        "a.",
        "class",
        "a-b",
        "a\\b",
        "a.class",
        "a b",
        "\ufb01x",
    ]:
        assert isinstance(check_module_name(name), Problem), name


def test_a_name_that_python_reads_as_another_says_which(tmp_path: Path) -> None:
    (tmp_path / "\ufb01x.py").write_text("x = 1\n")
    problem = problem_of(tmp_path, "\ufb01x.py")
    assert "is 'fix' to Python" in problem.message
    assert problem.fix == "rename it to `fix`, spelled 'fix'"


def test_a_name_with_what_nobody_sees_says_what_it_holds() -> None:
    for name in ["da\ufe0fta", "da\u200dta", "da\u2028ta", "d\u00a0ata"]:
        problem = check_module_name(name)
        assert problem is not None, name
        hidden = next(char for char in name if not char.isascii())
        assert (
            f"U+{ord(hidden):04X} {unicodedata.name(hidden)} at column {name.index(hidden) + 1}"
            in problem.message
        ), name
        assert hidden not in problem.message, name


TEXTS = {
    "syntax": ("def f(:\n", "syntax", 1),
    "indentation": ("def f():\n    x\n  y\n", "syntax", 3),
    "nul": ("x = 1\ny = '\0'\n", "nul-byte", 2),
    "surrogate": ("x = '\ud800'", "hidden-characters", 1),
    "many parentheses": ("(" * 500 + ")" * 500, "syntax", 1),
    "deep attributes": ("a" + ".b" * 110, "too-deep", 1),
    "deep calls": ("x = 1\nx = " + "f(" * 90 + ")" * 90 + "." + "a." * 20 + "b", "too-deep", 2),
    "long sum": ("x = " + " + ".join(["a"] * 200), "too-deep", 1),
    "long decision": (
        "\n".join(f"{'el' if n else ''}if a == {n}:\n    a = {n}" for n in range(200)),
        "too-deep",
        389,
    ),
    "a sum in lists": ("x = " + "[" * 60 + " + ".join(["a"] * 100) + "]" * 60, "too-deep", 1),
    "long chain": ("x = " + "-" * 900 + "1", "too-deep", 1),
    "longer than the parser takes": ("x = " + "-" * 20_000 + "1", "too-deep", 0),
    "many parameters": (
        f"x = 1\ndef f({', '.join(f'a{n}' for n in range(256))}): pass\n",
        "too-large",
        2,
    ),
    "too long": ("a;" * 200_000, "too-large", 0),
    "two byte characters": ("#" + "é" * 200_000, "too-large", 0),
}


def test_a_text_that_cannot_be_parsed_is_rejected_whole() -> None:
    for case, (text, code, line) in TEXTS.items():
        reading = read(text)
        (problem,) = reading.problems
        assert (problem.code, problem.where.line, reading.parsed) == (code, line, False), case
        assert problem.severity == "refuses", case


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = " + " + ".join(f"'{n}'" for n in range(190)), id="sum"),
        pytest.param(
            "\n".join(f"{'el' if n else ''}if a == {n}:\n    a = {n}" for n in range(190)),
            id="decision",
        ),
        pytest.param("x = " + "a if b else " * 190 + "a", id="conditional expressions"),
    ],
)
def test_a_chain_as_long_as_people_write_them_is_read(text: str) -> None:
    assert read_module(ModuleSource.of("long", text)).problems == ()


def test_a_syntax_problem_shows_line_and_column() -> None:
    (problem,) = read("x = 1\ny = = 2\n").problems
    assert (problem.where.line, problem.where.column) == (2, 5)
    assert "`y = = 2`" in problem.message


def test_a_bad_escape_in_a_string_prints_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert read("def f(): '\\d'\n").parsed
    assert list(recwarn) == []
