"""The function service: every verb on functions, shared by the command line, the REPL and the meta-functions.

A verb that changes something is planned (and may be interrupted) and then carried out (and is not).
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "call_records": "noted",
        "export": "Handing",
        "file_checks": "CheckRequest count",
        "library": "Taking",
        "plan": "Author PlannedChange StaleView",
        "function_service": "FunctionService",
    },
)
