"""The policy of a turn: one value, made when the turn begins, which alone decides what is asked and what grows.

It travels with the message that begins the turn and stands in the turn's journal. What narrows may come from anywhere;
what widens comes from this user alone.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from .records import asdict, dataclass, replace

Growth: TypeAlias = Literal["off", "ask", "on"]
"""Whether agents make and change functions, from the narrowest on."""
Mode: TypeAlias = Literal["plan", "ask", "task"]
"""What a turn may reach without a question, from the narrowest on."""
GROWTHS: Final[tuple[Growth, ...]] = get_args(Growth)
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked and grown in a turn.

    `growth`: nothing grows and nothing is offered for it (`off`), a person joins each change (`ask`), or what passes
    the gate joins (`on`). If it does not `ask`, whatever needs an approval is refused.

    `mode`: a turn only reads (`plan`), asks for each new reach (`ask`), or offers at its first question all that the
    model expects to need, which is then not asked again in the turn (`task`). With `same_reach`, a version of a
    function that reaches no more keeps the yes that an earlier one got.
    """

    growth: Growth = "on"
    asks: bool = True
    mode: Mode = "ask"
    same_reach: bool = False

    @property
    def only_reads(self) -> bool:
        """Whether nothing is kept, made or written."""
        return self.mode == "plan"

    @property
    def grows(self) -> bool:
        """Whether agents are offered what makes and changes functions."""
        return self.growth != "off"

    def narrowed(self, policy: "Policy") -> "Policy":
        """Return this policy without what another one does not allow."""
        return replace(
            self,
            growth=min(self.growth, policy.growth, key=GROWTHS.index),
            asks=self.asks and policy.asks,
            mode=min(self.mode, policy.mode, key=MODES.index),
            same_reach=self.same_reach and policy.same_reach,
        )

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Policy":  # Any: JSON
        """Return the policy of a stored form. A value that this version does not know is the narrowest."""
        growth = data.get("growth", "on")
        mode = data.get("mode", "ask")
        return cls(
            growth if growth in GROWTHS else GROWTHS[0],
            bool(data.get("asks", True)),
            mode if mode in MODES else MODES[0],
            bool(data.get("same_reach", False)),
        )


DEFAULT: Final = Policy()
