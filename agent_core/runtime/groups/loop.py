"""The loop of a group's turn: choose a member, let it take its own turn, and repeat until a condition ends it.

It takes the place of the `AgentLoop` in an `Agent`, so every interface can host a group. The group's journal has each
speech and, before it, who was chosen and why. A choice is on disk before the member speaks, and it depends only on what
is on disk.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Final

from agent_core.base import events
from agent_core.base.errors import KnapperError, ModelError
from agent_core.base.events import SpeakerChosen
from agent_core.base.limits import FOR_A_REQUEST, Allowance
from agent_core.base.messages import System, User
from agent_core.base.offload import aside
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.functions.service import Author
from agent_core.memory.recall import argument
from agent_core.model.request import FunctionShown, Request
from agent_core.storage import Post, Store
from agent_core.storage.inbox import HEARD, POLICY
from agent_core.storage.journal import (
    MessageEntry,
    NoticeEntry,
    ReplyEntry,
    read_entry,
    write_entry,
)

from ..agent import Agent
from ..session import GO_ON
from ..taken_up import is_alone
from ..turn import Interrupted, Turn, TurnGroup
from ..turn_end import Ended
from .floor import USER, Floor, Speech, marked, tail
from .plan import FUNCTION, TASK, GroupEnd, GroupPlan, NoAdvice, SpeakerQuestion, choose, ended

if TYPE_CHECKING:
    from agent_core.functions.service import FunctionService
    from agent_core.model.reply import Reply
    from agent_core.registry.registry import Snapshot

    from ..model_session import ModelSession

HAND_OFF: Final = "hand_off"
_KINDS: Final = (MessageEntry.kind, ReplyEntry.kind, NoticeEntry.kind, SpeakerChosen.kind)
_POLICY_S: Final = 10.0
_CHOOSE: Final = "choose"
_CHOICE_S: Final = 60.0
_CHOICE_TOKENS: Final = 200
_NOT_FOR: Final = "The group `{}` has members that this token is not for: nobody was asked."
_HEARD_CHARS: Final = 20_000  # limit of the earlier speeches that a member is sent at once

ReadPlan = Callable[[], Awaitable[GroupPlan]]
OpenMember = Callable[[str], Awaitable[Agent]]


@dataclass(slots=True)
class _TurnOutcome:
    """The outcome of one member's turn."""

    reply: str = ""
    reason: str = "failed"
    to: str = ""
    called: set[str] = field(default_factory=set)


