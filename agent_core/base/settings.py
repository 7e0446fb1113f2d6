"""The typed settings: defaults < `knapper.toml` < `KNAPPER_*` variables < flags.

One model validates all of them, with a class for each table of the file; an unknown key is an error that names the
nearest known one. Secrets never come from the file: `model.discover` reads them from the environment. `write_values`
changes single values of the file.
"""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError

from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import OF_A_FILE, Malformed, read_toml

from . import extensions
from .caps import AMOUNT_LIMIT, Cap, caps_in_force
from .clock import zone_named
from .errors import SettingsError
from .gone import GONE, MOVED, with_moved, without_gone
from .matching import did_you_mean
from .plain_files import read_plain, replace_text
from .policy import MODES, Growth, Mode, Policy
from .problem import expected_value
from .untrusted import one_line
from .workspace_folder import SETTINGS

# The settings of a model, and of those that are named to switch between: `[model]` and `[models.NAME]`.

KEY_VARIABLE: Final = r"^[A-Z][A-Z0-9_]*_API_KEY$"
"""The names of variables with keys: no other variable is sent, whatever a file says."""
USUAL_KEY: Final = "OPENAI_API_KEY"


def _no_own_variable(name: str) -> str:
    if name.startswith(PREFIX):  # a secret of functions is no key of a model
        raise PydanticCustomError("own_variable", "no variable of this program")
    return name


KeyVariable: TypeAlias = Annotated[
    str, Field(pattern=KEY_VARIABLE), AfterValidator(_no_own_variable)
]
ProgramsOffer: TypeAlias = Literal["auto", "on", "off"]


def _known_zone(name: str) -> str:
    if zone_named(name) is None:
        raise PydanticCustomError("zone", "a time zone")
    return name


Zone: TypeAlias = Annotated[str, AfterValidator(_known_zone)]


