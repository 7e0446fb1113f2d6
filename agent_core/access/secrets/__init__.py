"""Secrets: where they are kept, who gets one, and that none is shown, stored or sent to a model.

A value goes to one running function, at the moment of `self.secret(name)`, if a human granted it by name. Whatever
comes out of its worker passes a channel that masks it; the log and the file of a crash are masked too. May touch
the user's configuration folder.
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