class GroupLoop:
    """The runner of a group's turns. The plan is read again at each turn, and members are opened on demand."""

    is_group: Final = True

    def __init__(
        self,
        model: "ModelSession",
        store: Store,
        functions: "FunctionService",
        plan: ReadPlan,
        open_member: OpenMember,
    ) -> None:
        self.model_session = model
        self._store = store
        self._functions = functions
        self._plan = plan
        self._open_member = open_member
        self._members: dict[str, Agent] = {}
        self._resources = AsyncExitStack()

    async def aclose(self) -> None:
        """Close the members and the model."""
        await self._resources.aclose()
        self._members.clear()
        await self.model_session.models.aclose()

    def sees(self, snapshot: "Snapshot", _made: frozenset[str], /) -> "Snapshot":
        """Return the whole snapshot: only the group's policy makes calls."""
        return snapshot

    async def run(self, turn: Turn) -> Ended:
        """Let members speak until the turn is over, and return how it ended."""
        try:
            async with turn.ending.interruption:
                turn.model = (await self.model_session.model()).name
                plan = await self._plan()
                if not _is_for(turn.origin.only, plan):
                    warning = _NOT_FOR.format(turn.agent)
                    await turn.append([write_entry(NoticeEntry(text=warning, unheard=True))])
                    return Ended("failed", warning=warning, fix="Use a token for all its members.")
                for (
                    name
                ) in plan.members:  # all of them, so that no member begins another turn in between
                    member = await self._member(name)
                    if member.restored:
                        turn.note_made(member.receipt)
                        member.restored = ""
            if plan.problem:
                await turn.warn(plan.problem)
            return await self._rounds(turn, plan)
        except Interrupted:
            return Ended("interrupted")
        except KnapperError as error:
            return Ended("failed", warning=error.message, fix=error.fix)

    async def _rounds(self, turn: Turn, plan: GroupPlan) -> Ended:
        journal, called = GroupJournal(turn.line, self._store), set[str]()
        turn.origin.group, clock = TurnGroup(plan.members, Allowance(plan.limits)), turn.clock
        began = clock.monotonic()
        while True:
            # Add what the user sent meanwhile, but for messages that get a separate turn or are not for all members.
            waiting = await turn.store.waiting(turn.line) if turn.journal.waits else []
            waiting = [row for row in waiting if not is_alone(row) and _is_for(row.only, plan)]
            if waiting:
                await turn.append(
                    [turn.taken_up(event) for event in waiting],
                    takes=[event.id for event in waiting],
                )
            turn.origin.group.allowance.spent["seconds"] = clock.monotonic() - began
            if why := turn.origin.group.allowance.broken("messages", *FOR_A_REQUEST):
                return Ended("limits", warning=why)
            floor = await journal.floor(plan)
            end = await aside(floor.size, ended, plan, floor, called)
            end = end or await self._ask_whether_over(turn, plan, floor)
            if end is not None:
                return Ended(
                    "repeated" if end.is_stuck else "replied", floor.reply, warning=end.reason
                )
            turn.step += 1
            async with turn.ending.interruption:
                choice = await choose(floor, plan.policy, _Outside(self, turn, plan))
            speaker = SpeakerChosen(
                agent=choice.name,
                rule=choice.rule,
                reason=one_line(choice.reason, 200),
                passed=choice.passed,
                asked_model=choice.asked_model,
            )
            await turn.append([write_entry(speaker)])
            if choice.name == USER:
                return Ended("replied", floor.reply)
            said = await self._speak(choice.name, turn, plan, floor)
            if said.reason not in ("replied", "handed_off"):
                if said.reason == "parked":
                    warning = f"{choice.name} waits for the answer of another agent."
                    return Ended(
                        "failed", warning=warning, fix="Go on when it is there: say “go on”."
                    )
                warning = f"{choice.name} gave no answer: its turn ended with `{said.reason}`."
                return Ended("failed", warning=warning, fix="Ask again; at the prompt: /retry.")
            turn.origin.group.allowance.spend(messages=1)
            called = said.called
            text = said.reply or f"I hand over to {said.to}."
            speech = ReplyEntry(text=text, speaker=choice.name, to=said.to)
            await turn.append([write_entry(speech)])

    async def _ask_whether_over(self, turn: Turn, plan: GroupPlan, floor: Floor) -> GroupEnd | None:
        """Return the end of the turn if a grown function decides so; if the function fails, warn and continue."""
        name = plan.stop.function.removeprefix(FUNCTION)
        if name == plan.stop.function or not floor.run:
            return None
        try:
            async with turn.ending.interruption:
                is_over = await self.advice(name, floor, plan.policy.tail_chars, turn)
        except NoAdvice as error:
            await turn.warn(f"`{name}` did not say whether to stop: {error}.")
            return None
        return GroupEnd(f"{name} says that it is over.") if is_over is True else None

    async def _speak(self, name: str, turn: Turn, plan: GroupPlan, floor: Floor) -> _TurnOutcome:
        """Let a member speak, forward its events under its name, and return the outcome."""
        async with turn.ending.interruption:
            member = await self._member(name)
            since = floor.said[floor.spoken[name] + 1 :]
            recent = since[len(since) - len(tail(since, _HEARD_CHARS)) :]
            # What a turn of the group may not, its members' turns may not; which of the posts begins one is not known.
            policy = member.policy_now.narrowed(turn.policy)
            shared = {} if policy == member.policy_now else {POLICY: policy.to_json()}
            posts = []
            for speech in recent:
                key = f"{plan.name}:{speech.seq}"  # always the same, so that a speech reaches a member only once
                heard_text = speech.text[:_HEARD_CHARS]
                if speech.by == USER:
                    posts.append(Post(name, "message", {"text": heard_text, **shared}, key=key))
                else:
                    text = marked(speech.by, heard_text)[:_HEARD_CHARS]
                    told = {"text": text, "speaker": speech.by, **shared}
                    posts.append(Post(name, HEARD, told, key=key))
            introduction = {"text": plan.introduction(name), **shared}
            heard = [*posts, Post(name, "system", introduction)]
            try:
                async with aclosing(
                    member.turn(
                        None,
                        approver=turn.questions.queue.approver,
                        heard=heard,
                        group=turn.origin.group,
                    )
                ) as its_turn:
                    return await _result_of_turn(name, its_turn, turn)
            finally:  # also after an interruption
                turn.note_made(member.receipt)

    async def _member(self, name: str) -> Agent:
        if name not in self._members:
            self._members[name] = await self._resources.enter_async_context(
                await self._open_member(name)
            )
        return self._members[name]

    async def advice(self, name: str, floor: Floor, most: int, turn: Turn) -> object:
        """Return a grown function's answer about who speaks next or whether to stop, by the policy of the turn.

        It gets those of the arguments `names`, `said` and `last` that it accepts.

        Raises:
            NoAdvice: there is no such function, it failed, or it took too long.
        """
        function = self._functions.registry.snapshot().functions.get(name)
        if function is None or self._functions.quarantine.holds(function):
            raise NoAdvice(
                "there is no such function" if function is None else "it is in quarantine"
            )
        known = {"names": [*floor.allowed], "said": tail(floor.said, most), "last": floor.last.by}
        takes = {
            key: value
            for key, value in known.items()
            if key in function.parameters.get("properties", {})
        }
        try:
            async with asyncio.timeout(_POLICY_S):
                author = Author(approvals=turn.approvals)
                report = await self._functions.call(name, takes, author=author)
        except TimeoutError:
            raise NoAdvice(f"it took longer than {_POLICY_S:g} s") from None
        except KnapperError as error:
            raise NoAdvice(str(error)) from error
        if report.outcome != "returned":
            raise NoAdvice(f"it ended with `{report.outcome}`")
        return report.value


