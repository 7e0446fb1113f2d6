"""The search benchmark checks its own results against an exact search."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FEW = ["--passages", "6000", "--rounds", "4", "--json"]


def test_the_bench_finds_by_words_what_an_exact_search_finds(tmp_path: Path) -> None:
    told = [f"The {n}th traveller of {n % 9} cities bought {n % 31} apples and {n % 7} pears." for n in range(400)]
    (tmp_path / "told.json").write_text(json.dumps({"messages": [{"text": " ".join(told)}]}), "utf-8")
    command = [sys.executable, "-m", "benchmarks.passages", str(tmp_path / "told.json"), *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    shares = json.loads(done.stdout)["shares"]
    assert [share for name, share in shares.items() if name.startswith("words")] == [1, 1]
    assert next(share for name, share in shares.items() if name.startswith("vectors")) > 0.9
