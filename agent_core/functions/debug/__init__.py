"""The host side of the debugger: breakpoints, stops with a user, records without one, traces, recorded calls.

Data from a worker is untrusted: its shape is checked, and it is limited, masked and made visible before it is used.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "breakpoints": "Breakpoint Breakpoints Placed stopping_lines",
        "debugging": "DebuggerSlot Debugging Watch",
        "stop": "COMMANDS Command DebugStop Debugger typed_breakpoint",
    },
)
