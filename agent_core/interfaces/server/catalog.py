"""The list of all API operations."""

from typing import Final

from . import agent_operations, command_operations, function_operations, page_operations, source_operations
from .operations import OPERATIONS_BY_MODULE, Operation

_MODULES: Final = (*(agent_operations, page_operations, function_operations), *(source_operations, command_operations))
OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    each for module in _MODULES for each in OPERATIONS_BY_MODULE[module.__name__]
)
