"""The host side of the debugger: breakpoints, stops with a user, records without one, traces.

Data from a worker is untrusted: its shape is checked, and it is limited, masked and made visible before it is used.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "debugging": "DebuggerSlot Debugging Watch",
        "stop": "COMMANDS Breakpoint Breakpoints Command DebugStop Debugger Placed stopping_lines typed_breakpoint",
    },
)
