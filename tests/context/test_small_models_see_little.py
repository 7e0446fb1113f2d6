"""A model under a schema sees three memory functions and what it needs to read on; others see all."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from agent_core.context import Shown
from agent_core.model.request import FunctionShown
from agent_core.runtime.host_functions import standard
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json


class NothingHidden:
    """No function is quarantined."""

    held: frozenset[tuple[str, str]] = frozenset()
    archived: frozenset[tuple[str, str]] = frozenset()
    complaints: Mapping[tuple[str, str], str] = MappingProxyType({})


async def test_a_small_model_is_told_of_three_functions_of_memory_in_its_fixed_text(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [in_json("Hello.")], model__mode="constrained", model__context_tokens=16_000
    )
    await desk.say("Hi.")
    told = str(desk.model.requests[0].messages[0]["content"])
    assert all(
        f"{name}(" in told
        for name in ("core_memory_append", "core_memory_replace", "conversation_search")
    )
    assert "archival_memory_insert(" not in told
    shown = [each.name for each in desk.agent._loop.model_session.functions.all()]
    assert "read_on" in shown
    assert not {"archival_memory_insert", "core_memory_rewrite", "conversation_search_date"} & {
        *shown
    }
    schema = json.dumps(desk.model.requests[0].body["response_format"])
    assert schema.count('"enum": ["human", "persona"]') == 2  # one of the blocks there are


def test_a_small_window_shows_what_was_used_last() -> None:
    own = [host.function for host in standard().values()]
    functions = {
        f"f{n}": replace(own[0], name=f"f{n}", description="Long. " * 50) for n in range(40)
    }
    shown = Shown(own, 128, NothingHidden(), frozenset({"archival_memory_insert"}))
    shown.choose(functions)
    shown.use("f7")
    little = shown.fitting("native", 20_000)
    assert {each.name for each in own} - {"archival_memory_insert"} <= _names(little)
    assert "f7" in _names(little)
    assert sum(len(each.description) for each in little) < 20_000
    assert len(_names(little) & functions.keys()) < 30


def _names(shown: Iterable[FunctionShown]) -> set[str]:
    return {each.name for each in shown}


def test_a_function_of_the_folder_with_the_name_of_a_memory_class_method_is_not_shown_twice() -> (
    None
):
    own = [host.function for host in standard().values()]
    shown = Shown(own, 64, NothingHidden())
    line = shown.choose(
        {
            own[0].name: replace(own[0], description="Another."),
            "other": replace(own[0], name="other"),
        }
    )
    assert [each.name for each in line] == [*(each.name for each in own), "other"]


async def test_a_small_model_is_told_of_a_function_that_means_what_the_user_says_in_other_words(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    (folder := tmp_path / "functions").mkdir()
    (folder / "farm.py").write_text(
        'def rain_total() -> int:\n    """Say how much rain fell."""\n    return 7\n'
    )
    desk = await at_desk(
        [in_json("Hello.")] * 2, model__mode="constrained", model__context_tokens=16_000
    )
    await desk.workspace.functions.reload()
    await desk.say("How much precipitation was there?")
    await desk.say("Who wrote Hamlet?")
    told = [
        str(message["content"]).count("rain_total(")
        for message in desk.model.requests[1].messages[-3:]
    ]
    assert told == [1, 0, 0]
