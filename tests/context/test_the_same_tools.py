"""The tools stay byte-identical for a whole conversation, whatever is made, found, reverted or deleted in it."""

import json
from pathlib import Path

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Seen, Step, Wanted
from tests.kit.desk import another, ended, outcomes
from tests.knapper_ext.mcp.test_tools_of_strangers import approved, tool

STEPS = [
    Wanted(
        "create_function",
        {"function_name": "first", "function_code_with_docstring": another("first")},
    ),
    Wanted("call_function", {"name": "first", "arguments": {"text": "queue"}}),
    Wanted("first", {"text": "queue"}),
    Wanted("list_functions", {"pattern": "letters of a word"}),
    Wanted("search_functions", {"need": "letters of a word"}),
    Wanted(
        "edit_function",
        {"function_name": "first", "changes": [{"old_text": "Count", "new_text": "Tell"}]},
    ),
    Wanted("rollback_function", {"function_name": "first"}),
    Wanted("call_function", {"name": "no_such_function", "arguments": {}}),
    Wanted("call_function", {"name": "no_such_function", "arguments": {}}),
    Wanted("call_function", {"arguments": {}}),
    Wanted("call_function", {"name": "call_function", "arguments": {"name": "first"}}),
    Wanted("add_function", {"function_name": "first"}),
    Wanted("delete_function", {"function_name": "first"}),
    Wanted("core_memory_append", {"name": "human", "content": "Likes pie."}),
    Wanted("strange__echo", {"text": "a"}),
    Wanted("run_program", {"code": "json_text = strange__echo('b')\nlen(json_text)"}),
]


async def test_tools_and_index_are_the_same_bytes_over_many_steps(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    def changed(seen: Seen) -> Step:
        """Have the MCP server list another tool, which a human approves."""
        approved(tmp_path, tool("echo"), tool("more"), says="{}")
        return Ask(Wanted("strange__more", {"text": "c"}))

    approved(tmp_path, tool("echo"), says="{}", changes=True)
    late = [
        Ask(Wanted("strange__echo", {"text": "d"})),
        Ask(Wanted("list_functions", {"pattern": "strange"})),
    ]
    desk = await at_desk([*map(Ask, STEPS), changed, *late, Say("Done."), Say("Again.")])
    events = await desk.say("Grow.")
    assert ended(events).reply == "Done."
    await desk.save("more.py", another("more"))
    await desk.say("And now?")
    requests = desk.model.requests
    assert len(requests) == len(STEPS) + len(late) + 3 >= 20
    assert len({json.dumps(request.body["tools"]) for request in requests}) == 1
    assert len(requests[0].body["tools"]) <= 15
    heads = {request.messages[0]["content"].partition("<persona")[0] for request in requests}
    assert len(heads) == 1
    answered = [request.answers[-1] for request in requests[1 : len(STEPS) + 1]]
    assert answered[1] == answered[2]
    assert "strange__more" in requests[-2].answers[-1]
    assert [outcomes(events)[at] for at in (7, 8)] == ["refused"] * 2
    assert "name" in answered[9]
    assert "cannot be called by another call" in answered[10]
