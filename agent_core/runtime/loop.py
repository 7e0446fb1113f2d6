"""The loop of a turn: each step takes in what arrived, requests a reply, and runs its calls.

After each phase the conversation on disk is valid. After each step a policy decides whether the turn ends, whether the
model gets advice, and how much repetition is allowed. One policy is for agents whose text is the reply. The other is
for agents that reach the user through a function and request each further step: if they only write text, they are
notified once, and if they still send nothing, the text is sent.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import events
from agent_core.base.errors import ModelError, NothingLeft
from agent_core.base.fences import fenced_texts
from agent_core.base.messages import Assistant
from agent_core.base.offload import LARGE, aside
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.context import EXPECTED
from agent_core.functions.gate import tree
from agent_core.functions.service import FunctionService, function_facts
from agent_core.model.reading import written_calls
from agent_core.storage import FAILURES, Inbound
from agent_core.storage.inbox import HEARD
from agent_core.storage.journal import assistant, notice, write_entry
from sandbox.wire.strict_json import Malformed, read_json

from .taken_up import heartbeat
from .turn import MAX_CALLS, Interrupted, Turn
from .turn_end import Ended, GoOn, Reason

if TYPE_CHECKING:
    from agent_core.model.reply import Reply
    from agent_core.registry.registry import Snapshot

    from .call_record import Done
    from .dispatch import Dispatcher
    from .model_session import ModelSession
    from .programs import Programs

_Same: TypeAlias = tuple[str, str, str]

MAX_SAME_FAILURES = 3
MAX_SAME_ANSWERS = 5
MAX_CUTS = 3
_MOST_BLOCKS: Final = 20  # code blocks of a reply
_MOST_NAMED: Final = 5  # functions that they define

_AGAIN = "Ask again; at the prompt: /retry."
_SHORTER = "Write it much shorter, or do it in parts"


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step: its reply, the calls that it requested, and whether messages wait for the turn."""

    reply: "Reply"
    done: Sequence["Done"]
    more_waits: bool = False


