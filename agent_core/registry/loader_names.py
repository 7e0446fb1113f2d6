"""Names that nothing in a folder can have, because a built-in function has them or a tool would run them.

Tools such as pytest load modules and call functions with certain names, outside of the sandbox and as the user. Names
of the standard library are allowed: workers import a function's module as `functions.NAME`, and a folder of functions
is never on an import path, so that `functions/json.py` hides nothing.
"""

import re
from typing import Final

_MODULES: Final = {
    "conftest": "pytest",
    "sitecustomize": "Python",
    "usercustomize": "Python",
    "__main__": "`python functions`",
    "setup": "pip",
    "noxfile": "nox",
}
OF_THE_PROGRAM: Final = frozenset(
    [
        "add_example",
        "add_function",
        "archival_memory_delete",
        "archival_memory_insert",
        "archival_memory_search",
        "ask_agent",
        "ask_agents",
        "call_function",
        "clear_debugger",
        "confirm_function",
        "conversation_search",
        "conversation_search_date",
        "core_memory_append",
        "core_memory_remove",
        "core_memory_replace",
        "core_memory_rewrite",
        "create_function",
        "create_helper",
        "debugger",
        "delete_function",
        "delete_helper",
        "edit_function",
        "edit_helper",
        "function_history",
        "hand_off",
        "introspect_function",
        "list_agents",
        "list_functions",
        "message_agent",
        "message_llm",
        "pause_heartbeats",
        "read_on",
        "reload_functions",
        "remove_function",
        "replace_function",
        "rollback_function",
        "run_program",
        "send_message",
        "test_function",
        "trace_function",
    ]
)
"""The functions that run in the host. They are listed here, because reading a folder must not import them."""
_OF_TESTS: Final = re.compile(r"test_.*|.*_test|tests?")
_FUNCTIONS: Final = {
    "load_tests": "unittest",
    "setUpModule": "unittest",
    "tearDownModule": "unittest",
    "setup_module": "pytest",
    "teardown_module": "pytest",
}


def loader_of(module: str) -> str:
    """Return the tool that loads a module because of a part of its dotted name, or an empty text."""
    *folders, last = module.casefold().split(".")
    if _OF_TESTS.fullmatch(last):
        return "pytest or unittest"
    return next((_MODULES[part] for part in (*folders, last) if part in _MODULES), "")


def caller_of(function: str) -> str:
    """Return the tool that calls a function because of its name, or an empty text."""
    return "pytest" if function.startswith("pytest_") else _FUNCTIONS.get(function, "")


def proposed(module: str) -> str:
    """Return a similar dotted name that no tool loads."""
    *folders, last = [
        f"{part.strip('_')}_functions" if part.casefold() in _MODULES else part for part in module.split(".")
    ]
    bare = re.sub(r"(?i)^test_|_test$|^tests?$", "", last).strip("_")
    return ".".join([*folders, last if bare == last else f"{bare}_checks".lstrip("_")])
