"""The gate's fixes: text to text, certain from the text and its examples, with no change of what is computed."""

from .hints import hint_from_docstring, hint_none
from .imports import add_imports, import_from_workspace, uses_workspace
from .prompts import has_other_examples, write_prompts
from .prose import add_description
from .sections import STYLE_MARKS, describe_parameters, to_google
from .view import View, add_self

__all__ = [
    "STYLE_MARKS",
    "View",
    "add_description",
    "add_imports",
    "add_self",
    "describe_parameters",
    "has_other_examples",
    "hint_from_docstring",
    "hint_none",
    "import_from_workspace",
    "to_google",
    "uses_workspace",
    "write_prompts",
]
