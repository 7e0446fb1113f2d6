"""Who is meant by a name or a relation, by what the lines of a block say of them."""

from collections.abc import Sequence

from .claims import Claim
from .clauses import ANYONE, USER
from .phrasebook import Phrasebook


class People:
    """Those whom the lines of a block name."""

    def __init__(self, lines: Sequence[Sequence[Claim]], known: Phrasebook) -> None:
        self.user: set[str] = set()
        self.relations: dict[str, frozenset[str]] = {}
        self.people = known.people
        for claim in (claim for claims in lines for claim in claims):
            if claim.attribute == "name" and claim.subject == USER and claim.affirmed:
                self.user |= claim.words
            relation = frozenset(claim.attribute.split()) & self.people
            names = claim.words if relation else claim.subject - self.people
            relation = relation or claim.subject & self.people
            if relation:
                self.relations |= dict.fromkeys(names, relation)
            of_bag = claim.bag & self.people
            if claim.attribute == "have" and of_bag:
                self.relations |= dict.fromkeys(claim.words - self.people, of_bag)
        self.user -= {*self.relations}

    def same(self, first: frozenset[str], second: frozenset[str], line: str) -> bool:
        """Check whether two subjects are the same."""
        if ANYONE in (first, second):
            return True
        one, other = self._plain(first), self._plain(second)
        if one == other:
            return True
        names, others = one - self.people, other - self.people
        if names & others and (one & self.people or other & self.people):
            return not (one & self.people and other & self.people) or bool(one & other & self.people)
        for name, relation in ((names, other), (others, one)):
            if len(name) == 1 and relation <= self.people and self.relations.get(next(iter(name))) == relation:
                return True
        return (
            one == USER
            and len(other) == 1
            and next(iter(other)) not in self.relations
            and (next(iter(other)) in line.casefold() and not self.user)
        )

    def _plain(self, subject: frozenset[str]) -> frozenset[str]:
        rest = subject - self.user
        return rest or USER
