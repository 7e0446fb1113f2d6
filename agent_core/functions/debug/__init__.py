"""The debugger on the host side: breakpoints, stops with a user, records without one, traces, recorded calls.

What comes from a worker is a claim: it is checked for shape, capped, masked and made visible before anybody has it.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "breakpoints": "Breakpoint Breakpoints Placed stopping_lines",
        "debugging": "DebuggerSeat Debugging Watch",
        "stop": "COMMANDS Command DebugStop Debugger",
        "typed_line": "typed_breakpoint",
    },
)
