"""The exit of one call: what the host itself says while it serves a worker, masked before anyone gets it.

The handlers of files and fetches get a worker's words unmasked, because exactly what was named must be opened or
reached. They speak through this alone: in refusals, questions, and facts for the receipt. The worker's own words are
masked by the channel (`secrets.session`).
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Protocol, TypeAlias

from agent_core.base.receipt import Fact, Receipt
from agent_core.base.untrusted import fence

from .grants.value import NOTHING, Grants

Reach: TypeAlias = Callable[
    [str], Awaitable[None]
]  # receives a place before a call reaches it for the first time
WantHost: TypeAlias = Callable[
    [str], Awaitable[bool]
]  # asks a human for one more host, as `host` or `host:port`
MOST_REFUSALS: Final = 5  # of one call that are kept


class WantPath(Protocol):
    """Asks a human for a path; `folder` is the one around it."""

    def __call__(self, grants: Grants, folder: str, doubt: str, /) -> Awaitable[tuple[Grants, str]]:
        """Return the given grants, and the reason if there are none."""


class CallExit:
    """The words of the host about one call; `masked` removes the secrets of the call from a text.

    A name that contains a secret is not asked about, and shown only as the worker `sent` it, masked: the host may
    resolve, translate, quote or cut it, and then a mask would no longer find the secret.
    """

    def __init__(
        self,
        masked: Callable[[str], str] = str,
        *,
        only_reads: bool = False,
        did: Receipt | None = None,
        reach: Reach | None = None,
        want_host: WantHost | None = None,
        want_path: WantPath | None = None,
    ) -> None:
        self.only_reads = only_reads
        """Whether the call may change nothing where it gets."""
        self._masked = masked
        self._did = Receipt() if did is None else did
        self._reach = reach
        self._want_host = want_host
        self._want_path = want_path
        self.refusals: dict[str, None] = {}  # of the function's own requests, in order, each once
        self.tries: dict[str, None] = {}  # the same for reads that code tries but does not require

    @property
    def asks_for_paths(self) -> bool:
        """True if a human can be asked for a path."""
        return self._want_path is not None

    def hides(self, *names: str) -> bool:
        """Return whether one of the names contains a secret."""
        return next(self._hidden(names), None) is not None

    def shows(self, text: str, size: int) -> bool:
        """Return whether the first characters of a text remain as they are."""
        return self._masked(text)[:size] == text[:size]

    def shown(self, name: str, *sent: str) -> str:
        """Return a name for everyone, which the worker `sent` in these words."""
        return next(self._hidden(sent), self._masked(name))

    def note(self, fact: Fact, name: str, *sent: str) -> None:
        """Record a fact about a name."""
        self._did.note(fact, self.shown(name, *sent))

    def note_all(self, receipt: Receipt) -> None:
        """Record all facts of a receipt."""
        self._did.add(receipt, self._masked)

    def refusal(self, text: str, *sent: str) -> str:
        """Return a refusal in words for everyone; `sent` are the names that it may mention."""
        for shown in self._hidden(sent):
            return (
                f"{fence(shown, 200)} contains a secret: nobody is asked for such a name, and no more is said of it."
                " Grant what is around it before the call, or leave the secret out of the name"
            )
        return self._masked(text)

    def keep(self, refusal: str, *, is_try: bool) -> None:
        """Keep a refusal of the call, which its function may hide."""
        kept = self.tries if is_try else self.refusals
        if len(kept) < MOST_REFUSALS:
            kept[self._masked(refusal)] = None

    async def reach(self, place: str, *sent: str) -> None:
        """Report a place before it is reached for the first time."""
        if self._reach is not None:
            await self._reach(self.shown(place, *sent))

    async def want_host(self, place: str, *sent: str) -> bool:
        """Ask a human for a place, unless its name contains a secret."""
        return (
            self._want_host is not None
            and not self.hides(place, *sent)
            and await self._want_host(place)
        )

    async def want_path(
        self, grants: Grants, folder: str, doubt: str, *sent: str
    ) -> tuple[Grants, str]:
        """Ask a human for a path, unless its name contains a secret. Return the grants, or why there are none."""
        names = (*grants.read, *grants.write, folder, *sent)
        if self._want_path is None or self.hides(*names):
            return NOTHING, self.refusal("Nobody can be asked for a path", *names)
        return await self._want_path(grants, folder, self._masked(doubt))

    def _hidden(self, names: tuple[str, ...]) -> Iterator[str]:
        """Yield the masked names that contain a secret."""
        return (shown for name in names if (shown := self._masked(name)) != name)
