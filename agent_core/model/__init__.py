"""The model: from a list of messages to the pieces of one reply.

Access to endpoints that speak chat completions or the Responses API, and to the local model. May touch the network;
knows nothing of agents, functions' code or storage. `client` and `connection` import the `openai` package, so import
them only when a model is really opened.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "reply": "Model Piece Reply RetryPiece TextPiece ThoughtPiece TokenUsage",
        "request": "FunctionShown Request",
    },
)
