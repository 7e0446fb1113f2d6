"""How a fetch fails that was allowed: a value for the worker, which makes the fitting OSError of it."""

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["name", "connection", "tls", "timeout", "response"]


class FetchFailed(Exception):
    """A fetch that came to nothing; what is refused is a RequestRefused instead."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind
