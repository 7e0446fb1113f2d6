"""Creation, change and deletion of functions. Every change goes through the gate."""

from agent_core import Agent, PlannedChange
from agent_core.context import presentation


async def create_function(
    self: Agent, function_name: str, function_code_with_docstring: str, module_name: str = "grown", reason: str = ""
) -> PlannedChange:
    """Make a new Python function, which can be called in your next step if it passes the gate.

    The code needs type hints, and a docstring with a description, `Args:` and two examples with different results.

    Args:
        function_name: The name of the function, as in its `def`.
        function_code_with_docstring: The whole source: imports it needs, then one function with hints and docstring.
        module_name: The module it joins, such as `text` or `web.pages`.
        reason: Why it is needed, in a few words.
    """
    return await self.workshop.plan_create(
        function_name, function_code_with_docstring, module_name, reason, self.author
    )


async def edit_function(
    self: Agent, function_name: str, old_text: str, new_text: str, reason: str = ""
) -> PlannedChange:
    """Change one place in the source of a function, or of a candidate that was refused.

    Args:
        function_name: The function or refused candidate.
        old_text: The exact text to take out; it must stand there exactly once.
        new_text: The text to put in its place.
        reason: Why; needed where an example that the function had goes or changes.
    """
    return await self.workshop.plans.edit(function_name, old_text, new_text, reason, self.author)


async def replace_function(self: Agent, function_name: str, code: str, reason: str = "") -> PlannedChange:
    """Replace the whole source of a function or of a rejected candidate.

    Args:
        function_name: The function or refused candidate.
        code: The whole new source, with type hints, docstring and examples.
        reason: Why; needed where an example that the function had goes or changes.
    """
    return await self.workshop.plans.replace(function_name, code, reason, self.author)


async def confirm_function(self: Agent, function_name: str, reason: str = "") -> PlannedChange:
    """Admit a refused candidate when only the expected results in its examples were wrong.

    The examples then hold what the function really returned. Do this only if those results are right.

    Args:
        function_name: The candidate that was refused.
        reason: Why an example that the function had before may change, if one does.
    """
    return await self.workshop.plans.confirm(function_name, reason, self.author)


async def add_example(self: Agent, function_name: str, call: str, expected: str) -> PlannedChange:
    """Keep one more example with a function: a case that every later version has to get right.

    Args:
        function_name: The function.
        call: The call, such as `add_up([1, 2])`.
        expected: What it must return, as Python writes it; or the error that it must raise, `ValueError: too long`.
    """
    return await self.workshop.past.add_example(function_name, call, expected, self.author)


async def delete_function(self: Agent, function_name: str) -> PlannedChange:
    """Delete a function that no other function uses. Its history is kept: rollback_function brings it back.

    Args:
        function_name: The function to delete.
    """
    return await self.workshop.plans.delete(function_name, self.author)


async def reload_functions(self: Agent) -> str:
    """Look at the folder of functions again, and say what was loaded, changed, removed or rejected and why."""
    return presentation.reloaded(await self.workshop.reload())