class SettingsSection(BaseModel):
    """A table of the settings file; unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, str_max_length=2_000, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _is_countable(cls, value: object) -> object:
        if isinstance(value, int | float) and abs(value) > AMOUNT_LIMIT:
            raise PydanticCustomError("number", "a number up to 10^15")
        return value


_LONGEST_TEXT: Final = 100_000
"""Characters of a text for a model; a name or an address has its bound from `SettingsSection`."""


class ModelSettings(SettingsSection):
    """The model to use, and the options of its requests."""

    name: str | None = Field(
        None,
        description="Model at the chosen endpoint, or one that runs on this machine (`docs/local-model.md`).",
    )
    base_url: str | None = Field(None, description="Address of an endpoint with OpenAI's API.")
    mode: str = Field(
        "auto",
        description="How calls are sent: `native`, or the mode of an extension for small models"
        " (`docs/local-model.md`); `auto`: native, or that mode if the model is small, or does not make calls.",
    )
    programs: ProgramsOffer = Field(
        "auto",
        description="Whether the model is offered `run_program`; `auto`: if its calls are sent natively.",
    )
    api: Literal["auto", "chat", "responses"] = Field(
        "auto",
        description="API that the endpoint is asked by; `auto`: `responses` at OpenAI and Azure's newer surface,"
        " `chat` elsewhere; set it where a gateway speaks only the other.",
    )
    stream: bool = Field(
        True,
        description="Ask the endpoint to stream its replies; `false` for one that streams calls wrongly.",
    )
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        description="Sampling temperature, such as 0 for replies that vary less; the endpoint's own if unset.",
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="Longest reply in tokens, where an endpoint allows fewer than it would write.",
    )
    context_tokens: int | None = Field(
        None, ge=512, description="Size of the window, if the endpoint does not report it."
    )
    timeout_s: float = Field(
        600, gt=0, description="Longest wait for the next piece of a reply, in seconds."
    )
    retries: int = Field(
        4,
        ge=0,
        le=10,
        description="Retries after 429, 5xx and lost connections; 0 for a program that tries again by itself.",
    )
    key_variable: KeyVariable = Field(
        USUAL_KEY, description="Environment variable with the endpoint's key: `…_API_KEY`."
    )
    threads: int | None = Field(
        None,
        ge=1,
        description="Threads of the local model, to leave cores to other programs; by default, cores − 1.",
    )


class ModelPrice(SettingsSection):
    """The price of a model, in US dollars per million tokens."""

    input: float = Field(ge=0, description="For what it reads.")
    output: float = Field(ge=0, description="For what it writes.")
    cached: float | None = Field(
        None, ge=0, description="For what it had read already; as input if unset."
    )

    @property
    def for_cached(self) -> float:
        """For what it had read already."""
        return self.input if self.cached is None else self.cached

    def of(self, *, prompt: int, cached: int, completion: int) -> float:
        """Return what these tokens cost, in US dollars; the `prompt` includes the `cached` ones."""
        read = (prompt - cached) * self.input + cached * self.for_cached
        return (read + completion * self.output) / 1e6


class NamedModel(SettingsSection):
    """A table `[models.NAME]`: what differs from `[model]` when the model of that name is used."""

    name: str | None = Field(
        None, description="Model at the endpoint, or one here; by default, the table's name."
    )
    base_url: str | None = Field(
        None, description="Address of its endpoint; by default, that of `[model]`."
    )
    key_variable: KeyVariable | None = Field(
        None, description="Environment variable with its key: `…_API_KEY`."
    )
    mode: str | None = Field(None, description="How calls are sent.")
    programs: ProgramsOffer | None = Field(
        None, description="Whether the model is offered `run_program`."
    )
    api: Literal["auto", "chat", "responses"] | None = Field(
        None, description="API that its endpoint is asked by."
    )
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature.")
    context_tokens: int | None = Field(None, ge=512, description="Size of the window.")
    price: ModelPrice | None = Field(
        None, description="`{ input = 1.0, cached = 0.1, output = 4.0 }` in dollars."
    )

    def over(self, settings: ModelSettings, table: str) -> ModelSettings:
        """Return the settings of `[model]` with what this table says."""
        own = self.model_dump(exclude_none=True, exclude={"price"})
        return settings.model_copy(update={"name": table, **own})


class TurnSettings(SettingsSection):
    """The limits of one turn."""

    mode: Mode = Field(
        "ask",
        description="What a turn may reach without a question. `plan`: it only reads, and ends with a proposal; `ask`:"
        " each new reach is asked; `task`: its first question offers all that the model expects to need. The file of a"
        " workspace, which travels with it, may say `plan`.",
    )
    max_steps: int = Field(
        30,
        ge=1,
        description="Maximum number of model replies per turn: what a turn that leads nowhere may cost.",
    )
    parallel: int = Field(
        4,
        ge=1,
        le=64,
        description="Maximum number of concurrent workers, each with its own memory.",
    )
    function_tokens: int = Field(
        3_000,
        ge=500,
        description="Tokens that functions of the workspace take; where there are more, those that a message probably"
        " needs and those that were used last are shown. They are paid for in each request.",
    )
    index_tokens: int = Field(
        880,
        ge=200,
        description="Tokens that the lines of functions of the workspace take, where a model calls natively: more for a"
        " large library, less for a small window.",
    )
    first_thought: bool = Field(
        True,
        description="An agent's first reply needs an inner thought, where its preset verifies that reply; `false` for a"
        " model that writes none.",
    )
    message_llm_model: str | None = Field(
        None,
        description="Model that `message_llm` asks, such as a stronger one; the agent's own if unset.",
    )
    answer_chars: int = Field(
        12_000,
        ge=500,
        description="Longest answer of one call that the model reads, in characters: less for a small window.",
    )


class SandboxSettings(SettingsSection):
    """The limits of one call, and the packages that workers may import."""

    level: str = Field(
        "auto",
        description="How functions are confined: `full`, `core`, or a level that an extension adds; `auto` is the"
        " strongest that this machine enforces.",
    )
    wall_s: float = Field(
        10,
        gt=0,
        description="Wall-clock limit of one call in seconds; more for functions that compute or wait long.",
    )
    memory_mib: int = Field(
        512,
        ge=64,
        le=1 << 20,
        description="Address space of one worker in MiB, times `turn.parallel` at the same time.",
    )
    value_mib: int = Field(
        64,
        ge=1,
        le=1024,
        description="Largest result or argument between functions in MiB; it is kept on disk for seven days.",
    )
    scratch_mib: int = Field(
        64,
        ge=1,
        description="Scratch space of one call in MiB; more for functions that write large files.",
    )
    packages: tuple[str, ...] = Field(
        ("pydantic",), description="Packages of this environment that functions may import."
    )
    unsafe: bool = Field(
        False,
        description="Run functions even if the sandbox cannot be enforced. The prompt shows it.",
    )


class GateSettings(SettingsSection):
    """The fixes that the gate makes, and how strict it is with the user's files."""

    strict: bool = Field(
        False, description="Apply the rules for the agent's functions to saved files."
    )
    fixes: bool = Field(
        True,
        description="Fix mechanical problems; `false` keeps every text as its author wrote it.",
    )
    reader: str = Field(
        "same",
        description="A model that is shown the description of a function that the agent makes, never its code, and says"
        " what it must reach and return: `same` (the model above), `off` or a model's name.",
    )


