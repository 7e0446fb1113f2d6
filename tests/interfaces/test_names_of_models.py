"""A typed model name that the endpoint does not have is rejected before anything is sent."""

from pathlib import Path

import pytest

from tests.kit import Say, scripted
from tests.kit.program import knapper

MODELS = ("small-coder", "large-coder")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "--message", "hi"], id="run"),
        pytest.param(["run", "--once", "--message", "hi"], id="once"),
        pytest.param(["configure", "--yes"], id="configure"),
    ],
)
@pytest.mark.parametrize("name", ["small-codr", "fast"])
def test_a_name_that_the_endpoint_does_not_list_is_refused_with_the_near_ones(
    tmp_path: Path, words: list[str], name: str
) -> None:
    with scripted([], models=MODELS) as model:
        done = knapper(*words, "--base-url", model.base_url, "--model", name, cwd=tmp_path)
        assert (done.returncode, len(model.requests)) == (1, 0)
    assert f"has no model `{name}`." in done.stderr
    assert "`small-coder`" in done.stderr
    assert name not in (tmp_path / "knapper.toml").read_text()


def test_a_name_is_taken_where_the_endpoint_does_not_list_its_models(tmp_path: Path) -> None:
    listing = {"GET /v1/models": [{"error": "not here"}]}
    with scripted([Say("Hi."), Say("ready")], beside=listing) as model:
        flags = "--base-url", model.base_url, "--model", "scripted"
        assert knapper("run", *flags, "--message", "hi", cwd=tmp_path).stdout == "Hi.\n"
        assert knapper("configure", "--yes", *flags, cwd=tmp_path).returncode == 0
