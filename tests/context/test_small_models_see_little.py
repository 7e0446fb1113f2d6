"""A model under a schema is shown three functions of memory, and what it needs to read on; others see all."""

from agent_core.context import Shown
from agent_core.hosted import standard
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.kit import Say


class NothingHidden:
    """No function is in quarantine."""

    held: frozenset[tuple[str, str]] = frozenset()


async def test_a_small_model_is_told_of_three_functions_of_memory_in_its_fixed_text(at_desk: OpenDesk) -> None:
    desk = await at_desk([in_json("Hello.")], model__mode="constrained", model__context_tokens=16_000)
    await desk.say("Hi.")
    told = str(desk.model.requests[0].messages[0]["content"])
    assert all(f"{name}(" in told for name in ("core_memory_append", "core_memory_replace", "conversation_search"))
    assert "archival_memory_insert(" not in told
    shown = [each.name for each in desk.agent._stepper.asker.functions()]
    assert "read_on" in shown
    assert not {"archival_memory_insert", "core_memory_rewrite", "conversation_search_date"} & {*shown}


async def test_a_model_that_calls_by_itself_is_shown_all_functions_of_memory(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Hello.")])
    await desk.say("Hi.")
    wanted = {"core_memory_append", "conversation_search", "archival_memory_insert", "read_on", "create_function"}
    assert wanted <= {*desk.model.requests[0].functions}


def test_the_choice_for_small_models_is_the_same_object_while_nothing_changes() -> None:
    own = [host.function for host in standard().values()]
    shown = Shown(own, 64, NothingHidden(), frozenset({"archival_memory_insert", "conversation_search"}))
    shown.choose({})
    assert shown.for_mode("constrained") is shown.for_mode("constrained")
    assert shown.for_mode("native") is shown.line
    assert {each.name for each in shown.line} - {each.name for each in shown.for_mode("constrained")} == {
        "archival_memory_insert"
    }
