"""Group chats of other frameworks; a peer's own interpreter runs this file, so it imports none of our code.

`group_peers.py NAME` reads one JSON document with the cases and prints one with the speakers, how often a model was
asked to choose, and the length of each question.
"""

import asyncio
import importlib
import json
import logging
import sys
from typing import Any, Final

load: Final = importlib.import_module  # type checking runs without these packages
_TIMEOUT_S: Final = 60


def _autogen() -> Any:  # noqa: C901 - classes of a library loaded here; Any: not installed where this is checked
    base, kinds = load("autogen_agentchat.base"), load("autogen_agentchat.messages")
    agents, models = load("autogen_agentchat.agents"), load("autogen_core.models")
    teams, conditions = load("autogen_agentchat.teams"), load("autogen_agentchat.conditions")

    class Chooser(models.ChatCompletionClient):  # type: ignore[misc,name-defined]
        component_type = "model"
        component_config_schema = None

        def __init__(self, answers: list[str]) -> None:
            self.answers = answers
            self.sizes: list[int] = []

        async def create(self, messages: Any, **_: Any) -> Any:
            self.sizes.append(sum(len(str(message.content)) for message in messages))
            content = self.answers[(len(self.sizes) - 1) % len(self.answers)]
            usage = models.RequestUsage(0, 0)
            return models.CreateResult(
                finish_reason="stop", content=content, usage=usage, cached=False
            )

        def create_stream(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            pass

        def actual_usage(self) -> Any:
            return models.RequestUsage(0, 0)

        total_usage = actual_usage

        def count_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        def remaining_tokens(self, *_: Any, **__: Any) -> int:
            return 1_000_000

        @property
        def model_info(self) -> dict[str, Any]:
            names = ("vision", "function_calling", "json_output", "structured_output")
            return dict.fromkeys(names, False) | {"family": "unknown"}

        capabilities = model_info

    class Member(agents.BaseChatAgent):  # type: ignore[misc,name-defined]
        def __init__(self, name: str, purpose: str, text: str) -> None:
            super().__init__(name, purpose or name)
            self.text = text

        @property
        def produced_message_types(self) -> Any:
            return (kinds.TextMessage,)

        async def on_messages(self, *_: Any) -> Any:
            return base.Response(
                chat_message=kinds.TextMessage(source=self.name, content=self.text)
            )

        async def on_reset(self, _: Any) -> None:
            pass

    async def run(case: dict[str, Any]) -> dict[str, Any]:
        chooser = Chooser(case["answers"])
        members = [
            Member(name, purpose, case["texts"][name]) for name, purpose in case["members"].items()
        ]
        before = len(case["said"])
        most = conditions.MaxMessageTermination(before + case["turns"])
        team = teams.SelectorGroupChat(members, model_client=chooser, termination_condition=most)
        task = [kinds.TextMessage(source=by, content=text) for by, text in case["said"]]
        result = await asyncio.wait_for(team.run(task=task), _TIMEOUT_S)
        speakers = [message.source for message in result.messages[before:]]
        return {"speakers": speakers, "asked": len(chooser.sizes), "sizes": chooser.sizes}

    return run


def _agent_framework() -> Any:  # noqa: C901 - classes of a library loaded here; Any: not installed where this is checked
    kit, orchestrations = load("agent_framework"), load("agent_framework.orchestrations")

    class Scripted:
        def __init__(self, name: str, purpose: str, reply: Any) -> None:
            self.id = self.name = name
            self.description = purpose or name
            self.reply = reply
            self.spoken: list[str] = []

        def create_session(self, *, session_id: Any = None) -> Any:
            return kit.AgentSession(session_id=session_id)

        def get_session(self, service_session_id: Any, *, session_id: Any = None) -> Any:
            return kit.AgentSession(service_session_id=service_session_id, session_id=session_id)

        def run(
            self, messages: Any = None, *, stream: bool = False, session: Any = None, **_: Any
        ) -> Any:
            text = self.reply(messages)

            async def pieces() -> Any:
                part = kit.Content.from_text(text)
                yield kit.AgentResponseUpdate(
                    contents=[part], role="assistant", author_name=self.name
                )

            async def whole() -> Any:
                return kit.AgentResponse(
                    messages=[kit.Message("assistant", [text], author_name=self.name)]
                )

            if stream:
                return kit.ResponseStream(
                    pieces(), finalizer=lambda updates: kit.AgentResponse.from_updates(updates)
                )
            return whole()

    class Chooser(Scripted, kit.Agent):  # type: ignore[misc,name-defined]
        """An agent as the class that the builder requires; it answers by the script."""

    async def run(case: dict[str, Any]) -> dict[str, Any]:
        speakers: list[str] = []
        sizes: list[int] = []

        def member(name: str) -> Any:
            def reply(_: Any) -> str:
                speakers.append(name)
                return str(case["texts"][name])

            return Scripted(name, case["members"][name], reply)

        def choose(said: Any) -> str:
            listed = said if isinstance(said, list) else [said]
            fresh = sum(len(str(getattr(message, "text", message))) for message in listed)
            sizes.append(
                fresh + (sizes[-1] if sizes else 0)
            )  # its session keeps all earlier questions
            name = case["answers"][(len(sizes) - 1) % len(case["answers"])]
            return json.dumps(
                {
                    "terminate": False,
                    "reason": "scripted",
                    "next_speaker": name,
                    "final_message": None,
                }
            )

        chooser = Chooser("chooser", "Chooses.", choose)
        members = [member(name) for name in case["members"]]
        builder = orchestrations.GroupChatBuilder(
            participants=members, orchestrator_agent=chooser, max_rounds=case["turns"]
        )
        error = ""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                said = [kit.Message("user", [text], author_name=by) for by, text in case["said"]]
                async for _ in builder.build().run(said, stream=True):
                    pass
        except Exception as failure:  # noqa: BLE001 - what it does with an unusable answer is what is measured
            error = f"{type(failure).__name__}: {str(failure)[:120]}"
        return {
            "speakers": speakers[: case["turns"]],
            "asked": len(sizes),
            "sizes": sizes,
            "error": error,
        }

    return run


_PEERS: Final = {"autogen-agentchat": _autogen, "agent-framework": _agent_framework}


async def _main(name: str) -> None:
    run = _PEERS[name]()
    results = []
    for case in json.load(sys.stdin):
        try:
            results.append(await run(case))
        except Exception as failure:  # noqa: BLE001 - a peer that fails is a result
            results.append(
                {
                    "speakers": [],
                    "asked": 0,
                    "sizes": [],
                    "error": f"{type(failure).__name__}: {failure}",
                }
            )
    print(json.dumps(results))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(_main(sys.argv[1]))