class StandingSettings(SettingsSection):
    """The rules by which recorded calls change a function's standing, what is kept of them, and when it counts as
    unused.
    """

    trial_calls: int = Field(
        3,
        ge=1,
        description="Successful calls in a row after which a draft is on trial: how much evidence you want.",
    )
    trusted_calls: int = Field(
        20, ge=1, description="Successful calls in a row after which a function is trusted, …"
    )
    trusted_days: float = Field(
        7, ge=0, description="… if this many days lie between the first and the last of them."
    )
    quarantine_failures: int = Field(
        5,
        ge=0,
        description="Failures in a row after which the model no longer sees a function; 0: never.",
    )
    retire_days: float = Field(
        180,
        ge=0,
        description="Days without a call after which a function is suggested for removal; 0: never.",
    )


class GrowthSettings(SettingsSection):
    """The rules for functions that agents make: whether they may, what they leave alone, and who writes."""

    mode: Growth = Field(
        "on",
        description="Whether agents make and change functions. `on`: what passes the gate joins; `ask`: you are shown"
        " what passed, and it is kept until you join it (`knapper functions join`); `off`: agents are offered nothing"
        " for it. You can always do it yourself.",
    )
    pin: Literal["none", "mine"] = Field(
        "none",
        description="`mine`: what you wrote or changed is pinned from the start, so that no agent changes it"
        " (`knapper functions pin`).",
    )
    maker: str = Field(
        "auto",
        description="The model that writes the functions that agents ask for, which the agent's own model calls: `auto`"
        " (`[models.maker]`, if there is one), `off` or a model's name.",
    )


class TendSettings(SettingsSection):
    """The work of `knapper functions tend`, its limits, and when it is done without being asked for."""

    idle: float = Field(
        0,
        ge=0,
        description="Minutes without a turn here after which the library is tended by itself, once, under `tend.apply`;"
        " the next message ends it. 0: never.",
    )

    apply: Literal["never", "proved"] = Field(
        "never",
        description="Whether proven changes are made (`proved`) or only proposed; `--apply` makes them once.",
    )
    tokens: int = Field(
        100_000,
        ge=0,
        description="Tokens after which a run of tending asks no model: what it may cost.",
    )
    minutes: float = Field(
        10,
        gt=0,
        description="Minutes after which a run of tending ends, so that it does not take the machine.",
    )


class GrantSettings(SettingsSection):
    """The cases in which the user is asked before a function gets what it needs."""

    ask: Literal["grants", "never"] = Field(
        "grants",
        description="When you are asked. `grants`: before a function gets a grant; `never`: whatever needs an approval"
        " is refused. `growth.mode` says whether functions join unasked.",
    )
    same_reach: bool = Field(
        False,
        description="A version that an agent makes here keeps the yes of the one before if its text shows no larger"
        " reach; the status line says so. Only from the environment or a flag.",
    )
    wait_minutes: float = Field(
        60,
        gt=0,
        description="Minutes that a question waits for you in a turn that another agent began; then `unattended` holds"
        " for the rest of that turn.",
    )
    packages_mib: int = Field(
        2048,
        ge=1,
        le=1 << 20,
        description="Largest set of packages that may be installed, in MiB of your disk.",
    )
    unattended: Literal["deny", "file"] = Field(
        "deny",
        description="If nobody can be asked: `deny` refuses; `file` accepts the entries of `functions/grants.toml`,"
        " for servers that run reviewed code. Only from the environment or a flag.",
    )


class HelperSettings(SettingsSection):
    """The rules for helpers, the narrow agents that others call as functions."""

    create: bool = Field(
        False,
        description="Let agents make, change and delete helpers; you are asked each time before it is done.",
    )


class MemorySettings(SettingsSection):
    """The rules for what agents remember, how memory is searched, and when the conversation is shortened."""

    preset: str = Field(
        "direct", description="The preset of a new agent: `direct`, `memgpt` or your own."
    )
    class_name: str = Field(
        "chat",
        description="The memory class of a new agent: `chat`, or `package.module:Class`, which is imported into the"
        " program. Only from the environment or a flag, each time that the agent is opened.",
    )
    persona: str | None = Field(
        None,
        max_length=_LONGEST_TEXT,
        description="The persona of a new agent: a text, or the name of a file in `personas/`.",
    )
    human: str | None = Field(
        None,
        max_length=_LONGEST_TEXT,
        description="The human of a new agent: a text about you, or the name of a file in `humans/`.",
    )
    embedding: str = Field(
        "wordllama",
        description="The embedding that finds texts by meaning: `wordllama`, `endpoint`, or one that an extension adds,"
        " as for many languages (`docs/retrieval.md`); `none`: only by words.",
    )
    embedding_model: str | None = Field(
        None, description='The embedding model, with `embedding = "endpoint"`.'
    )
    warn_at: float = Field(
        0.75,
        gt=0,
        lt=1,
        description="Share of the window at which the model is warned once; less for a model that saves much.",
    )
    compact_at: float = Field(
        0.9,
        gt=0,
        le=1,
        description="Share of the window at which the oldest part is summarized; less makes requests cheaper.",
    )
    compaction: Literal["summary", "spr"] = Field(
        "summary",
        description="What the oldest part becomes: a summary, or short associative statements (`spr`).",
    )
    keep_unsaved: bool = Field(
        False,
        description="At the end of a conversation and before a summary, ask the model once which of your sentences that"
        " are in no block to keep. It costs one short request.",
    )
    message_chars: int = Field(
        100_000,
        ge=500,
        description="Longest message of yours that the model is shown whole, in characters, at most a quarter of the"
        " window; less if you send logs that it need not read.",
    )


