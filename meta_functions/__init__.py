"""Functions about functions: what the model calls to grow, read, prove and undo its functions.

Each runs in the host with the agent as `self`, calls one thing of `agent_core`, and answers in a short
text: what happened, what it means, what to do next. Their schemas come from the same loader as all.
"""

MODULES = ("find", "write", "history", "prove", "choose", "reading")
