"""What each parameter of the two OpenAI doors does: it acts, is sent on to the model, or is refused with a reason.

The tables name every parameter of the `openai` package's own types. A test compares the two, and the reference prints
them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_core.base.untrusted import one_line
from agent_core.registry.validation import check_schema, schemas_in

from .client_tools import Choice, Tools, Unsupported
from .parts import Open

Json: TypeAlias = dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Acts:
    """A parameter with an effect here; `does` says which."""

    does: str


@dataclass(frozen=True, slots=True)
class SentOn:
    """A parameter that goes with every request to the model in this turn, under the same name."""

    does: str = "sent on to the model's endpoint with each request of the turn"


@dataclass(frozen=True, slots=True)
class NotOffered:
    """A parameter without an effect here; `usual` are the values that ask for none, which are taken."""

    why: str
    usual: tuple[Any, ...] = ()  # Any: JSON


Effect: TypeAlias = Acts | SentOn | NotOffered
_NO_SERVICE: Final = "is a service of OpenAI's own, which is not offered here."
_SEVERAL_STEPS: Final = "is not possible: a reply is the work of several requests to a model."
_OWNER: Final = "is the choice of who runs this server."
_CAP: Final = "the most tokens of each of the model's replies; one that is cut off ends the turn as `length`"
_WHO: Final = "whose conversation it is, next to the token: a history is known again under the same one only"
_FORMAT: Final = "the shape of the reply, sent on or enforced otherwise, checked here, and mended once"
_SHARED: Final[Mapping[str, Effect]] = {
    "model": Acts("the agent, or `AGENT@CONVERSATION`"),
    "stream": Acts("sends the reply as it comes; one with a shape comes in one piece"),
    "tools": Acts("functions of the client, next to those of the agent"),
    "tool_choice": Acts("which of the client's functions may, or must, be called"),
    "parallel_tool_calls": Acts("`false`: one call of the client's functions at a time"),
    "temperature": SentOn(),
    "top_p": SentOn(),
    "prompt_cache_key": SentOn(),
    "prompt_cache_options": NotOffered(_OWNER, ({},)),
    "prompt_cache_retention": NotOffered(_OWNER),
    "service_tier": NotOffered(_OWNER, ("auto", "default")),
    "user": Acts(_WHO),
    "safety_identifier": Acts(_WHO),
    "moderation": NotOffered(_NO_SERVICE),
    "top_logprobs": NotOffered(_SEVERAL_STEPS, (0,)),
}
CHAT: Final[Mapping[str, Effect]] = {
    **_SHARED,
    "messages": Acts("the whole history; what is new is said to the agent"),
    "stream_options": Acts("`include_usage` adds a last chunk with the tokens"),
    "max_tokens": Acts(_CAP),
    "max_completion_tokens": Acts(_CAP),
    "response_format": Acts(_FORMAT),
    "frequency_penalty": SentOn(),
    "presence_penalty": SentOn(),
    "seed": SentOn(),
    "reasoning_effort": SentOn(),
    "verbosity": SentOn(),
    "n": NotOffered("can only be 1: a turn of an agent has one reply.", (1,)),
    "logprobs": NotOffered(_SEVERAL_STEPS, (False,)),
    "logit_bias": NotOffered("needs the tokens of a model that the client does not choose.", ({},)),
    "stop": NotOffered("is not possible: it would cut off the calls by which the agent works.", ([],)),
    "modalities": NotOffered("can only be text.", (["text"],)),
    "audio": NotOffered("is not possible: replies are text."),
    "prediction": NotOffered("is not possible: the last reply of a turn is not known beforehand."),
    "store": NotOffered("is not possible: completions cannot be fetched again.", (False,)),
    "metadata": NotOffered("would be kept with a stored completion, and none is stored.", ({},)),
    "functions": NotOffered("is the old form of `tools`.", ([],)),
    "function_call": NotOffered("is the old form of `tool_choice`.", ("auto", "none")),
    "web_search_options": NotOffered(_NO_SERVICE),
}
RESPONSES: Final[Mapping[str, Effect]] = {
    **_SHARED,
    "input": Acts("what is new, or a whole history"),
    "instructions": Acts("a section of the agent's system message"),
    "previous_response_id": Acts("goes on from the last response of a conversation"),
    "max_output_tokens": Acts(_CAP),
    "text": Acts(f"`format`: {_FORMAT}; `verbosity`: sent on"),
    "reasoning": Acts("`effort`: sent on as `reasoning_effort`"),
    "metadata": Acts("returned with the response"),
    "store": Acts("`false`: the response cannot be continued by its id"),
    "stream_options": NotOffered("asks for padding, which is not sent.", ({}, {"include_obfuscation": False})),
    "include": NotOffered("asks for parts that no response has here.", ([], ["reasoning.encrypted_content"])),
    "truncation": NotOffered("can only be auto: what is too long is summarized.", ("auto",)),
    "background": NotOffered("is not possible: read the response as a stream.", (False,)),
    "conversation": NotOffered("is not known here: name one in `model`, as AGENT@CONVERSATION."),
    "context_management": NotOffered(_OWNER, ([],)),
    "max_tool_calls": NotOffered("counts calls of services of OpenAI's own, which are not offered here."),
    "prompt": NotOffered("names a template that is kept at OpenAI."),
    "image": NotOffered("is not possible: responses are text."),
    "access_programs": NotOffered(_NO_SERVICE, ([],)),
}


class Shared(Open):
    """The parameters that mean the same at both doors."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    prompt_cache_key: Annotated[str, Field(max_length=200)] | None = None
    user: Annotated[str, Field(max_length=200)] | None = None
    safety_identifier: Annotated[str, Field(max_length=200)] | None = None
    tools: Tools | None = None
    tool_choice: Choice = None
    parallel_tool_calls: bool | None = None

    def terms(self) -> Json:
        """Return what the client asks of the turn besides its functions: `parameters`, `max_tokens` and `shape`.

        Raises:
            Unsupported: a parameter has no effect here.
        """
        raise NotImplementedError

    def owner(self, token: str) -> str:
        """Return whose conversation it is: the token's, or of one of those for whom the token speaks."""
        names = [name for name in (self.user, self.safety_identifier) if name]
        return "\n".join([token, *names])


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