class HeartbeatSettings(SettingsSection):
    """The rules for waking an agent of the MemGPT style without a message."""

    every_minutes: float = Field(
        0,
        ge=0,
        description="Minutes between timed heartbeats, each of which costs a turn; 0: none.",
    )


class RunnerSettings(SettingsSection):
    """How many agents run at the same time, and the limits of a thread: of all that follows from one message."""

    slots: int = Field(
        4,
        ge=1,
        le=64,
        description="Maximum number of agents that run at the same time: as many as machine and endpoint bear.",
    )
    hops: int = Field(
        12,
        ge=0,
        description="Longest way of messages, each an answer to the one before, in a thread.",
    )
    messages: int = Field(
        100,
        ge=0,
        description="Maximum number of messages between agents in a thread: ends agents that go on talking.",
    )
    steps: int | None = Field(
        None,
        ge=0,
        description="Maximum number of model replies in a thread: a budget that all its agents share.",
    )
    tokens: int | None = Field(
        None,
        ge=0,
        description="Maximum number of tokens in a thread: the same budget, where a model has no price.",
    )
    cost: float | None = Field(
        None,
        ge=0,
        description="Maximum cost of a thread, in dollars, by the prices in `[models.NAME]`.",
    )
    seconds: float | None = Field(
        None,
        ge=0,
        description="Longest time from the beginning of a thread, in seconds, if somebody waits.",
    )
    helpers: int | None = Field(
        None,
        ge=0,
        description="Maximum number of calls of helpers in a thread, each of which is a conversation.",
    )
    depth: int | None = Field(
        None,
        ge=0,
        description="Maximum number of helpers in a thread that call one another: ends a helper of helpers.",
    )


class SpendingSettings(SettingsSection):
    """The most that may be spent on models; 0 allows nothing. In `knapper.toml`, a cap only narrows.

    `knapper cap` sets one for yourself, and `knapper cost` shows them. A turn that reaches one ends whole.
    """

    turn_tokens: int | None = Field(
        None, ge=0, description="Tokens of one turn, with the helpers that it calls."
    )
    turn_requests: int | None = Field(None, ge=0, description="Requests to a model of one turn.")
    turn_money: float | None = Field(
        None, ge=0, description="Dollars of one turn, where the model's price is known."
    )
    conversation_tokens: int | None = Field(
        None, ge=0, description="Tokens of one conversation, since it began."
    )
    conversation_requests: int | None = Field(
        None, ge=0, description="Requests to a model of one conversation."
    )
    conversation_money: float | None = Field(
        None, ge=0, description="Dollars of one conversation, where the price is known."
    )
    agent_tokens: int | None = Field(
        None, ge=0, description="Tokens of one agent, in all its conversations and since ever."
    )
    agent_requests: int | None = Field(
        None, ge=0, description="Requests to a model of one agent, since ever."
    )
    agent_money: float | None = Field(
        None, ge=0, description="Dollars of one agent, since ever, where the price is known."
    )
    day_tokens: int | None = Field(
        None,
        ge=0,
        description="Tokens of a day, which begins at midnight: by this machine's time zone, or by `zone` in a variable"
        " or a flag.",
    )
    day_requests: int | None = Field(None, ge=0, description="Requests to a model of a day.")
    day_money: float | None = Field(
        None, ge=0, description="Dollars of a day, where the price is known."
    )
    unattended_tokens: int | None = Field(
        2_000_000,
        ge=0,
        description="Tokens of a day in turns that nobody watches: begun by a timer, by another agent, or by"
        " `knapper run` without a terminal.",
    )
    unattended_requests: int | None = Field(
        None, ge=0, description="Requests to a model of a day in such turns."
    )
    unattended_money: float | None = Field(
        None, ge=0, description="Dollars of a day in such turns, where the price is known."
    )

    def amounts(self, *, all_of_them: bool = False) -> dict[str, float]:
        """Return the caps that were given, by name; `all_of_them` includes the program's own."""
        given = self.model_dump(exclude_none=True, exclude_unset=not all_of_them)
        return {name: float(amount) for name, amount in given.items()}


class StorageSettings(SettingsSection):
    """Where the state is that outlives the process."""

    url: str | None = Field(
        None,
        description="Address of a database that an extension opens; unset: a SQLite file in `.knapper/`.",
    )


