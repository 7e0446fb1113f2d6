"""Failures of a fetch that was allowed: values for the worker, which raises the matching OSError."""

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["name", "connection", "tls", "timeout", "response"]


class FetchFailed(Exception):
    """A fetch that failed; a fetch that is refused is a RequestRefused instead."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind
