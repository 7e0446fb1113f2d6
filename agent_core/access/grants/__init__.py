"""Grants: what the user lets a function reach. This package may access `functions/grants.toml` and the user's key."""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "approval": "Answer Answered ApprovalQueue Approvals Approver Decision PendingQuestion Question"
        " says_what_to_do",
        "book": "NewGrant GrantStore",
        "files": "FileRequests ProgramFiles",
        "permit": "AccessResolver CallFlow Denied Permit",
        "task": "TaskReach",
        "value": "Grants NOTHING",
    },
)
