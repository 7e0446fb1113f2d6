"""The effect of each OpenAI API parameter here: used, passed on to the model, or rejected with a reason.

The tables list every parameter in the types of the `openai` package, including those in messages, items, tools and
formats. A test compares the two, and the reference documentation prints them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_core.api.operations import Open
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.registry.answer_shapes import schema_fault

from .chat_threads import Choice, ClientMessage, Tools, Unsupported

Json: TypeAlias = dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Kinds:
    """Objects of several kinds, distinguished `by` a key, with the fields of each; `usual` is the kind without the key.

    An object of another kind is rejected with the reason `why`.
    """

    by: str
    kinds: Mapping[str, Mapping[str, "Effect"]]
    why: str
    usual: str = ""


@dataclass(frozen=True, slots=True)
class Acts:
    """A parameter with an effect here; `does` describes it, and `parts` are its fields if it is not a plain value."""

    does: str
    parts: "Mapping[str, Effect] | Kinds | None" = None


@dataclass(frozen=True, slots=True)
class SentOn:
    """A parameter that is passed on with every request to the model in this turn, under the same name."""

    does: str = "sent on to the model's endpoint with each request of the turn"


@dataclass(frozen=True, slots=True)
class NotOffered:
    """A parameter that is not supported here; `usual` are the accepted values that request no effect."""

    why: str
    usual: tuple[Any, ...] = ()  # Any: JSON


Effect: TypeAlias = Acts | SentOn | NotOffered
# What programs say of a message or a function for other endpoints, such as thoughts and marks of caches: unlike a
# parameter of the request, it asks for nothing.
_PARTS_OF_OTHERS: Final = ("messages.", "input.", "tools.")
_SENT_BACK: Final = Acts("taken as it was returned from here: it asks for nothing")
_NO_SERVICE: Final = "is a service of OpenAI's own, which is not offered here."
_SEVERAL_STEPS: Final = "is not possible: a reply is the work of several requests to a model."
_OWNER: Final = "is the choice of who runs this server."
_CAP: Final = (
    "the most tokens of each of the model's replies; one that is cut off ends the turn as `length`"
)
_WHO: Final = (
    "for whom the token asks: a response, or a call, is gone on from under the same one only"
)
_FORMAT: Final = "the shape of the reply: in the prompt, sent on with the last requests, checked here, and fixed once"
_NO_TEXT: Final = "is no text, and nothing else can be read here."
_NO_PICTURE: Final = "is neither a text nor a picture, and nothing else can be read here."
_OF_OPENAI: Final = "is a mark of OpenAI's own models and programs."
_AS_TEXT: Final = "is not kept: send what was said as the text."
_NAMED: Final = "must be the function of the call that is answered"
_CALLED: Final[Mapping[str, Effect]] = {
    "name": Acts("its name"),
    "arguments": Acts("its arguments, as JSON"),
}
_TEXT: Final[Mapping[str, Effect]] = {
    "text": Acts("the text"),
    "prompt_cache_breakpoint": NotOffered(_OWNER),
}
_TEXTS: Final[Mapping[str, Mapping[str, Effect]]] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": {
        **_TEXT,
        "annotations": NotOffered(_AS_TEXT, ([],)),
        "logprobs": NotOffered(_AS_TEXT, ([],)),
    },
}
_DETAIL: Final = Acts("passed over: the model's endpoint chooses")
_ADDRESS: Final = Acts("a picture as `data:image/png;base64,…`; nothing is fetched from an address")
_PICTURE: Final = Acts("a picture", {"url": _ADDRESS, "detail": _DETAIL})
_NO_BREAKPOINT: Final = NotOffered(_OWNER)
_PICTURES: Final[Mapping[str, Mapping[str, Effect]]] = {
    "image_url": {"image_url": _PICTURE, "prompt_cache_breakpoint": _NO_BREAKPOINT},
    "input_image": {
        "image_url": _ADDRESS,
        "detail": _DETAIL,
        "file_id": NotOffered(_NO_SERVICE),
        "prompt_cache_breakpoint": _NO_BREAKPOINT,
    },
}
_CONTENT: Final = Acts("a text, or parts of one", Kinds("type", _TEXTS, _NO_TEXT))
_MIXED_CONTENT: Final = Acts(
    "a text, or parts: texts and pictures", Kinds("type", {**_TEXTS, **_PICTURES}, _NO_PICTURE)
)
_SAID: Final[Mapping[str, Effect]] = {
    "content": _CONTENT,
    "name": Acts("who says it, which stands before the text"),
}
_MESSAGES: Final = Kinds(
    "role",
    {
        "system": _SAID,
        "developer": _SAID,
        "user": {**_SAID, "content": _MIXED_CONTENT},
        "assistant": {
            "content": _CONTENT,
            "name": Acts(
                "can only be that of the agent: what another one said is said by a user of that name"
            ),
            "tool_calls": Acts(
                "calls of the client's functions",
                Kinds(
                    "type",
                    {
                        "function": {
                            "id": Acts("by which its answer is known"),
                            "function": Acts("the function that is called", _CALLED),
                            "index": _SENT_BACK,
                        }
                    },
                    "is no function, and tools of other kinds are not offered here.",
                    "function",
                ),
            ),
            "refusal": NotOffered(_AS_TEXT),
            "audio": NotOffered("is not possible: replies are text."),
            "function_call": NotOffered("is the old form of `tool_calls`."),
        },
        "tool": {
            "content": _MIXED_CONTENT,
            "tool_call_id": Acts("the call that is answered"),
            "name": Acts(_NAMED),
        },
    },
    "is not known here; that of an answer to a call is `tool`.",
)
_ITEM: Final[Mapping[str, Effect]] = {"id": _SENT_BACK, "status": _SENT_BACK}
_PHASE: Final[Mapping[str, Effect]] = {"phase": NotOffered(_OF_OPENAI)}
_CALL: Final[Mapping[str, Effect]] = {
    **_ITEM,
    "call_id": Acts("by which a call and its answer are known"),
    "caller": NotOffered(_OF_OPENAI, ({"type": "direct"},)),
    "namespace": NotOffered(_OF_OPENAI),
}
_ITEMS: Final = Kinds(
    "type",
    {
        "message": {
            **_ITEM,
            **_PHASE,
            "role": Acts("system, developer, user or assistant"),
            "content": _MIXED_CONTENT,
        },
        "function_call": {
            **_CALL,
            **_CALLED,
            "async": NotOffered("is not possible: the turn waits for the answer.", (False,)),
        },
        "function_call_output": {**_CALL, "output": _MIXED_CONTENT, "name": Acts(_NAMED)},
        "reasoning": {},
    },
    "is the work of a service of OpenAI's own, or of use to its model only.",
    "message",
)
_FUNCTION: Final[Mapping[str, Effect]] = {
    "name": Acts("of the function"),
    "description": Acts("what the model reads of it"),
    "parameters": Acts("the JSON Schema of its arguments"),
    "strict": Acts(
        "`true`: arguments that do not fit the schema (but for its patterns) go back to the model"
    ),
}
_NO_FUNCTION: Final = (
    "is not known here. Send functions: the agent has the rest itself, or makes it."
)
_NO_CHOICE: Final = "cannot be kept: choose none, auto, required, or functions that are in `tools`."
_ALLOWED: Final[Mapping[str, Effect]] = {
    "mode": Acts("whether one must be called"),
    "tools": Acts("their names"),
}
_SCHEMA: Final[Mapping[str, Effect]] = {
    "name": Acts("of the shape"),
    "description": Acts("what the model reads of it"),
    "schema": Acts("a JSON Schema"),
    "strict": Acts("sent on; the reply is checked in any case"),
}
_NO_FORMAT: Final = "is not known here."
_NO_THOUGHTS: Final = "is not possible: no response holds the thoughts of a model."
_TOOLS: Final = "functions of the client, next to those of the agent"
_CHOICE: Final = "which of the client's functions may, or must, be called"
_SHARED: Final[Mapping[str, Effect]] = {
    "model": Acts("the agent, or `AGENT@CONVERSATION`"),
    "stream": Acts("sends the reply as it comes; one with a shape comes in one piece"),
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
    "messages": Acts(
        "the whole history, which is the context; in a named conversation, what is new of it",
        _MESSAGES,
    ),
    "tools": Acts(
        _TOOLS,
        Kinds("type", {"function": {"function": Acts("the function", _FUNCTION)}}, _NO_FUNCTION),
    ),
    "tool_choice": Acts(
        _CHOICE,
        Kinds(
            "type",
            {
                "function": {
                    "function": Acts("the one that must be called", {"name": Acts("its name")})
                },
                "allowed_tools": {"allowed_tools": Acts("those that may be called", _ALLOWED)},
            },
            _NO_CHOICE,
            "function",
        ),
    ),
    "stream_options": Acts(
        "what a stream holds besides",
        {
            "include_usage": Acts("adds a last chunk with the tokens"),
            "include_obfuscation": NotOffered("asks for padding, which is not sent.", (False,)),
        },
    ),
    "max_tokens": Acts(_CAP),
    "max_completion_tokens": Acts(_CAP),
    "response_format": Acts(
        _FORMAT,
        Kinds(
            "type",
            {
                "text": {},
                "json_object": {},
                "json_schema": {"json_schema": Acts("the shape", _SCHEMA)},
            },
            _NO_FORMAT,
        ),
    ),
    "frequency_penalty": SentOn(),
    "presence_penalty": SentOn(),
    "seed": SentOn(),
    "reasoning_effort": SentOn(),
    "verbosity": SentOn(),
    "n": NotOffered("can only be 1: a turn of an agent has one reply.", (1,)),
    "logprobs": NotOffered(_SEVERAL_STEPS, (False,)),
    "logit_bias": NotOffered("needs the tokens of a model that the client does not choose.", ({},)),
    "stop": NotOffered(
        "is not possible: it would cut off the calls by which the agent works.", ([],)
    ),
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
    "input": Acts("what is new, or a whole history", _ITEMS),
    "tools": Acts(
        _TOOLS,
        Kinds(
            "type",
            {
                "function": {
                    **_FUNCTION,
                    "output_schema": NotOffered("is not checked: an answer is a text."),
                    "allowed_callers": NotOffered(_OF_OPENAI, (["direct"],)),
                    "async": NotOffered(
                        "is not possible: the turn waits for the answer.", (False,)
                    ),
                    "defer_loading": NotOffered(
                        "is not possible: a client's functions are all shown.", (False,)
                    ),
                }
            },
            _NO_FUNCTION,
        ),
    ),
    "tool_choice": Acts(
        _CHOICE,
        Kinds(
            "type",
            {"function": {"name": Acts("the one that must be called")}, "allowed_tools": _ALLOWED},
            _NO_CHOICE,
            "function",
        ),
    ),
    "instructions": Acts("a section of the agent's system message"),
    "previous_response_id": Acts("goes on from the last response of a conversation"),
    "max_output_tokens": Acts(_CAP),
    "text": Acts(
        "how the text is written",
        {
            "format": Acts(
                _FORMAT,
                Kinds("type", {"text": {}, "json_object": {}, "json_schema": _SCHEMA}, _NO_FORMAT),
            ),
            "verbosity": Acts("sent on to the model's endpoint"),
        },
    ),
    "reasoning": Acts(
        "how the model thinks",
        {
            "effort": Acts("sent on as `reasoning_effort`"),
            "summary": NotOffered(_NO_THOUGHTS),
            "generate_summary": NotOffered(_NO_THOUGHTS),
            "context": NotOffered(_NO_THOUGHTS),
            "mode": NotOffered(_OF_OPENAI),
        },
    ),
    "metadata": Acts("returned with the response"),
    "store": Acts("`false`: the response cannot be continued by its id"),
    "stream_options": NotOffered(
        "asks for padding, which is not sent.", ({}, {"include_obfuscation": False})
    ),
    "include": NotOffered(
        "asks for parts that no response has here.", ([], ["reasoning.encrypted_content"])
    ),
    "truncation": NotOffered("can only be auto: what is too long is summarized.", ("auto",)),
    "background": NotOffered("is not possible: read the response as a stream.", (False,)),
    "conversation": NotOffered("is not known here: name one in `model`, as AGENT@CONVERSATION."),
    "context_management": NotOffered(_OWNER, ([],)),
    "max_tool_calls": NotOffered(
        "counts calls of services of OpenAI's own, which are not offered here."
    ),
    "prompt": NotOffered("names a template that is kept at OpenAI."),
    "image": NotOffered("is not possible: responses are text."),
    "access_programs": NotOffered(_NO_SERVICE, ([],)),
}


class Shared(Open):
    """The parameters with the same meaning in both APIs; `model` is an agent, or `AGENT@CONVERSATION`."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    prompt_cache_key: Annotated[str, Field(max_length=200)] | None = None
    user: Annotated[str, Field(max_length=200)] | None = None
    safety_identifier: Annotated[str, Field(max_length=200)] | None = None
    tools: Tools | None = None
    tool_choice: Choice = None
    parallel_tool_calls: bool | None = None

    def terms(self) -> Json:
        """Return the client's options for the turn other than functions: `parameters`, `max_tokens` and `shape`.

        Raises:
            Unsupported: a parameter is not supported here.
        """
        raise NotImplementedError

    def read(self) -> list[ClientMessage]:
        """Return the messages in the request."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the messages after they are read."""
        raise NotImplementedError

    @property
    def agent(self) -> str:
        """The agent that `model` names."""
        return self.model.partition("@")[0]

    @property
    def previous(self) -> str:
        """The id of the response to continue from, or "" if none was given."""
        return ""

    @property
    def is_stored(self) -> bool:
        """Whether the answer has an id to continue from."""
        return False

    def owner(self, token: str) -> str:
        """Return the owner of the conversation: the token, or a user that the token acts for."""
        names = [name for name in (self.user, self.safety_identifier) if name]
        return "\n".join([token, *names])


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]


