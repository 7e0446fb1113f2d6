"""Writing into modules without touching what a human wrote. (place, remove: pure text → text; save: one file.)"""

from pathlib import Path

from ..problem import Problem


def place_function(module_text: str, candidate: str, name: str) -> str | Problem:
    """The module's text with the candidate's function in it: replaced by its exact span, or appended."""
    raise NotImplementedError


def remove_function(module_text: str, name: str) -> str | Problem:
    """The module's text without one function."""
    raise NotImplementedError


def save(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a module's file, only if it still is what the writer read."""
    raise NotImplementedError