def sent_on(open_request: Open, effects: Mapping[str, Effect]) -> Json:
    """Return the parameters of a request that go on to the model.

    Raises:
        Unsupported: one has no effect here, or is not known.
    """
    given = _given(open_request)
    for name, value in given.items():
        effect = effects.get(name)
        if effect is None:
            raise Unsupported(one_line(name, 80), "is not known here.")
        if isinstance(effect, NotOffered) and not any(
            type(value) is type(usual) and value == usual for usual in effect.usual
        ):
            raise Unsupported(name, effect.why)
    return {name: value for name, value in given.items() if isinstance(effects[name], SentOn)}


def only_known(open_part: Open, name: str) -> None:
    """Do nothing if all that is given in a part of a request is known.

    Raises:
        Unsupported: something is not.
    """
    for key in _given(open_part).keys() - type(open_part).model_fields.keys():
        raise Unsupported(one_line(f"{name}.{key}", 80), "is not known here.")


def _given(open_part: Open) -> Json:
    """Return what a part of a request says; null is as if it were left out."""
    values = {**open_part.__dict__, **(open_part.model_extra or {})}
    return {name: values[name] for name in open_part.model_fields_set if values[name] is not None}


MOST_SCHEMA_BYTES: Final = 64 << 10
_UNCHECKED: Final = ("pattern", "patternProperties", "uniqueItems", "unevaluatedProperties")
_PLAIN: Final = frozenset({"text", "json_object", "json_schema"})


class FormatSchema(Open):
    """The schema of a reply, with its name."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "reply"
    description: Annotated[str, Field(max_length=8_000)] | None = None
    schema_: Annotated[Json | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(FormatSchema):
    """The format of a reply. Chat completions put the schema into a field of its own, responses do not."""

    type: Annotated[str, Field(max_length=40)]
    json_schema: FormatSchema | None = None

    def read(self, parameter: str) -> Json | None:
        """Return the format as chat completions send it; None for a text.

        Raises:
            Unsupported: it cannot be kept.
        """
        if self.type not in _PLAIN:
            raise Unsupported(parameter, f"can be {', '.join(sorted(_PLAIN))}.")
        only_known(self, parameter)
        if self.type != "json_schema":
            if self.model_fields_set != {"type"}:
                raise Unsupported(parameter, f"of the type {self.type} has nothing besides.", "Leave out the rest.")
            return {"type": self.type} if self.type == "json_object" else None
        given = self.json_schema or self
        only_known(given, f"{parameter}.json_schema")
        schema = {key: value for key, value in (given.schema_ or {}).items() if key != "$schema"}
        if (why := _why_not(schema)) is not None:
            raise Unsupported(parameter, f"has a schema that cannot be kept: {why}.")
        described = {"name": given.name, "description": given.description, "schema": schema, "strict": given.strict}
        return {
            "type": "json_schema",
            "json_schema": {key: value for key, value in described.items() if value is not None},
        }


def _why_not(schema: Json) -> str | None:
    if schema.get("type") != "object":
        return 'it has to be of {"type": "object"}'
    if len(json.dumps(schema)) > MOST_SCHEMA_BYTES:
        return f"it has more than {MOST_SCHEMA_BYTES >> 10} KiB"
    if (problem := check_schema(schema)) is not None:
        return problem.message
    for keyword in _UNCHECKED:
        if any(keyword in part for part in schemas_in(schema)):
            return f"`{keyword}` is not checked here, since it can take without end"
    return None