class McpSettings(SettingsSection):
    """What MCP clients are offered, by `knapper mcp` and at `/mcp` of the server."""

    shown: int = Field(
        50,
        ge=0,
        le=500,
        description="Maximum number of functions that clients see as tools of their own, by use; some take few.",
    )
    standings: tuple[Literal["draft", "trial", "trusted"], ...] = Field(
        ("trial", "trusted"),
        description="The standings of the functions that clients see as tools: what you let others rely on.",
    )
    grow: bool = Field(
        False,
        description="Offer clients tools that create, edit and test functions, through the gate.",
    )


class ReplSettings(SettingsSection):
    """The look and keys of the prompt."""

    keys: Literal["emacs", "vi"] = Field("emacs", description="Key bindings of the input line.")
    title: bool = Field(
        False,
        description="Show the agent and its state in the window title, to see from elsewhere that a turn has ended.",
    )
    plain: bool = Field(
        False, description="Print plain lines and redraw nothing, for screen readers and logs."
    )
    show: Literal["folded", "full"] = Field(
        "folded",
        description="What stays of a call that makes or changes a function: at most three lines and the changed ones,"
        " or its source and the whole verdict. `/show N` opens the rest.",
    )


FILE_NAME = SETTINGS
OWN_LEVELS: Final = ("auto", "full", "core")  # of the sandbox without extensions
_OWN_MODES: Final = ("auto", "native")  # in which calls are sent
_OWN_EMBEDDINGS: Final = ("wordllama", "endpoint", "none")
MOST_BYTES = 256 << 10
_MOST_SIGNS: Final = 100  # of `#` in a line, each of which may begin its comment
PREFIX = "KNAPPER_"
_AGENT: Final = r"^[A-Za-z0-9_-]{1,64}$"
TOKEN = f"{PREFIX}TOKEN"  # of a client at a server
SECRET = f"{PREFIX}SECRET_"  # what functions are given by name, and no setting
_NOT_IN_FILE: Mapping[
    tuple[str, str], tuple[object, str]
] = {  # with the default, and how else to set it
    ("sandbox", "unsafe"): (
        False,
        f"To run functions without protection on this machine: {PREFIX}SANDBOX_UNSAFE=true.",
    ),
    ("sandbox", "level"): (
        "auto",
        f"To choose how functions are confined on this machine: {PREFIX}SANDBOX_LEVEL=core, for example.",
    ),
    ("memory", "class_name"): (
        "chat",
        f"It names code to be run. If you trust it: export {PREFIX}MEMORY_CLASS_NAME=package.module:Class",
    ),
    ("grants", "same_reach"): (
        False,
        f"To keep your yes to versions that reach no more, on this machine: {PREFIX}GRANTS_SAME_REACH=true.",
    ),
    ("grants", "unattended"): (
        "deny",
        f"To let functions/grants.toml decide on this machine: {PREFIX}GRANTS_UNATTENDED=file.",
    ),
}


