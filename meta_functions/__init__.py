"""Host functions for the model: create, read, test, undo; remember, search, talk; reach other agents.

Each runs in the host with the agent as `self`, calls one thing of `agent_core`, and answers in a short
text: what happened, what it means, what to do next. Their schemas come from the same loader as all.
"""

MODULES = ("functions", "programs", "memory", "talk", "agents", "helpers")
