"""Functions for functions: find, create, edit, roll back, test, debug and keep at hand."""

from dataclasses import replace
from typing import Any  # whatever the function's own schema takes

from agent_core import Agent, PlannedChange, presentation
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import fence
from agent_core.functions.debug import Breakpoint
from agent_core.functions.service.change_texts import read_edits
from agent_core.functions.service.function_facts import KINDS, matches, unknown_function
from agent_core.operations.functions import show
from agent_core.runtime.programs import OtherFunctions, source_of_last_program

_MOST_SHOWN = 12


async def list_functions(
    self: Agent, pattern: str = "", module: str = "", standing: str = "", page: int = 1
) -> str:
    """List functions, or find them by what is to be done.

    Args:
        pattern: Part of a name, `count_*`, or what is to be done.
        module: Also `meta` or `memory`.
    """
    own = [] if standing else matches(self.model_session.shown.pinned, pattern, module)
    if module in KINDS and not own:
        return presentation.of_the_program(
            pattern, matches(self.model_session.shown.pinned, "", module)
        )
    listed = await self.functions.list(pattern, module, standing, self.hidden)
    is_need = len(pattern.split()) > 1 and not (module or standing)
    if pattern and not own and (is_need or not (listed.functions or listed.rejected)):
        report = await self.functions.search(pattern, hidden=self.hidden, owners=(self.name,))
        self.model_session.shown.show([match.function.name for match in report.results])
        return presentation.search(report, grows=self.grows)
    return presentation.listing(listed, page, own)


async def call_function(self: Agent, name: str, arguments: dict[str, Any] | None = None) -> str:
    """Call a function that is no tool of yours."""
    raise UsageError(f"`{name}` cannot be called by another call.", fix="Name the function itself.")


async def introspect_function(self: Agent, function_name: str) -> str:
    """Show what a function or refused candidate is for, its source, standing and callers.

    Args:
        function_name: Several, with commas.
    """
    names = [*dict.fromkeys(filter(None, map(str.strip, function_name.split(","))))]
    if len(names) <= 1:
        return await _introspected(self, names[0] if names else function_name)
    texts: list[str] = []
    for name in names[:_MOST_SHOWN]:
        try:
            texts.append(await _introspected(self, name))
        except UsageError as error:
            texts.append(str(error))
    if left := names[_MOST_SHOWN:]:
        few = [fence(name, 60) for name in left[:_MOST_SHOWN]]
        if len(left) > len(few):
            few[-1] += f" and {len(left) - len(few)} more"
        texts.append(f"Not shown, because {_MOST_SHOWN} are shown at once: {', '.join(few)}.")
    return "\n\n".join(texts)


async def _introspected(self: Agent, function_name: str) -> str:
    if function_name in self.hidden:
        raise unknown_function(function_name, self.snapshot().functions)
    if own := next(
        (
            function
            for function in self.model_session.shown.pinned
            if function.name == function_name
        ),
        None,
    ):
        return presentation.own_function(own, self.model_session.functions.schema_of(own))
    pending = await self.functions.pending(function_name)
    if pending is not None and function_name not in self.functions.names():
        return presentation.pending(function_name, pending)
    self.author.unread.read(function_name)
    details = await show(self, function_name)
    schema = self.model_session.functions.schema_of(details.function)
    return presentation.introspection(details, schema, grows=self.grows)


async def create_function(
    self: Agent,
    function_name: str,
    function_code_with_docstring: str,
    module_name: str = "grown",
    reason: str = "",
    *,
    from_program: bool = False,
) -> PlannedChange:
    """Make a new function, which can be called at once if it passes the gate.

    Args:
        function_code_with_docstring: Imports, then the one function.
        module_name: Such as `text` or `web.pages`.
        from_program: Keep the last program; the code is its docstring.
    """
    code, author = function_code_with_docstring, self.author
    if from_program:  # it has run, so nobody else writes it
        snapshot, author = self.snapshot(), replace(author, request=None)
        foreign = {name: row.function for name, row in self.functions.foreign().items()}
        helpers = (
            self.model_session.functions.offered(snapshot).keys()
            - snapshot.functions.keys()
            - foreign.keys()
        )
        others = OtherFunctions(
            foreign, helpers | {function.name for function in self.model_session.shown.pinned}
        )
        code = await source_of_last_program(
            self.functions, self.memory.store, self.name, snapshot, others, function_name, code
        )
    return await self.functions.plan_create(function_name, code, module_name, reason, author)