class Settings(BaseModel):
    """All settings, one section per package."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # The folder with the only file that names `model.base_url`: nothing is sent to that address unasked.
    _address_from: Path | None = PrivateAttr(default=None)
    # The folder with the only file that names `storage.url`: nothing is kept there unasked.
    _storage_from: Path | None = PrivateAttr(default=None)
    # The caps in the workspace's file, which only narrow, and those of a variable or a flag.
    _caps: tuple[Mapping[str, float], Mapping[str, float]] | None = PrivateAttr(default=None)
    # The folder, if its file has `[models.NAME]`; and `[model]` without what a named one changed in it.
    _models_from: Path | None = PrivateAttr(default=None)
    _plain: tuple[ModelSettings, Path | None] | None = PrivateAttr(default=None)

    # The tables `[models.NAME]` whose price only the workspace's file says, and whether only it says the time zone.
    _priced_in_file: frozenset[str] = PrivateAttr(default=frozenset())
    _is_zone_of_file: bool = PrivateAttr(default=False)

    agent: str = Field("main", pattern=_AGENT, description="The agent that `run` talks to.")
    instructions: str | None = Field(
        None,
        max_length=_LONGEST_TEXT,
        description="Replaces the built-in instructions of the agent.",
    )
    model: ModelSettings = ModelSettings()
    models: dict[str, NamedModel] = Field(
        {},
        description="Models with names of their own, one table `[models.NAME]` each: `name`, `base_url`, `mode`,"
        " `key_variable`, `temperature`, `context_tokens`, `price`. `--model NAME` and `/model NAME` choose one.",
    )
    turn: TurnSettings = TurnSettings()
    sandbox: SandboxSettings = SandboxSettings()
    gate: GateSettings = GateSettings()
    standing: StandingSettings = StandingSettings()
    growth: GrowthSettings = GrowthSettings()
    tend: TendSettings = TendSettings()
    grants: GrantSettings = GrantSettings()
    helpers: HelperSettings = HelperSettings()
    memory: MemorySettings = MemorySettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    zone: Zone | None = Field(
        None,
        description="Time zone of the workspace, such as `Europe/Berlin`, in which a day begins at midnight; unset:"
        " this machine's. The day of a cap begins by it only where a variable or a flag says it.",
    )
    runner: RunnerSettings = RunnerSettings()
    spending: SpendingSettings = SpendingSettings()
    storage: StorageSettings = StorageSettings()
    mcp: McpSettings = McpSettings()
    repl: ReplSettings = ReplSettings()

    def caps(self, kept: Mapping[str, float | None]) -> tuple[Cap, ...]:
        """Return the caps on spending that hold; `kept` are those that the user set with `knapper cap`."""
        of_file, own = self._caps or ({}, self.spending.amounts())
        return caps_in_force(own, kept, of_file, SpendingSettings().amounts(all_of_them=True))

    @property
    def zone_of_caps(self) -> str | None:
        """The time zone of a cap's day: a file that travels with the folder must not begin another day."""
        return None if self._is_zone_of_file else self.zone

    @property
    def priced_in_file(self) -> frozenset[str]:
        """The tables `[models.NAME]` whose price came with the folder, which only raises what a cap counts."""
        return self._priced_in_file

    @property
    def policy(self) -> Policy:
        """What may be asked and grown, before an agent, a window or a message narrows it."""
        asks = self.grants.ask != "never"
        return Policy(self.growth.mode, asks, self.turn.mode, self.grants.same_reach)

    @property
    def maker(self) -> str | None:
        """The name of the model that writes functions, or None if the agents' own do."""
        name = self.growth.maker
        if name == "auto":
            return "maker" if "maker" in self.models else None
        return None if name == "off" else name

    def using(self, name: str) -> "Settings":
        """Return the settings with another model: one of `[models.NAME]`, or `[model]` with this name."""
        plain, address_from = self._plain or (self.model, self._address_from)
        named = self.models.get(name)
        model = named.over(plain, name) if named else plain.model_copy(update={"name": name})
        settings = self.model_copy(update={"model": model})
        settings._plain = plain, address_from
        settings._address_from = self._models_from if named and named.base_url else address_from
        return settings


def address_of_file(settings: Settings, environment: Mapping[str, str]) -> tuple[Path, str] | None:
    """Return the address that only a workspace's file names, with the workspace: the file may be a stranger's."""
    url = settings.model.base_url
    if not url or settings._address_from is None or url == environment.get("OPENAI_BASE_URL"):
        return None
    return settings._address_from, url


def storage_of_file(settings: Settings) -> tuple[Path, str] | None:
    """Return the address of a database that only a workspace's file names, with the workspace."""
    if settings.storage.url is None or settings._storage_from is None:
        return None
    return settings._storage_from, settings.storage.url


def load(
    root: Path, flags: Mapping[str, Any] | None = None
) -> Settings:  # Any: checked by the model
    """Return the settings of a workspace; flags name a key as `section.key`, and None means "not given".

    Raises:
        SettingsError: a key is unknown or a value does not fit; the message names it.
    """
    overrides = [
        (key.split("."), value) for key, value in (flags or {}).items() if value is not None
    ]
    named = [
        name
        for name in os.environ
        if name.startswith(PREFIX) and not name.startswith((SECRET, TOKEN))
    ]
    unknown = [
        name
        for name in named
        if name
        not in _variables() | {_variable(key) for key in (*GONE, *(name for name, _ in MOVED))}
    ]
    if unknown:
        raise _unknown(unknown[0], [*_variables()])
    place = str(root / FILE_NAME)
    file = with_moved(without_gone(_read_file(root / FILE_NAME), place), place)
    # Reject what the file must not set: it travels with the folder, perhaps from somebody else.
    for (section, key), (default, fix) in _NOT_IN_FILE.items():
        if _section(file, section).get(key, default) != default:
            message = (
                f"`{section}.{key}` cannot be set in {FILE_NAME}, which travels with the folder."
            )
            raise SettingsError(message, fix=fix)
    if (mode := _section(file, "turn").get("mode")) in MODES and mode == MODES[-1]:
        message = f"`turn.mode` cannot be `{mode}` in {FILE_NAME}, which travels with the folder and may only narrow."
        fix = f"Take it for a turn: /mode {mode}, or knapper run --mode {mode}; or set {PREFIX}TURN_MODE={mode}."
        raise SettingsError(message, fix=fix)
    is_set = any(
        name.upper().startswith(PREFIX) for name in os.environ
    )  # else a long search for nothing
    mine = _of_environment() if is_set else {}
    for path, value in overrides:
        nested = value
        for part in reversed(path):
            nested = {part: nested}
        mine = _merge(mine, nested)
    by_hand = f"a {PREFIX} variable or a flag"
    mine = with_moved(without_gone(mine, by_hand), by_hand)
    try:
        settings = Settings(**_merge(file, mine))
        caps = [
            SpendingSettings(**_section(values, "spending")).amounts() for values in (file, mine)
        ]
    except ValidationError as error:
        raise _explain(error) from error
    _check_offered("sandbox.level", settings.sandbox.level, OWN_LEVELS, extensions.LEVELS)
    modes = {"model.mode": settings.model.mode}
    modes |= {
        f"models.{name}.mode": named.mode for name, named in settings.models.items() if named.mode
    }
    for key, mode in modes.items():
        _check_offered(key, mode, _OWN_MODES, extensions.MODES)
    _check_offered(
        "memory.embedding", settings.memory.embedding, _OWN_EMBEDDINGS, extensions.EMBEDDERS
    )
    if "base_url" in _section(file, "model") and "base_url" not in _section(mine, "model"):
        settings._address_from = root
    if "url" in _section(file, "storage") and "url" not in _section(mine, "storage"):
        settings._storage_from = root
    settings._models_from = root if "models" in file else None
    settings._is_zone_of_file = "zone" in file and "zone" not in mine
    settings._priced_in_file = _priced(file) - _priced(mine)
    settings._caps = (caps[0], caps[1]) if any(caps) else None
    return (
        settings.using(settings.model.name) if settings.model.name in settings.models else settings
    )


