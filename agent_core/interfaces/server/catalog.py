"""All operations of the API."""

from typing import Final

from . import (
    agent_operations,
    command_operations,
    function_operations,
    page_operations,
    record_operations,
    source_operations,
    team_operations,
)
from .operations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *agent_operations.OPERATIONS,
    *page_operations.OPERATIONS,
    *function_operations.OPERATIONS,
    *source_operations.OPERATIONS,
    *record_operations.OPERATIONS,
    *team_operations.OPERATIONS,
    *command_operations.OPERATIONS,
)
