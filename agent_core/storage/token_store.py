"""Tokens in the store: who may use the server, and for what."""

from dataclasses import dataclass
from typing import Protocol

from .subject import Subject


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token: `digest` is the hash of its secret; no `agents` means all, `expires` None means never."""

    id: str
    name: str
    digest: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...]
    expires: float | None
    added_at: float = 0.0


class TokenStore(Subject, Protocol):
    """The tokens of a workspace. Rows are trusted only if this user's program wrote them."""

    async def add_token(self, row: TokenRow) -> bool:
        """Store a token with the current time. Return False if there is one of that name."""

    async def tokens(self) -> list[TokenRow]:
        """Return all tokens, by name."""

    async def token(self, id: str) -> TokenRow | None:
        """Return one token."""

    async def revoke_token(self, name: str) -> bool:
        """Delete a token. Return False if there is none of that name."""
