"""Names by which tools load modules of a folder or call functions in it unasked: outside of the sandbox, as their user.

Names of the standard library are none of these: workers import a function's module as `functions.NAME`, and no folder
of functions is ever on an import path, so that `functions/json.py` takes nobody's place.
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
_OF_TESTS: Final = re.compile(r"test_.*|.*_test|tests?")
_FUNCTIONS: Final = {
    "load_tests": "unittest",
    "setUpModule": "unittest",
    "tearDownModule": "unittest",
    "setup_module": "pytest",
    "teardown_module": "pytest",
}


def loader_of(module: str) -> str:
    """Return the tool that loads a module because of a part of its dotted name; empty if none does."""
    *folders, last = module.casefold().split(".")
    if _OF_TESTS.fullmatch(last):
        return "pytest or unittest"
    return next((_MODULES[part] for part in (*folders, last) if part in _MODULES), "")


def caller_of(function: str) -> str:
    """Return the tool that calls a function because of its name; empty if none does."""
    return "pytest" if function.startswith("pytest_") else _FUNCTIONS.get(function, "")


def proposed(module: str) -> str:
    """Return a dotted name like one that a tool loads, which none does."""
    *folders, last = [
        f"{part.strip('_')}_functions" if part.casefold() in _MODULES else part for part in module.split(".")
    ]
    bare = re.sub(r"(?i)^test_|_test$|^tests?$", "", last).strip("_")
    return ".".join([*folders, last if bare == last else f"{bare}_checks".lstrip("_")])
