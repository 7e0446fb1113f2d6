"""The code that agents wrote is known by its hashes, if this user stored them, and goes with the agent."""

from agent_core.storage import SaveApproval, SaveMadeCode, Store, WholeAgent
from agent_core.storage.agent_store import DropAgent


async def test_who_wrote_a_statement_is_known_until_the_agent_is_dropped(store: Store) -> None:
    await store.write_agent(WholeAgent("main", {}))
    await store.apply(
        [SaveMadeCode("main", frozenset("ab")), SaveMadeCode("other", frozenset("bc"))]
    )
    await store.apply([SaveMadeCode("main", frozenset("a"))])
    folder = SaveApproval("agent:main", "", "[]", "{}", "me", "a seal")
    await store.apply([folder, SaveApproval("agent:other", "", "[]", "{}", "me", "a seal")])
    main, other = frozenset({"main"}), frozenset({"other"})
    assert await store.makers(["a", "b", "c", "d"]) == {"a": main, "b": main | other, "c": other}
    assert await store.makers([]) == {}
    await store.apply([DropAgent("main")])
    assert await store.makers(["a", "b"]) == {"b": other}
    assert [row.function for row in await store.approvals()] == ["agent:other"]


async def test_a_row_of_somebody_else_says_nothing(store: Store) -> None:
    await store.apply([SaveMadeCode("main", frozenset("a"))])
    await store._write(lambda session: session.all("update made set agent = 'other'"))
    assert await store.makers(["a"]) == {}
