"""The turn policy for agents that reach the user through a function: another step must be requested.

Text that reaches nobody is not lost: its writer is notified once; if nothing is sent then, the text is sent.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent_core.model.reply import Reply

from .dispatch import Done
from .turn import Turn
from .turn_policy import DirectReplyPolicy, Ended, GoOn, stands_refused

ASKED: Final = "you asked for it (request_heartbeat), and the calls are done."
FAILED: Final = "a call failed. Fix it, do something else, or tell the user with send_message."
UNHEARD: Final = "The user was not shown that text: it is your inner monologue. Say it to the user with send_message."
SILENT: Final = "The agent handed back without a message."


@dataclass(slots=True, kw_only=True)
class SendMessagePolicy(DirectReplyPolicy):
    """The turn policy in which text is inner monologue."""

    turn: Turn
    _unheard: str = ""
    _was_told: bool = False

    def after_reply(
        self, reply: Reply, refused: Sequence[str], created: Collection[str], *, more_waits: bool
    ) -> GoOn | Ended:
        """Decide after a reply without a call: a thought, if nobody waits; otherwise a message put in the wrong
        place.
        """
        if reply.finish != "length" and (self.turn.function_messages or not self.turn.is_asked):
            return GoOn() if more_waits else self._handed_back()
        follows = DirectReplyPolicy.after_reply(self, reply, refused, created, more_waits=more_waits)
        self._unheard = reply.text if reply.text.strip() else self._unheard
        if isinstance(follows, GoOn):
            return follows
        if follows.reason == "replied" and not self._was_told:
            self._was_told = True
            return GoOn(UNHEARD)
        return self._handed_back() if self._unheard or follows.reason == "replied" else follows

    def after_calls(self, done: Sequence[Done], cut: Sequence[str] = ()) -> GoOn | Ended:
        """Decide after calls: another step if one of them asked for it or failed, otherwise the end."""
        follows = DirectReplyPolicy.after_calls(self, done, cut)
        if isinstance(follows, Ended):
            return self._with_unheard(follows)
        if any(call.failed for call in done):
            return replace(follows, heartbeat=FAILED)
        if any(call.heartbeat for call in done):
            return replace(follows, heartbeat=ASKED)
        if self.turn.refused and "refused" not in self._advised:
            self._advised.add("refused")
            return GoOn(stands_refused(self.turn.refused))
        return follows if follows.advice else self._handed_back()

    def let_out(self) -> None:
        """Show the user the text that reached nobody, if they were shown nothing else."""
        turn = self.turn
        if turn.is_asked and not turn.function_messages and self._unheard:
            turn.say(self._unheard)

    def _handed_back(self) -> Ended:
        return self._with_unheard(Ended("replied"))

    def _with_unheard(self, ended: Ended) -> Ended:
        """Return the end with what the user was shown; what was still to be shown is shown now."""
        self.let_out()
        turn = self.turn
        silent = turn.is_asked and not turn.function_messages and ended.reason == "replied"
        return replace(ended, reply="\n\n".join(turn.function_messages), warning=SILENT if silent else ended.warning)
