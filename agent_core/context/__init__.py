"""What the model sees at one step: instructions, functions, and as much of the conversation as fits."""

from .build import Budget, Prompt, build
from .history import History
from .instructions import INSTRUCTIONS
from .shown import Shown

__all__ = ["INSTRUCTIONS", "Budget", "History", "Prompt", "Shown", "build"]
