"""`functions check FILE` judges without admitting, and names the places as those of FILE."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import UsageError
from agent_core.workshop import Workshop
from tests.kit.desk import VOWELS

pytestmark = pytest.mark.asyncio(loop_scope="module")
FLAWED = "\n\n" + VOWELS.replace("    5\n", "    4\n")
HELPED = "def _twice(n):\n    return n + n\n\n\n" + VOWELS
OTHER = VOWELS.replace("count_vowels", "count_more")


async def checked(shop: Workshop, path: Path, **options: Any) -> list[dict[str, Any]]:
    found = list(await shop.check(path, **options))
    assert (shop.names(), shop.rejected()) == ([], ())
    assert {each["path"].partition(":")[0] for each in found} == {path.as_posix()}
    return found


def places(verdict: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(each["code"], each["path"], each["line"]) for each in verdict["problems"]]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param(FLAWED, "example-disagrees", 12, id="example"),
        pytest.param("\n\ndef count_vowels(text: str -> int:\n", "syntax-error", 3, id="syntax"),
        pytest.param("\n\nLIMIT = 1 // 0\n\n\n" + VOWELS, "import-fails", 3, id="import"),
        pytest.param("\n\n" + VOWELS.replace("(text: str)", "(text)"), "no-type", 3, id="hints"),
        pytest.param(VOWELS + "\n\nfor letter in 'ab':\n    pass\n", "top-level-statement", 18, id="loose"),
    ],
)
async def test_every_problem_of_a_function_names_the_file_and_its_line(
    shop: Workshop, tmp_path: Path, text: str, code: str, line: int
) -> None:
    (file := tmp_path / "mine.py").write_text(text)
    (verdict,) = await checked(shop, file, name="count_vowels")
    assert not verdict["admitted"]
    assert (code, file.as_posix(), line) in places(verdict), verdict["problems"]
    assert {path for _, path, _ in places(verdict)} == {file.as_posix()}


async def test_each_function_of_a_module_has_its_verdict_at_its_lines(shop: Workshop, tmp_path: Path) -> None:
    (file := tmp_path / "mine.py").write_text(f"{OTHER}\n\n{FLAWED}")
    good, bad = await checked(shop, file)
    assert (good["name"], good["admitted"], good["standing"]) == ("count_more", True, "trial")
    assert (bad["name"], bad["admitted"], bad["standing"]) == ("count_vowels", False, "")
    assert places(bad) == [("example-disagrees", file.as_posix(), 29)]


@pytest.mark.parametrize(
    ("top", "own"), [("LIMIT = 1 // 0\n\n\n", "text: str"), ("", "text: str = str(1 // 0)")], ids=["top", "default"]
)
async def test_a_module_that_cannot_be_imported_refuses_each_of_its_functions(
    shop: Workshop, tmp_path: Path, top: str, own: str
) -> None:
    (file := tmp_path / "mine.py").write_text(f"{top}{OTHER}\n\n{VOWELS.replace('text: str', own)}")
    found = await checked(shop, file)
    assert [(each["name"], each["admitted"]) for each in found] == [("count_more", False), ("count_vowels", False)]
    assert all("import-fails" in {code for code, _, _ in places(each)} for each in found)


async def test_each_line_of_many_candidates_is_told_with_its_number(shop: Workshop, tmp_path: Path) -> None:
    rows = [{"name": "count_vowels", "code": VOWELS}, {"name": "count_vowels", "code": FLAWED}]
    (file := tmp_path / "many.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    found = await checked(shop, file)
    assert [(each["admitted"], each["path"]) for each in found] == [(True, f"{file}:1"), (False, f"{file}:3")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        pytest.param("no.py", None, "cannot be read", id="missing"),
        pytest.param("latin.py", b"x = '\xe9'\n", "cannot be read", id="encoding"),
        pytest.param("many.jsonl", b'{"name": "f"}', "many.jsonl:1 is not a candidate", id="no-code"),
        pytest.param("many.jsonl", b"{", "many.jsonl:1 is not a candidate", id="no-json"),
    ],
)
async def test_a_file_that_cannot_be_judged_is_a_wrong_use(
    shop: Workshop, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        await shop.check(tmp_path / name)
