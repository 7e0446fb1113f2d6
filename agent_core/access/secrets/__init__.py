"""Secrets: where they are stored, who gets one, and that none is shown, stored elsewhere or sent to a model.

A value goes to one running function, when it calls `self.secret(name)`, if a human granted it by name. All output of
its worker passes a channel that masks it; the log and the crash file are masked, too. May touch the user's
configuration folder.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "masks": "Masks",
        "session": "CallSecrets MaskedChannel REVEALED mask_logs",
        "source": "Secrets",
    },
)