def sent_on(open_request: Open, effects: Mapping[str, Effect]) -> Json:
    """Return the parameters of a request that are passed on to the model.

    Raises:
        Unsupported: a parameter is not supported here or is unknown.
    """
    _check(open_request, effects, "")
    return {
        name: value
        for name, value in _given_values(open_request).items()
        if isinstance(effects[name], SentOn)
    }


def _check(open_part: Open, parts: Mapping[str, Effect] | Kinds, place: str) -> None:
    """Check that every field in a part of a request is supported or requests no effect."""
    given = _given_values(open_part)
    if isinstance(parts, Kinds):
        kind = str(given.pop(parts.by, parts.usual))
        if kind not in parts.kinds:
            raise Unsupported(f"{place}{parts.by}", f"is `{one_line(kind, 40)}`, which {parts.why}")
        parts = parts.kinds[kind]
    for name, value in given.items():
        where, effect = f"{place}{one_line(name, 80)}", parts.get(name)
        if effect is None and place.startswith(_PARTS_OF_OTHERS):
            continue
        if effect is None:
            raise Unsupported(where, "is not known here.")
        if isinstance(effect, NotOffered) and not any(
            type(value) is type(usual) and value == usual for usual in effect.usual
        ):
            raise Unsupported(where, effect.why)
        if isinstance(effect, Acts) and effect.parts is not None:
            if isinstance(value, Open):
                _check(value, effect.parts, f"{where}.")
            for number, inner in enumerate(value if isinstance(value, list) else ()):
                _check(inner, effect.parts, f"{where}.{number}.")


