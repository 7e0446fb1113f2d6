"""The table of approvals."""

from ..approval_store import DropYes, SaveYes, YesRow
from .connection import SqlSession
from .tables import Tables, perform, query


class ApprovalTables(Tables):
    """The approvals of the user; whoever reads them checks the seals."""

    @query
    def yeses(self, session: SqlSession) -> list[YesRow]:
        """Return every approval, the newest last."""
        return [
            YesRow(*row)
            for row in session.all("select function, digest, content, grants, by, seal, at from yes order by seq")
        ]


@perform.register
def _save_yes(write: SaveYes, session: SqlSession) -> None:
    session.all(
        "insert or replace into yes (function, digest, content, grants, by, seal, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(write.function, write.digest, write.content, write.grants, write.by, write.seal, session.clock.now()),
    )


@perform.register
def _drop_yes(write: DropYes, session: SqlSession) -> None:
    session.all("delete from yes where function = ?1 and (digest = ?2 or ?2 = '')", write.function, write.digest)
