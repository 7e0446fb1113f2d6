"""The debugger on the host side: breakpoints, stops with a user, records without one, traces, recorded calls.

What comes from a worker is a claim: it is checked for shape, capped, masked and made visible before anybody has it.
"""

from .breakpoints import Breakpoint, Breakpoints, Placed, stopping_lines
from .debugging import DebuggerSeat, Debugging, Watch
from .stop import COMMANDS, Command, Debugger, DebugStop
from .typed_line import typed_breakpoint

__all__ = [
    "COMMANDS",
    "Breakpoint",
    "Breakpoints",
    "Command",
    "DebugStop",
    "Debugger",
    "DebuggerSeat",
    "Debugging",
    "Placed",
    "Watch",
    "stopping_lines",
    "typed_breakpoint",
]
