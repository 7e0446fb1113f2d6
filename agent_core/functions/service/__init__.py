"""The function service: every operation on functions, shared by the command line, the REPL and the meta-functions.

An operation that changes something is first planned, which may be interrupted, and then carried out, which may not.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "call_records": "noted",
        "file_checks": "CheckRequest count",
        "plan": "USER Author PlannedChange StaleView",
        "function_service": "FunctionService",
    },
)
