"""Helpers: narrow agents that are called like functions, made, changed and deleted with the user's yes."""

from typing import Any  # a budget's numbers, whatever the model writes

from agent_core import Agent


async def create_helper(  # noqa: PLR0913, PLR0917 - what a helper has
    self: Agent,
    helper_name: str,
    purpose: str,
    inputs: dict[str, str],
    result: str,
    functions: list[str],
    persona: str = "",
    budget: dict[str, Any] | None = None,
    examples: list[dict[str, Any]] | None = None,
    reason: str = "",
) -> str:
    """Make a helper: a narrow agent with functions of its own, which you call like a function in your next step.

    The user is asked. Make one for a task that needs several calls and judgment; for anything else, make a function.

    Args:
        helper_name: Its name, as you will call it.
        purpose: What it is for, in one or two sentences: all that it knows of its task besides the inputs.
        inputs: Its inputs with their types as in Python, such as {"text": "str", "language": "str = 'en'"}.
        result: The type of its result, such as `list[str]`.
        functions: Names or patterns of the functions that it may call, such as `slug` or `text.*`.
        persona: How it is to work, if that matters.
        budget: What one call of it may spend at most, such as {"steps": 8, "tokens": 8000, "seconds": 60}.
        examples: Requests that one of its functions answers alone, each with `inputs`, `function` and `result`.
        reason: Why it is needed, in a few words.
    """
    table = {
        "purpose": purpose,
        "inputs": inputs,
        "result": result,
        "functions": functions,
        "persona": persona,
    }
    more = {"budget": budget or {}, "examples": examples or []}
    return await self.helper_desk.create(helper_name, {**table, **more}, reason)


async def edit_helper(
    self: Agent, helper_name: str, old_text: str, new_text: str, reason: str = ""
) -> str:
    """Change one place in a helper's file. The user is asked.

    Args:
        helper_name: The helper.
        old_text: The exact text to take out; it must stand there exactly once. If it does not, you are shown the file.
        new_text: The text to put in its place.
        reason: Why, in a few words.
    """
    return await self.helper_desk.edit(helper_name, old_text, new_text, reason)


async def delete_helper(self: Agent, helper_name: str, reason: str = "") -> str:
    """Delete a helper that no other helper names. The user is asked, and can restore it.

    Args:
        helper_name: The helper.
        reason: Why, in a few words.
    """
    return await self.helper_desk.delete(helper_name, reason)
