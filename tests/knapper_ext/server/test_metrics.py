"""`/metrics`: numbers that change as turns run, in the Prometheus format, for tokens that may read all agents."""

from tests.kit import Ask, Say, Wanted
from tests.kit.desk import VOWELS
from tests.kit.numbers import numbers

from .conftest import Serve, Served


async def asked(server: Served, **headers: str) -> dict[str, float]:
    answer = await server.client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return numbers(answer.text)


async def test_numbers_move_as_turns_run(served: Serve) -> None:
    create = Wanted(
        "create_function", {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}
    )
    call = Wanted("count_vowels", {"text": "queueing"})
    server = await served([Ask(create), Ask(call), Say("five", usage=(1_000, 20))])
    before = await asked(server)
    assert before["knapper_store_up"] == 1
    assert "knapper_turns_total:replied" not in before
    await server.said("How many vowels are in queueing?")
    after = await asked(server)
    assert after["knapper_turns_total:replied"] == 1
    assert after["knapper_steps_total"] == 3
    assert after["knapper_calls_total:returned"] == 2
    assert after["knapper_call_seconds_count"] == 2
    assert 0 < after["knapper_turn_seconds_sum"] < 60
    assert after["knapper_tokens_total:prompt"] >= 1_000
    assert after["knapper_tokens_total:completion"] >= 20
    assert after["knapper_events_waiting"] == after["knapper_oldest_event_seconds"] == 0
    assert after["knapper_take_overs_total"] == after["knapper_lost_leases_total"] == 0
    assert after["process_resident_memory_bytes"] > 1 << 20
    assert (
        not {"knapper_agents_held", "knapper_processes_alive"} & after.keys()
    )  # a state file does not have these
    for kind in ("application/openmetrics-text", "text/plain"):  # a version that is none
        assert (await asked(server, accept=f"{kind}; version=abc"))["knapper_store_up"] == 1


async def test_they_name_nobody_and_no_text_and_are_for_tokens_that_may_read_of_all_agents(
    served: Serve,
) -> None:
    server = await served([Say("the secret plan")])
    await server.client.post("/api/v1/agents", json={"name": "confidant"})
    await server.said("hello", agent="confidant")
    text = (await server.client.get("/metrics")).text
    assert [word in text for word in ("confidant", "secret")] == [False, False]
    for client, status in (
        (await server.as_("reads", "read"), 200),
        (await server.as_("chats", "chat", "edit", "approve", "admin"), 403),
        (await server.as_("one", "read", agents=("main",)), 403),
    ):
        assert (await client.get("/metrics")).status_code == status
    server.client.headers.pop("Authorization")
    assert (await server.client.get("/metrics")).status_code == 401