def _priced(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the tables `[models.NAME]` with a price."""
    models = _section(values, "models")
    return frozenset(name for name in models if "price" in _section(models, name))


def _check_offered(key: str, value: str, own: Sequence[str], hook: str) -> None:
    """Raise SettingsError unless the program or an extension has this value of a setting."""
    if value in own:
        return
    known = (*own, *extensions.offers(hook))
    if value not in known:
        shown = one_line(repr(value), 200)
        message = f"The setting `{key}` cannot be {shown}: expected one of {', '.join(known)}."
        fix = f"Set {_variable(key)} to one of them. {extensions.what_else()}"
        raise SettingsError(message, fix=fix)


def _of_environment() -> dict[str, Any]:
    """Return what the variables set, in sections.

    Raises:
        SettingsError: one of them cannot be read.
    """
    from pydantic_settings import EnvSettingsSource  # noqa: PLC0415 - as slow to import as all settings
    from pydantic_settings import SettingsError as UnreadableVariable  # noqa: PLC0415 - the same

    try:
        names = {"env_prefix": PREFIX, "env_nested_delimiter": "_", "env_nested_max_split": 1}
        return EnvSettingsSource(Settings, **names)()  # type: ignore[arg-type]  # it reads the fields of any model
    except UnreadableVariable as error:
        set_now = ", ".join(f"`{key}`" for key in known_keys() if _variable(key) in os.environ)
        raise SettingsError(
            f"A {PREFIX} variable cannot be read (set are those for {set_now}).",
            fix=f"A list is written as JSON: {PREFIX}SANDBOX_PACKAGES='[\"pydantic\"]'.",
        ) from error


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def known_keys() -> list[str]:
    """Return every settable key, dotted."""
    keys = []
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, SettingsSection):
            keys += [f"{name}.{inner}" for inner in section.model_fields]
        else:
            keys.append(name)
    return keys


def _variables() -> set[str]:
    return {_variable(key) for key in known_keys()}


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "_").upper()


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return read_toml(read_plain(path, MOST_BYTES), values=OF_A_FILE)
    except FileNotFoundError:
        return {}
    except Malformed as error:
        raise SettingsError(
            f"{path} is not valid TOML: {error}.", fix="Fix it and try again."
        ) from error
    except OSError as error:
        fix = "Make it an ordinary, readable file, or remove it."
        raise SettingsError(f"{path} cannot be read: {error.strerror}.", fix=fix) from error


def _merge(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = (
            _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


_IN_WORDS: Final = {
    _AGENT: "up to 64 letters, digits, `_` and `-`",
    KEY_VARIABLE: "a name such as `OPENAI_API_KEY`",
    "own_variable": "a name such as `OPENAI_API_KEY`, and none of this program's own",
    "zone": "a time zone such as `Europe/Berlin`",
    "model_type": "a table",
    "dict_type": "a table",
}


def _explain(error: ValidationError) -> SettingsError:
    finding = error.errors()[0]
    key = ".".join(str(part) for part in finding["loc"])
    if finding["type"] == "extra_forbidden":
        return _unknown(key, known_keys())
    wanted = _IN_WORDS.get(
        finding.get("ctx", {}).get("pattern", finding["type"])
    ) or expected_value(finding)
    return SettingsError(
        f"The setting `{one_line(key, 200)}` cannot be {one_line(repr(finding['input']), 200)}: expected {wanted}.",
        fix=f"Fix it in {FILE_NAME}, in its {PREFIX} variable or in the flag.",
    )


def _unknown(key: str, keys: list[str]) -> SettingsError:
    table, _, _ = key.rpartition(".")
    if table.startswith("models."):
        keys = [f"{table}.{name}" for name in NamedModel.model_fields]
    of_table = [known for known in keys if known.startswith(f"{table}.")]
    tables = sorted(Settings.model_fields)
    listed = f"The tables are: {', '.join(tables)}."
    if table and of_table:
        listed = f"Known are: {', '.join(sorted(of_table))}."
    anywhere = did_you_mean(key, [*keys, *tables], otherwise=listed)
    fix = did_you_mean(key, of_table, otherwise=anywhere)
    return SettingsError(f"`{one_line(key, 200)}` is not a setting.", fix=fix)


# Changes to single values in `knapper.toml` that preserve everything else: comments, order, layout.
# The new text is parsed before it is written: unless it contains exactly the intended values, nothing is written.

Value: TypeAlias = str | int | float | bool | list[str]
Values: TypeAlias = Mapping[str, Value]


def write_values(root: Path, values: Values) -> Path:
    """Set these values (`section.key`) in the workspace's settings file; return its path.

    Raises:
        SettingsError: it cannot be changed safely; the message has the lines to add manually.
    """
    path = root / FILE_NAME
    if path.is_symlink():
        raise _by_hand(f"{path} is a link, and links are not written through.", values)
    try:
        text = read_plain(path, MOST_BYTES).decode("utf-8") if path.exists() else ""
        changed = with_values(text, values)
        if changed != text:
            replace_text(path, changed)
    except (OSError, UnicodeDecodeError) as error:
        raise _by_hand(f"{path} cannot be changed: {error}.", values) from error
    return path


def with_values(text: str, values: Values, file_name: str = FILE_NAME) -> str:
    """Return the text of a file with these values set.

    Raises:
        SettingsError: the text is formatted in a way that cannot be changed safely.
    """
    intended = _parse(text)
    if intended is None:
        raise _by_hand(f"{file_name} is not valid TOML.", values)
    lines = bare_lines(text)
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        lines = _with_value(lines, section, name, value)
        target = intended.setdefault(section, {}) if section else intended
        if isinstance(target, dict):
            target[name] = value
    changed = "".join(f"{line}\n" for line in lines)
    if _parse(changed) != intended:
        raise _by_hand(f"{file_name} is formatted in a way that cannot be changed safely.", values)
    return changed


def _with_value(lines: list[str], section: str, name: str, value: Value) -> list[str]:
    first, end = _lines_of_section(lines, section)
    new = f"{name} = {_toml(value)}"
    for at in range(first, end):
        line = lines[at]
        if re.match(rf"\s*{re.escape(name)}\s*=", line):
            signs = (match.start() for match in islice(re.finditer("#", line), _MOST_SIGNS))
            comment = next(
                (
                    line[len(line[:sign].rstrip()) :]
                    for sign in signs
                    if _parse(line[:sign]) is not None
                ),
                "",
            )
            return [*lines[:at], new + comment, *lines[at + 1 :]]
    if first > len(lines):
        gap = [""] if lines and lines[-1].strip() else []
        return [*lines, *gap, f"[{section}]", new]
    while end > first and not lines[end - 1].strip():
        end -= 1
    return [*lines[:end], new, *lines[end:]]


def _lines_of_section(lines: list[str], section: str) -> tuple[int, int]:
    """Return the first line of a section and the line after its end; both past the end if it does not exist."""
    headers = [at for at, line in enumerate(lines) if re.match(r"\s*\[", line)]
    if not section:
        return 0, headers[0] if headers else len(lines)
    for at in headers:
        if re.match(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?$", lines[at]):
            return at + 1, next((header for header in headers if header > at), len(lines))
    return len(lines) + 1, len(lines) + 1


def _parse(text: str) -> dict[str, Any] | None:  # Any: TOML
    try:
        return read_toml(text, values=OF_A_FILE)
    except Malformed:
        return None


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str):
        return repr(value)
    escaped = (
        sign if ord(sign) >= 32 and sign not in '"\\\x7f' else f"\\u{ord(sign):04x}"
        for sign in value
    )
    return f'"{"".join(escaped)}"'


def _by_hand(message: str, values: Values) -> SettingsError:
    lines = []
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        lines.append(
            f"[{section}] {name} = {_toml(value)}" if section else f"{name} = {_toml(value)}"
        )
    return SettingsError(message, fix="Add it manually:\n" + "\n".join(lines))
