"""Any file becomes a whole agent or is rejected with a reason; it has no other effect."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.base.programs import ReaderProcess
from agent_core.workspace.portable import AgentFileError, ImportOptions
from tests.kit.drawing import drawn
from tests.knapper_ext.exchange.test_files_of_other_programs import LETTA, MEMGPT
from tests.portable.support import json as anything
from tests.portable.support import moving
from tests.portable.test_files_are_checked import GOOD

HARD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, -1, 0.5, 10**30, "", "x", "\x1b[2J", "\x00", "\ud800"),
        *([], {}, [[]], [{}], {"text": 1}, "9" * 5000, ["\ud800"]),
    ]
)


def places(holder: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every place in a document."""
    inner = (
        holder.items()
        if isinstance(holder, dict)
        else enumerate(holder)
        if isinstance(holder, list)
        else ()
    )
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))][
        not path :
    ]


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """Draw a good file of one of the three kinds with one to three places changed, removed or doubled."""
    document = deepcopy(draw(st.sampled_from([GOOD, MEMGPT, LETTA])))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(document)))
        holder: Any = document
        for step in way:
            holder = holder[step]
        change = draw(st.sampled_from(("put", "drop", "double")))
        if change == "drop":
            del holder[last]
        elif change == "double" and isinstance(holder, list):
            holder.append(deepcopy(holder[last]))
        else:
            holder[last] = draw(HARD | anything)
    return json.dumps(document)


@settings(max_examples=drawn(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=spoiled())
async def test_a_spoiled_file_becomes_a_whole_agent_or_is_refused_with_a_reason(
    reader: ReaderProcess, text: str
) -> None:
    async with moving(reader=reader) as (_, moves):
        try:
            reports = await moves.take_in(text, ImportOptions(file_name="x"))
        except AgentFileError as error:
            told, reports = error.message, []
            assert await moves.names() == []
        assert reports or (told.endswith(".") and len(told) < 500)
        for report in reports:
            again = await moves.export(report.name)
            await moves.take_in(again, ImportOptions(name=f"{report.name[:50]}-again"))