class GroupJournal:
    """The speeches of a group, read from its journal incrementally."""

    def __init__(self, line: str, store: Store) -> None:
        self._line = line
        self._store = store
        self._seen = 0
        self._said: list[Speech] = []
        self._cut_off = ""
        self._asked_in = ""  # the turn that the user's last message began

    async def floor(self, plan: GroupPlan) -> Floor:
        """Return the current floor."""
        for entry in await self._store.history(self._line, since=self._seen, kinds=_KINDS):
            self._seen = entry.seq
            match read_entry(entry):
                case NoticeEntry(unheard=True) if self._asked_in == entry.turn:
                    del self._said[-1:]  # the message was not for all members: drop it
                case SpeakerChosen(agent=name):
                    self._cut_off = name
                case ReplyEntry() as reply if reply.speaker:
                    self._said.append(Speech(reply.speaker, reply.text, reply.to, entry.seq))
                    self._cut_off = ""
                case MessageEntry(text=text) if text != GO_ON:
                    self._said.append(Speech(USER, text, seq=entry.seq))
                    self._asked_in = entry.turn
                    self._cut_off = ""
                case _:
                    pass
        return plan.floor([*self._said], self._cut_off)


@dataclass(frozen=True, slots=True)
class _Outside:
    """The advisers for one choice."""

    loop: GroupLoop
    turn: Turn
    plan: GroupPlan

    async def function(self, name: str, floor: Floor, most: int) -> object:
        return await self.loop.advice(name, floor, most, self.turn)

    async def model(self, question: SpeakerQuestion) -> str:
        try:
            with self.turn.waiting("asking who speaks next"):
                async with asyncio.timeout(_CHOICE_S):
                    model_session, request = self.loop.model_session, choice_request(question)
                    return answered_name(
                        await model_session.reply_alone(request, self.turn, self.plan.model)
                    )
        except (ModelError, TimeoutError) as error:
            raise NoAdvice(str(error) or f"it took longer than {_CHOICE_S:g} s") from error


def choice_request(question: SpeakerQuestion) -> Request:
    """Return the question of who speaks next as a request to a model, which answers with one call."""
    name = {"type": "string", "enum": [*question.names], "description": "Who speaks next."}
    parameters = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    choosing = FunctionShown(_CHOOSE, "Choose who speaks next.", parameters)
    return Request((System(TASK), User(question.text)), (choosing,), _CHOICE_TOKENS, is_apart=True)


def answered_name(reply: "Reply") -> str:
    """Return the name that a model chose with its call, or its text if it made no call."""
    if not reply.calls:
        return reply.text
    return argument(reply.calls[0].arguments, "name")


def _is_for(only: Collection[str], plan: GroupPlan) -> bool:
    """Return whether all members are among the agents that the sender may use."""
    return not only or set(only).issuperset(plan.members)


async def _result_of_turn(
    name: str, its_turn: AsyncGenerator[events.Event, None], turn: Turn
) -> _TurnOutcome:
    told, handed = _TurnOutcome(), dict[str, str]()
    async for event in its_turn:
        match event:
            case events.TurnStarted():
                continue
            case events.TurnEnded():
                told.reason, told.reply = event.reason, event.reply
                for key, tokens in event.usage.items():  # the group accounts for the member's usage
                    turn.work.tokens[key] = turn.work.tokens.get(key, 0) + tokens
                continue
            case events.CallStarted() if event.name == HAND_OFF:
                handed[event.call_id] = argument(event.arguments, "to")
            case events.CallAnswered() if event.outcome == "returned":
                told.called.add(event.name)
                told.to = handed.get(event.call_id, told.to)
        turn.emit(
            replace(event, agent=name, step=turn.step, seq=0)
        )  # it is in the member's journal
    return told
