"""The debugger as the host has it: breakpoints, stops with a human, records without one, traces, recorded calls.

What comes from a worker is a claim: it is checked for shape, capped, masked and made visible before anybody has it.
"""

from .breakpoints import Breakpoint, Breakpoints, Placed
from .debugging import Debugging, Watch
from .lines import stopping_lines
from .stop import COMMANDS, Command, Debugger, Stop
from .typed import typed_breakpoint

__all__ = [
    "COMMANDS",
    "Breakpoint",
    "Breakpoints",
    "Command",
    "Debugger",
    "Debugging",
    "Placed",
    "Stop",
    "Watch",
    "stopping_lines",
    "typed_breakpoint",
]