@dataclass(slots=True)
class DirectReplyPolicy:
    """The state of one turn's policy: the advice that was given, and how often each result was repeated.

    `excluded` are the functions that the next step does not offer to a model that writes under a schema. For other
    models the tools stay the same, so that the server's prompt cache stays valid.
    """

    turn: Turn
    max_steps: int
    excluded: frozenset[str] = frozenset()
    _advised: set[str] = field(default_factory=set)
    _cuts: int = 0
    _runs: dict[_Same, int] = field(default_factory=dict)
    _times: Counter[_Same] = field(default_factory=Counter)
    _changing: set[tuple[str, str]] = field(
        default_factory=set
    )  # calls that changed something, by name and arguments

    def speaking(self, *, by_function: bool) -> "DirectReplyPolicy":
        """Return the policy for how the agent now reaches the user: this one, unless that has changed."""
        kind = SendMessagePolicy if by_function else DirectReplyPolicy
        return self if type(self) is kind else kind(self.turn, self.max_steps)

    # A turn ends through `before_request`, `after` or `broken_off` of its policy: this one, `SendMessagePolicy`, or
    # `ResultPolicy` for a helper. An exception that `broken_off` does not take ends it in `agent.py`, an interrupted
    # process in `settle`; the turn of a group ends in `groups/loop.py`.

    async def before_request(self) -> Ended | None:
        """Count a step, or return the end of a turn that may send no request: it was stopped, or a limit is reached."""
        group, account = self.turn.origin.group, self.turn.origin.account
        if group is not None:
            if why := group.allowance.broken():
                return Ended("limits", warning=why, advice=why)
            group.allowance.spend(steps=1)
        if account is not None:
            if why := await account.broken():
                return Ended("limits", warning=why, advice=why)
            account.spend(steps=1)
        return None

    async def after(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows a step."""
        turn = self.turn
        if turn.ending.awaits_answers:
            return Ended(
                "client_calls", "\n\n".join(turn.work.function_messages) or step.reply.text
            )
        if turn.ending.stuck:
            return Ended("stuck", warning=turn.ending.stuck)
        if turn.ending.parked:
            return Ended("parked")
        return Ended("handed_off") if turn.ending.handed_to else await self._after_step(step)

    def broken_off(self, error: Interrupted | ModelError) -> Ended:
        """Return the end of a turn whose step failed or was interrupted, after showing text that was held back."""
        self._show_held_back()
        if isinstance(error, NothingLeft):
            self.turn.ending.resumes |= error.is_paused
            reason: Reason = "interrupted" if self.turn.resumes_later else "limits"
            return Ended(reason, warning=error.message, advice=error.message, fix=error.fix)
        if isinstance(error, ModelError):
            return Ended("failed", warning=error.message, fix=error.fix)
        return Ended("interrupted")

    async def _after_step(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows a step whose calls are all answered."""
        # A reply is not an answer if all its calls were sent back.
        follows = (
            self._after_calls(step)
            if step.done
            else GoOn()
            if step.reply.calls
            else self._after_reply(step)
        )
        if isinstance(follows, Ended) and follows.reason == "replied":
            if step.done and step.more_waits:
                follows = GoOn()
            else:
                follows = await self.turn.tools.follow(self.turn, follows)
        if isinstance(follows, GoOn) and self.turn.step >= self.max_steps:
            self._show_held_back()
            warning = f"The turn was ended after {self.max_steps} steps."
            return Ended(
                "steps", warning=warning, advice=follows.advice, fix="“go on” takes it up again."
            )
        return follows

    def _after_reply(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows a reply without calls."""
        reply = step.reply
        if reply.finish == "length":
            return self._after_cut(reply)
        for objection, advice in _objections(reply, self.turn):
            if objection not in self._advised:
                self._advised.add(objection)
                return GoOn(advice)
        if step.more_waits:
            return GoOn()
        if not reply.text.strip():
            return Ended("failed", warning="The model gave an empty answer twice.", fix=_AGAIN)
        if name := _written_name(reply):
            warning = (
                f"The model answered with the text of a call of `{name}` again, and called nothing."
            )
            return Ended("failed", warning=warning, fix=f"{_AGAIN} Another model may do better.")
        return Ended("replied", reply.text)

    def _after_calls(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows the calls of a step.

        If a call is repeated with the same outcome, the model is notified and the function is not offered at the next
        step. Further repetition ends the turn.
        """
        cut = step.reply.cut
        self._count_anew(step.done)
        self.excluded = frozenset().union(*(result.excluded for result in step.done))
        # What waits for a function that is being made is no repetition, unless nothing else was tried.
        done = [result for result in step.done if not result.is_waiting] or step.done
        self._runs = {key: self._runs.get(key, 0) + 1 for key in map(_sameness, done)}
        self._times.update(set(map(_identity, done)))
        again = {  # the same call failed in the previous step, or was refused in the same words earlier in the turn
            _identity(result): result.call.name
            for result in done
            if result.outcome == "refused"
            and (self._runs[_sameness(result)] > 1 or self._times[_identity(result)] > 1)
        }
        self.excluded |= frozenset(again.values())
        longest_run = max(self._runs.items(), key=lambda run: (run[1], not run[0][2]), default=None)
        if longest_run is not None and (follows := self._after_same(*longest_run)) is not None:
            return follows
        if again:
            same = max(again, key=lambda key: self._times[key])
            name, times = same[0], self._times[same]
            if times >= MAX_SAME_FAILURES:
                return _end_of_repetition(f"`{name}` was refused {times} times for the same reason")
            return GoOn(f"`{name}` was refused twice for the same reason. Do something else.")
        name, _, _ = often = max(
            self._times, key=lambda key: self._times[key], default=("", "", "")
        )
        if self._times[often] > MAX_SAME_ANSWERS:
            return _end_of_repetition(
                f"`{name}` came out the same {self._times[often]} times with the same arguments"
            )
        return GoOn(_cut_advice(cut) if cut else "")

    def _count_anew(self, done: Sequence["Done"]) -> None:
        """After a change, forget how often calls were made, except those that make changes themselves."""
        changes = {
            (result.call.name, result.call.arguments) for result in done if result.has_changed
        }
        if changes:
            self._changing |= changes
            self._times = Counter(
                {key: count for key, count in self._times.items() if key[:2] in self._changing}
            )
            self._runs = {
                key: count for key, count in self._runs.items() if key[:2] in self._changing
            }

    def _show_held_back(self) -> None:
        """Show the user text that was held back, before the turn is ended from outside; here there is none."""

    def _after_same(self, same: _Same, times: int) -> GoOn | Ended | None:
        name, _, answer = same
        message = (
            f"`{name}` {'gave the same answer' if answer else 'failed'} {times} times in a "
            f"row with the same arguments"
        )
        if times >= (MAX_SAME_ANSWERS if answer else MAX_SAME_FAILURES):
            return _end_of_repetition(message)
        if times > 1:
            self.excluded |= {name}
            return GoOn(
                f"{message}. {'Reply to the user now.' if answer else 'Do something else.'}"
            )
        return None

    def _after_cut(self, reply: "Reply") -> GoOn | Ended:
        if self.turn.tools.has_short_replies:
            return Ended("length", reply.text)
        self._cuts += 1
        if reply.text and self._cuts > 1:
            return Ended("replied", f"{reply.text} […]")
        if self._cuts < MAX_CUTS:
            return GoOn(_cut_advice(reply.cut))
        message = f"The turn was ended: the model's replies were cut off {self._cuts} times at their longest."
        return Ended(
            "failed", warning=message, fix="Ask for less at once, or raise `model.max_tokens`."
        )


def _end_of_repetition(message: str) -> Ended:
    advice = f"{message}. Do something else, or tell the user what is in the way."
    return Ended("repeated", warning=f"The turn was ended: {message}.", advice=advice)


def _cut_advice(cut: Sequence[str]) -> str:
    if not cut:
        return f"Your message was cut off at its length limit. {_SHORTER}: go on in smaller pieces."
    return f"Your message was cut off at its length limit, in {' and '.join(cut)}: that was not called. {_SHORTER}."


def _objections(reply: "Reply", turn: Turn) -> Iterator[tuple[str, str]]:
    """Yield the objections to ending the turn with this reply: a name for each, and the text for the model."""
    if not reply.text.strip():
        yield "empty", "Your reply was empty. Answer the user, or call a function."
        return
    if refused := _left_refused(turn):
        yield "refused", _advice_on_refused(refused)
    if name := _written_name(reply):
        what = "holds marks of a call" if reply.marked else "is only the text of a call"
        advice = "Call a function that you have, or answer the user in a sentence"
        example = "; an example belongs in a code block" if reply.marked else ""
        yield "written", f"Nothing was called: your reply {what} of `{name}`. {advice}{example}."
    elif reply.attached:
        message = f"Nothing was called: your reply holds the text of a call of `{reply.attached}`."
        advice = "If you mean it, call the function, or send the call alone."
        yield (
            "attached",
            f"{message} {advice} If it is an example for the user, send the same reply again.",
        )


def _written_name(reply: "Reply") -> str:
    """Return the function whose call the text of a reply is, or holds between the marks of a template."""
    return one_line(reply.written[0], 80) if reply.written else reply.marked


def _written_functions(text: str) -> list[str]:
    """Return the names of the public functions that the code blocks of a reply define."""
    codes = [textwrap.dedent(code) for code in fenced_texts(text)[:_MOST_BLOCKS] if "def " in code]
    trees = map(tree.parse, codes)
    nodes = [
        node
        for one in trees
        if not isinstance(one, tree.Unparsable)
        for node in tree.functions(one)
    ]
    names = dict.fromkeys(node.name for node in nodes if not node.name.startswith("_"))
    return [*names][:_MOST_NAMED]


def _left_refused(turn: Turn) -> list[str]:
    """Return the rejected candidates, without functions that were called as they are afterwards."""
    receipt = turn.work.facts.receipt
    return [
        name for name, calls in turn.work.refused.items() if receipt.count("called", name) <= calls
    ]


def _advice_on_refused(refused: Collection[str]) -> str:
    """Return the text for a model that is about to end a turn in which candidates were rejected."""
    names = ", ".join(f"`{name}`" for name in refused)
    was = "was rejected, so it was" if len(refused) == 1 else "were rejected, so they were"
    message = f"{names} {was} not made or changed. "
    return (
        message
        + "Fix it with edit_function or create_function, or tell the user that it was not done."
    )


def _identity(done: "Done") -> _Same:
    return done.call.name, done.call.arguments, done.text


def _sameness(done: "Done") -> _Same:
    arguments = done.call.arguments
    if (
        len(arguments) <= LARGE
    ):  # longer ones are the same only as text: parsing them would block the event loop
        with suppress(Malformed):
            arguments = json.dumps(read_json(arguments), sort_keys=True)
    return done.call.name, arguments, "" if done.failed else done.text


ASKED: Final = "you asked for it (request_heartbeat), and the calls are done."
FAILED: Final = "a call failed. Fix it, do something else, or tell the user with send_message."
UNHEARD: Final = "The user was not shown that text: it is your inner monologue. Say it to the user with send_message."
SILENT: Final = "The agent handed back without a message."


@dataclass(slots=True)
class SendMessagePolicy(DirectReplyPolicy):
    """The turn policy of agents that write text as inner monologue."""

    _unheard: str = ""

    def _after_reply(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows a reply without calls.

        It is a thought if no one waits for an answer; otherwise it is a message that should have been sent by function.
        """
        reply = step.reply
        if reply.finish != "length" and (
            self.turn.work.function_messages or not self.turn.origin.is_asked
        ):
            return GoOn() if step.more_waits else self._end_as_replied()
        follows = DirectReplyPolicy._after_reply(self, step)
        if reply.text.strip() and not _written_name(reply):
            self._unheard = reply.text
        if isinstance(follows, GoOn):
            return follows
        if follows.reason == "replied" and "unheard" not in self._advised:
            self._advised.add("unheard")
            return GoOn(UNHEARD)
        return self._end_as_replied() if self._unheard or follows.reason == "replied" else follows

    def _after_calls(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows calls: another step if one of them requested it or failed, otherwise the end."""
        follows = DirectReplyPolicy._after_calls(self, step)
        if isinstance(follows, Ended):
            return self._with_unheard(follows)
        if any(call.failed for call in step.done):
            return replace(follows, heartbeat=FAILED)
        if any(call.heartbeat for call in step.done):
            return replace(follows, heartbeat=ASKED)
        refused = _left_refused(self.turn)
        if refused and "refused" not in self._advised:
            self._advised.add("refused")
            return GoOn(_advice_on_refused(refused))
        return follows if follows.advice else self._end_as_replied()

    def _show_held_back(self) -> None:
        """Show the user the text that was not sent, if they were shown nothing else."""
        turn = self.turn
        if turn.origin.is_asked and not turn.work.function_messages and self._unheard:
            turn.say(self._unheard)

    def _end_as_replied(self) -> Ended:
        return self._with_unheard(Ended("replied"))

    def _with_unheard(self, ended: Ended) -> Ended:
        """Show the text that was held back, and return the end with everything that the user was shown."""
        self._show_held_back()
        turn = self.turn
        silent = (
            turn.origin.is_asked and not turn.work.function_messages and ended.reason == "replied"
        )
        reply = "\n\n".join(turn.work.function_messages)
        return replace(ended, reply=reply, warning=SILENT if silent else ended.warning)


FIRST = "Begin with a thought of your own, and call send_message in the same reply."
_MOST_TOLD: Final = 3  # functions that a message is about and that are missing from the index
UNUSABLE = (
    "Use another model, or accept first replies as they come: `verify=False` of the agent (all of them),"
    " `turn.first_thought = false` (those without a thought)."
)


class AgentLoop:
    """The runner of the steps in one agent's turns."""

    is_group: Final = False

    def __init__(
        self,
        model: "ModelSession",
        dispatcher: "Dispatcher",
        functions: FunctionService,
        max_steps: int,
        *,
        sees: Callable[["Snapshot", frozenset[str]], "Snapshot"] = lambda snapshot, _: snapshot,
        policy: Callable[[Turn, int], DirectReplyPolicy] = DirectReplyPolicy,
        programs: "Programs | None" = None,
    ) -> None:
        """Create the loop.

        `sees` reduces a snapshot to what the agent may call, plus the functions that it made in this turn. `policy`
        decides when turns end.
        """
        self.model_session = model
        self._dispatcher = dispatcher
        self._functions = functions
        self._max_steps = max_steps
        self._policy = policy
        self.sees = sees
        self._programs = programs
        self._changes: list[events.FunctionsChanged] = []
        self._forget = functions.on_change(self._changes.append)

    async def aclose(self) -> None:
        """Close the model."""
        self._forget()
        await self.model_session.models.aclose()

    async def run(self, turn: Turn) -> Ended:
        """Run steps until the policy ends the turn, and return how it ended."""
        policy = self._policy(turn, turn.origin.max_steps or self._max_steps)
        try:
            async with turn.ending.interruption:
                turn.model = (await self.model_session.model()).name
            await (
                self._functions.quarantine.refresh()
            )  # another process may have released a function
            if turn.origin.continues and self._programs is not None:
                await self._programs.go_on(
                    turn, self.sees(self._functions.registry.snapshot(), turn.made)
                )
            while True:
                turn.step += 1
                if await self._take_up(turn) or turn.step == 1:
                    await self._expect(turn)
                if ended := await policy.before_request():
                    return ended
                snapshot = self.sees(self._functions.registry.snapshot(), turn.made)
                reply = await self._ask(turn, snapshot, policy.excluded)
                reply = replace(reply, text=turn.own_name.of(reply.text))
                if not reply.calls and not reply.written:
                    names = await aside(len(reply.text), written_calls, reply.text)
                    reply = replace(reply, written=names)
                by_function = turn.style.by_function(self.model_session.models.mode)
                policy = policy.speaking(by_function=by_function)
                done = await self._act(turn, reply, snapshot)
                # After calls, only an agent that replies by function can end with a reply; only for that does it matter
                # what arrived.
                more_waits = False
                if by_function or not done:
                    more_waits = turn.journal.waits = turn.journal.waits and bool(
                        await self._waiting(turn)
                    )
                follows = await policy.after(StepResult(reply, done, more_waits))
                if isinstance(follows, Ended) and follows.reason == "replied":
                    follows = await self._with_unmade(turn, follows)
                entries = [notice(follows.advice)] if follows.advice else []
                if isinstance(follows, GoOn) and follows.heartbeat:
                    entries.append(heartbeat(follows.heartbeat, turn.style, turn.clock.now()))
                if entries:
                    await turn.append(entries)
                if isinstance(follows, Ended):
                    return follows
        except (Interrupted, ModelError) as error:
            return policy.broken_off(error)

    async def _with_unmade(self, turn: Turn, ended: Ended) -> Ended:
        """Note the functions that a reply only writes out, for the receipt and for the model's next turn.

        Whether the reply claims that they exist, or shows them as examples, nobody has to know: they are not there.
        """
        shown = self.model_session.functions.all()
        if "def " not in ended.reply or all(one.name != "create_function" for one in shown):
            return ended
        there = self._functions.registry.snapshot().functions
        names = [
            name
            for name in await aside(len(ended.reply), _written_functions, ended.reply)
            if name not in there
        ]
        for name in names:
            turn.note_done("unmade", name)
        if not names:
            return ended
        called = f"Your reply holds the text of {' and '.join(f'`{name}`' for name in names)}, which was not made"
        return replace(ended, advice=f"{called}: only create_function makes a function.")

    async def _expect(self, turn: Turn) -> None:
        """Show the model the workspace functions that the last message probably needs."""
        shown, snapshot = (
            self.model_session.shown,
            self.sees(self._functions.registry.snapshot(), turn.made),
        )
        self.model_session.functions.choose(snapshot)
        if not shown.is_crowded:
            return
        request = turn.history.last_request()
        shown.expect(await self._functions.likely(request, EXPECTED, snapshot.hidden))
        if new := shown.beyond_index(
            await self._functions.meant(request, _MOST_TOLD, snapshot.hidden)
        ):
            await turn.append([notice(f"You also have: {'; '.join(new)}.")])

    async def _take_up(self, turn: Turn) -> bool:
        """Add what arrived since the last step, and return whether there was a message.

        This includes messages, other events, and changes to memory and functions by someone else.
        """
        if turn.step > 1:
            turn.tools.look()
        waiting = await self._waiting(turn) if turn.journal.waits else []
        entries = [turn.taken_up(event) for event in waiting]
        turn.origin.is_asked |= any(event.kind in ("message", HEARD) for event in waiting)
        entries += await turn.tools.news(turn)
        changes, self._changes[:] = list(self._changes), []
        seen = self.sees(self._functions.registry.snapshot(), turn.made)
        if changes and (
            told := self._functions.tell_changes(
                changes, seen.hidden, self.model_session.functions.offered(seen)
            )
        ):
            entries.append(notice(told))
        entries = [*map(write_entry, changes), *entries]
        if entries:
            await turn.append(entries, takes=[event.id for event in waiting])
        return any(event.kind in ("message", HEARD) for event in waiting)

    async def _waiting(self, turn: Turn) -> list[Inbound]:
        return turn.taken(
            await turn.store.waiting(turn.line, None if turn.origin.group else turn.origin.thread)
        )

    async def _ask(self, turn: Turn, snapshot: "Snapshot", excluded: frozenset[str]) -> "Reply":
        """Return one reply; request an agent's first reply again, up to a limit, until it has what the style requires.

        Raises:
            ModelError: something is still missing after the last attempt.
        """
        reply, style, fault = await self.model_session.ask(turn, snapshot, excluded), turn.style, ""
        for attempt in range(style.attempts + 1) if turn.origin.verify and turn.step == 1 else ():
            before, fault = fault, ""
            if (
                style.by_function(self.model_session.models.mode)
                and not turn.tools.split(reply.calls, 1).opened
            ):
                names = {
                    function.name for function in self.model_session.functions.all()
                } | self.model_session.shown.told
                size = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
                fault = await aside(size, style.first_fault, reply, names)
            if not fault:
                return reply
            if attempt == style.attempts:
                raise ModelError(
                    f"The agent's first reply was not usable, {attempt + 1} times: {fault}.",
                    fix=UNUSABLE,
                )
            if fault != before:
                advice = "" if attempt else f" {FIRST}"
                await turn.append([notice(f"Your first reply was not taken: {fault}.{advice}")])
            reply = await self.model_session.ask(turn, snapshot, excluded)
        return reply

    async def _act(self, turn: Turn, reply: "Reply", snapshot: "Snapshot") -> Sequence["Done"]:
        """Store the reply, run its calls, and return their results.

        Raises:
            Interrupted: the user ended the turn.
        """
        split = turn.tools.split(reply.calls, MAX_CALLS)
        if reply.text or reply.calls:
            returned = (reply.reasoning, reply.source) if reply.calls else ((), "")
            message = Assistant(reply.text, reply.calls, reply.thought, *returned)
            spending = turn.origin.account.writes() if turn.origin.account else []
            starting = self._dispatcher.started_at_once(split.ours, snapshot) if split.ours else []
            shown, texts = self.model_session.request_record(snapshot)
            await turn.append(
                [*shown, assistant(message), *starting, *split.refused], writes=[*texts, *spending]
            )
        if reply.note:
            await turn.warn(reply.note)
        if not reply.calls:
            return ()
        current = lambda: self.sees(self._functions.registry.snapshot(), turn.made)  # noqa: E731 - it is given once
        done = await self._dispatcher.run(split.ours, snapshot, turn, current)
        # Functions that kept failing are now hidden from the model: notify the user at once, and tell the model why.
        failed = {call.call.name for call in done if call.outcome in FAILURES}
        for news in (
            await self._functions.quarantine.entered(failed, (turn.agent,)) if failed else ()
        ):
            told = notice(function_facts.quarantine_notice(news, grows=turn.grows))
            await turn.append([write_entry(news), told])
        for call in done:
            self.model_session.shown.use(call.call.name)
        if turn.ending.interruption.requested:
            raise Interrupted
        if split.opened:
            await turn.append(split.opened)
            turn.ending.awaits_answers = True
        return done
