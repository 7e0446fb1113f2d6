"""What a policy takes away of the functions that run in the host."""

from functools import cache
from typing import Final

from agent_core.base.policy import Policy

GROWING: Final = frozenset(
    (
        "add_example",
        "confirm_function",
        "create_function",
        "delete_function",
        "edit_function",
        "replace_function",
        "rollback_function",
    )
)
"""The functions that create and change functions."""
ABOUT_HELPERS: Final = frozenset(("create_helper", "edit_helper", "delete_helper"))
"""The functions that are offered only if agents may make helpers."""
READING: Final = frozenset(
    (
        "archival_memory_search",
        "call_function",
        "conversation_search",
        "conversation_search_date",
        "expect_reach",
        "function_history",
        "introspect_function",
        "list_agents",
        "list_functions",
        "read_on",
        "run_program",
        "send_message",
        "test_function",
        "trace_function",
    )
)
"""The functions that keep, make and write nothing: a plan has these alone. What they call has its grants, or less."""
_EXPECTING: Final = frozenset(("expect_reach",))


@cache
def withheld_by(policy: Policy) -> frozenset[str]:
    """Return the functions that are not offered under a policy."""
    withheld = frozenset[str]()
    if policy.mode == "ask":
        withheld |= _EXPECTING
    if not policy.grows:
        withheld |= GROWING | ABOUT_HELPERS
    return withheld
