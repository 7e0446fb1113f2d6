"""The model: from a list of messages to the pieces of one reply.

The door to endpoints that speak chat completions, and to the local model. May touch the network; knows
nothing of agents, functions' code or storage. `client` and `endpoint` import an HTTP client, so import them
only when a model is really opened.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "reply": "Model Piece Reply RetryPiece TextPiece ThoughtPiece TokenUsage",
        "request": "FunctionShown Request",
    },
)
