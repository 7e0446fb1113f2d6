"""The gate's repairs: text to text, each certain from the text itself, none changing what is computed."""

from .hints import hint_from_docstring, hint_none
from .imports import add_imports
from .prompts import write_prompts
from .prose import add_description
from .sections import describe_parameters, to_google
from .signature import add_self

__all__ = [
    "add_description",
    "add_imports",
    "add_self",
    "describe_parameters",
    "hint_from_docstring",
    "hint_none",
    "to_google",
    "write_prompts",
]