def _given_values(open_part: Open) -> Json:
    """Return the values in a part of a request, by their names in JSON; null counts as omitted."""
    values, fields = (
        {**open_part.__dict__, **(open_part.model_extra or {})},
        type(open_part).model_fields,
    )
    names = {
        name: fields[name].alias or name if name in fields else name
        for name in open_part.model_fields_set
    }
    return {
        names[name]: value for name, value in values.items() if name in names and value is not None
    }


class FormatSchema(Open):
    """The schema of a reply and its name."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "reply"
    description: Annotated[str, Field(max_length=8_000)] | None = None
    schema_: Annotated[Json | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(FormatSchema):
    """The format of a reply. Chat completions have a separate field for the schema; responses do not."""

    type: Annotated[str, Field(max_length=40)]
    json_schema: FormatSchema | None = None

    def read(self, parameter: str) -> Json | None:
        """Return the format as in chat completions, or None for text.

        Raises:
            Unsupported: the format cannot be enforced.
        """
        if self.type != "json_schema":
            return {"type": self.type} if self.type == "json_object" else None
        given = self.json_schema or self
        schema = {key: value for key, value in (given.schema_ or {}).items() if key != "$schema"}
        if (why := schema_fault(schema)) is not None:
            raise Unsupported(parameter, f"has a schema that cannot be kept: {why}.")
        described = {
            "name": given.name,
            "description": given.description,
            "schema": schema,
            "strict": given.strict,
        }
        return {
            "type": "json_schema",
            "json_schema": {key: value for key, value in described.items() if value is not None},
        }