async def edit_function(
    self: Agent, function_name: str, changes: list[dict[str, str]], reason: str = ""
) -> PlannedChange:
    """Change a function or refused candidate in some places, then judge it.

    Args:
        changes: Each {"old_text": exactly as it stands there, once, "new_text": …}.
        reason: Needed if an example goes; a person decides.
    """
    return await self.functions.plans.edit(function_name, read_edits(changes), reason, self.author)


async def replace_function(
    self: Agent, function_name: str, function_code_with_docstring: str, reason: str = ""
) -> PlannedChange:
    """Replace the whole source of a function or refused candidate."""
    return await self.functions.plans.replace(
        function_name, function_code_with_docstring, reason, self.author
    )


async def reload_functions(self: Agent) -> str:
    """Read the files of functions again, and say what changed or was rejected."""
    return presentation.reloaded(await self.functions.reload())


async def test_function(
    self: Agent,
    function_name: str,
    arguments: dict[str, Any] | None = None,  # noqa: PT028 - no test of pytest
) -> str:
    """Run a function's examples, or one call of it, and show results, output and times.

    Args:
        function_name: The function to test.
        arguments: The arguments of one call; leave out to run the examples.
    """
    return presentation.tested(await self.functions.test(function_name, arguments, self.author))


async def debugger(  # noqa: PLR0913 - what a breakpoint has
    self: Agent,
    function_name: str,
    line: int = 0,
    condition: str = "",
    expressions: list[str] | None = None,
    after: int = 0,
    every: int = 1,
    *,
    once: bool = False,
) -> str:
    """Set a breakpoint. The answer of each later call or program that passes it has the values of its locals there.

    A person at a prompt stops there, too, and can step.

    Args:
        function_name: The function.
        line: A line of its source, with the numbers of introspect_function; 0 for its first.
        condition: A Python expression; it counts only where this is true, such as `i > 10`.
        expressions: More to read there: names, fields, items, operators, comprehensions, built-ins like len or dict.
        after: Pass so many hits of each call over first.
        every: Then only each so-many-th hit counts.
        once: Only the first hit that counts, then it is gone.
    """
    request = Breakpoint(
        0, function_name, "", 0, condition, tuple(expressions or ()), after, every, once, "agent"
    )
    workshop = self.functions
    placed = workshop.calls.debugging.breakpoints.arm(request, line, workshop.registry.snapshot())
    without = (
        f"It is set without what cannot be read there: {' '.join(placed.unread)}"
        if placed.unread
        else ""
    )
    sentences = [f"Breakpoint {placed.text} is set.", placed.moved, without]
    now = f"Call `{function_name}` now, directly or in a program: that answer has the values."
    return " ".join(filter(None, [*sentences, now, "A person at a prompt stops there, too."]))


async def clear_debugger(self: Agent, function_name: str = "", line: int = 0) -> str:
    """Take breakpoints away.

    Args:
        function_name: Those of this function; empty for all.
        line: Only the one at this line; 0 for all of the function.
    """
    workshop = self.functions
    cleared = workshop.calls.debugging.breakpoints.clear(
        function_name, line, workshop.registry.snapshot()
    )
    return "\n".join(
        ["Taken away:", *(point.text for point in cleared)]
        if cleared
        else ["There is no such breakpoint."]
    )


async def trace_function(self: Agent, function_name: str, arguments: dict[str, Any]) -> str:
    """Call a function once, and show each line that ran, how often, and which locals it changed to what.

    Args:
        function_name: The function to call.
        arguments: The arguments of the call.
    """
    trace = await self.functions.trace(function_name, arguments, self.author)
    return f"{presentation.outcome(trace.outcome)}\n{trace.text}"


async def add_function(self: Agent, function_name: str) -> str:
    """Put a function into your own set: it is always shown to you.

    Args:
        function_name: The function to keep at hand.
    """
    self.functions.path_of(function_name)
    await self.session.own_set.add(function_name)
    return f"`{function_name}` is in your own set now: it will always be shown to you."


async def remove_function(self: Agent, function_name: str) -> str:
    """Take a function out of your own set. Its file stays, and it can still be found and called.

    Args:
        function_name: The function that need not be at hand.
    """
    await self.session.own_set.remove(function_name)
    return f"`{function_name}` is out of your own set. It still exists: list_functions finds it."
