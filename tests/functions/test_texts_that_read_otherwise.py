"""A text that reads differently from how it runs is rejected everywhere; an older one keeps running without grants."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import Author
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, hash_of
from agent_core.storage import SaveReading, SaveVersion, SetManifest
from knapper_ext.exchange.export import ExportRequest, export_functions
from knapper_ext.exchange.library import ImportRequest, import_library
from tests.functions.support import STRONG, Room, room
from tests.kit.desk import VOWELS

HIDES = VOWELS.replace(
    "    return sum", "    # note \\n    open('PWNED','w').close()\n    return sum"
)
DOORS = {
    "encoding": (f"# -*- coding: unicode_escape -*-\n{HIDES}", 1, 15),
    "line separator": (
        VOWELS.replace("    return sum", "    x = 1  # note\u2028    return sum"),
        15,
        18,
    ),
    "direction": (
        VOWELS.replace("Count the", "Count the  # \u202e").replace('"""Count', 'r"""Count'),
        2,
        22,
    ),
    "form feed": (VOWELS.replace("    return", "\x0c    return"), 15, 1),
}


@pytest.mark.parametrize(("text", "line", "column"), DOORS.values(), ids=DOORS)
async def test_no_agent_creates_it_no_save_replaces_a_good_version_by_it_and_no_library_brings_it_in(
    here: Room, tmp_path: Path, text: str, line: int, column: int
) -> None:
    verdict = await here.shop.create("count_vowels", text, "letters", author=Author("agent"))
    (problem,) = [one for one in verdict.problems if one.code in ("encoding", "hidden-characters")]
    assert (problem.where.line, problem.where.column, here.shop.names()) == (line, column, [])
    assert not here.letters.exists()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "letters.py").write_bytes(text.encode())
    (tmp_path / "rows.jsonl").write_text(json.dumps({"name": "count_vowels", "code": text}))
    for path in (tmp_path / "lib", tmp_path / "rows.jsonl"):
        report = await import_library(
            here.shop, ImportRequest(path), lambda _: None, lambda _: None
        )
        assert (report.functions, here.shop.names()) == ([], [])
        assert any(str(line) in f"{row.where} {row.message}" for row in report.files)
    await here.save(VOWELS)
    await here.save(text)
    (problem,) = here.shop.registry.snapshot().rejected
    assert (problem.where.path, problem.where.line, problem.where.column) == (
        "functions/letters.py",
        line,
        column,
    )
    assert (await here.shop.call("count_vowels", {"text": "ae"})).value == 2


async def test_a_library_keeps_the_value_of_its_strings(here: Room, tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text(VOWELS.replace("Count the", "Count \u200d the"), "utf-8")
    report = await import_library(
        here.shop, ImportRequest(tmp_path / "lib.py"), lambda _: None, lambda _: None
    )
    (row,) = report.functions
    assert (
        "Count \\u200d the" in (here.root / "functions" / "lib.py").read_text("utf-8"),
        row.outcome,
    ) == (
        True,
        "fixed",
    )
    assert "\u200d" in here.shop.registry.snapshot().functions["count_vowels"].description


async def test_a_comment_that_moves_to_the_top_declares_no_encoding(
    here: Room, tmp_path: Path
) -> None:
    hidden = VOWELS.replace("return sum", "# note \\n    open('PWNED','w').close()\n    return sum")
    await here.save(f"{STRONG}\n\n# coding: unicode_escape\n{hidden}")
    await export_functions(here.shop, ExportRequest(tmp_path / "out", ("count_vowels",)))
    use = f"import sys; sys.path.insert(0, {str(tmp_path / 'out')!r}); import out; print(out.count_vowels('ae'))"
    assert (run(tmp_path, use), (tmp_path / "PWNED").exists()) == ("2\n", False)
    with pytest.raises(WorkspaceError, match="encoding"):
        await here.shop.delete("total", author=Author())


def run(folder: Path, code: str) -> str:
    """Return what the code prints in a separate Python."""
    return subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


async def taken_before(here: Room, text: str, *, instead_of: str | None = None) -> None:
    """Write the state as an older release left it: the text is the manifest's, and has been read."""
    source, plain = (
        ModuleSource.of("letters", text),
        read_module(ModuleSource.of("letters", VOWELS)),
    )
    reading = replace(plain, source=source).to_json()
    await here.store.apply(
        [
            SaveVersion("letters", source.version, text),
            SetManifest("letters", instead_of, source.version),
            SaveReading("functions/letters.py", (0, 0, 0), source.version, json.dumps(reading)),
        ]
    )
    here.letters.write_bytes(text.encode())


OLD = VOWELS.replace("    return sum", "    # note\u2028    return 1\n    return sum")


async def test_what_an_older_release_took_goes_on_and_is_told(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    async with room(tmp_path, sandbox) as before:
        await taken_before(before, OLD)
    async with room(tmp_path, sandbox) as here:
        (problem,) = here.shop.registry.snapshot().rejected
        assert (problem.where.line, "U+2028 LINE SEPARATOR" in problem.message) == (15, True)
        assert (await here.shop.call("count_vowels", {"text": "ae"})).value == 2
        assert (await here.shop.history.of("count_vowels")).versions
        with pytest.raises(UsageError, match=r"letters\.py:15:11"):
            await export_functions(here.shop, ExportRequest(tmp_path / "out"))
        await here.save(OLD.replace("\u2028", " "))
        assert here.shop.registry.snapshot().rejected == ()


OLDER = {
    "line separator": (OLD, "letters.py:15:11", "U+2028"),
    "encoding": (f"# coding: utf-7\n{VOWELS}", "letters.py:1:11", "utf-7"),
    "name": (VOWELS.replace("sum(", "ｓum("), "letters.py:15:12", "'sum' to Python"),
}


@pytest.mark.parametrize(("text", "where", "word"), OLDER.values(), ids=OLDER)
async def test_what_an_older_release_took_has_no_grant_until_it_is_fixed(
    tmp_path: Path, sandbox: SandboxClient, text: str, where: str, word: str
) -> None:
    async with room(tmp_path, sandbox) as before:
        await before.save(VOWELS)
        await before.shop.grants.grant("count_vowels", Grants(read=("data/",)))
        await taken_before(before, text, instead_of=hash_of(VOWELS))
    async with room(tmp_path, sandbox) as here:
        found = str(await here.shop.call("count_vowels", {"text": "ae"}))
        assert (where in found, word in found) == (True, True)
        assert where in str(here.shop.registry.snapshot().rejected[0])
        with pytest.raises(WorkspaceError, match=re.escape(where)):
            await here.shop.grants.question("count_vowels", Grants(read=("data/",)))
