"""The tables of the settings file, one class each: what can be set, what it means, and the default."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class SettingsSection(BaseModel):
    """A table of the settings file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(SettingsSection):
    """The model to use, and the options of its requests."""

    name: str | None = Field(None, description="Model at the chosen endpoint, or `local/…`.")
    base_url: str | None = Field(None, description="Address of an endpoint that speaks chat completions.")
    mode: Literal["auto", "native", "constrained"] = Field(
        "auto", description="How calls travel; `auto`: native, and constrained where the endpoint takes no functions."
    )
    stream: bool = Field(True, description="Ask the endpoint to stream its replies.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; the endpoint's own if unset."
    )
    max_tokens: int | None = Field(None, ge=1, description="Longest reply in tokens.")
    context_tokens: int | None = Field(
        None, ge=512, description="Size of the window, where the endpoint does not tell."
    )
    timeout_s: float = Field(600, gt=0, description="Longest wait for the next piece of a reply, in seconds.")
    retries: int = Field(4, ge=0, le=10, description="Tries again after 429, 5xx and lost connections.")
    threads: int | None = Field(None, ge=1, description="Threads of the local model; cores − 1 if unset.")


class TurnSettings(SettingsSection):
    """The limits of one turn."""

    max_steps: int = Field(30, ge=1, description="Model replies in one turn.")
    max_calls: int = Field(
        40, ge=1, description="Function calls taken from one reply; the others are answered as skipped."
    )
    parallel: int = Field(4, ge=1, le=64, description="Workers that run at once.")
    shown_functions: int = Field(128, ge=16, le=128, description="Functions shown to the model at once.")
    answer_chars: int = Field(12_000, ge=500, description="Longest answer of one call that the model reads.")


class SandboxSettings(SettingsSection):
    """The limits of one call, and the packages that workers may import."""

    wall_s: float = Field(10, gt=0, description="Wall-clock limit of one call in seconds.")
    memory_mib: int = Field(512, ge=64, le=1 << 20, description="Address space of one worker in MiB.")
    output_kib: int = Field(64, ge=1, description="Longest printed output of one call in KiB.")
    result_kib: int = Field(1024, ge=1, description="Largest result of one call in KiB.")
    scratch_mib: int = Field(64, ge=1, description="Scratch space of one call in MiB.")
    packages: tuple[str, ...] = Field(
        ("pydantic",), description="Packages of this environment that functions may import."
    )
    debug_wait_minutes: float = Field(
        30, gt=0, description="Longest silence at the debugger, in minutes, after which the call ends."
    )
    unsafe: bool = Field(
        False, description="Run functions although the sandbox cannot be enforced. Shown at every prompt."
    )


class GateSettings(SettingsSection):
    """The fixes that the gate makes, and how strict it is with the user's files."""

    strict: bool = Field(False, description="Hold saved files to the rules for the agent's functions.")
    fixes: bool = Field(True, description="Fix what is mechanical.")
    fixes_off: tuple[str, ...] = Field((), description="Codes of fixes that are not made, such as `inferred-hints`.")
    candidate_kib: int = Field(64, ge=1, description="Largest candidate in KiB.")
    module_kib: int = Field(256, ge=1, description="Largest module in KiB.")


class StandingSettings(SettingsSection):
    """The rules by which recorded calls change a function's standing, what is kept of them, and when it counts as
    unused.
    """

    trial_calls: int = Field(3, ge=1, description="Calls in a row that returned, after which a draft is on trial.")
    trusted_calls: int = Field(20, ge=1, description="Calls in a row that returned, after which one is trusted, …")
    trusted_days: float = Field(7, ge=0, description="… if this many days lie between the first and the last of them.")
    quarantine_failures: int = Field(
        5, ge=0, description="Failures in a row after which the model no longer sees a function; 0: never."
    )
    retire_days: float = Field(
        180, ge=0, description="Days without a call after which a function is offered for retirement; 0: never."
    )
    keep_calls: int = Field(100, ge=1, description="Calls of a function that are kept one by one; totals stay.")


class GrantSettings(SettingsSection):
    """The cases in which the user is asked before a function gets what it needs."""

    ask: Literal["grants", "always", "never"] = Field(
        "grants",
        description="`grants`: before a function gets one; `always`: before every function that an agent makes or"
        " changes, too; `never`: nobody is asked, and what would need a yes is refused.",
    )
    packages_mib: int = Field(2048, ge=1, le=1 << 20, description="Largest set of packages that is installed, in MiB.")
    unattended: Literal["deny", "file"] = Field(
        "deny",
        description="Where no human can be asked, `deny` refuses; `file` puts in force what `functions/grants.toml`"
        " proposes, for servers that run what was reviewed. From the environment or a flag alone.",
    )


class MemorySettings(SettingsSection):
    """The rules for what agents remember, how memory is searched, and when the conversation is shortened."""

    preset: str = Field("direct", description="How a new agent works: `direct`, `memgpt` or one of your own.")
    class_name: str = Field(
        "chat",
        description="The blocks of a new agent and what edits them: `chat`, or `package.module:Class`, which is"
        " imported into the program. From the environment or a flag alone, each time that the agent is opened.",
    )
    persona: str | None = Field(None, description="Who a new agent is: a text, or the name of a file of personas.")
    human: str | None = Field(None, description="Who you are, as a new agent first knows it: a text, or a file's name.")
    embedding: Literal["wordllama", "minilm", "endpoint", "none"] = Field(
        "wordllama", description="What finds texts by meaning; `none`: by words alone."
    )
    embedding_model: str | None = Field(None, description='The model to ask for, with `embedding = "endpoint"`.')
    warn_at: float = Field(0.75, gt=0, lt=1, description="Share of the window at which the model is warned once.")
    compact_at: float = Field(
        0.9, gt=0, le=1, description="Share of the window at which the oldest part is summarised."
    )
    compaction: Literal["summary", "spr"] = Field(
        "summary", description="What the oldest part becomes: a summary, or short associative statements (`spr`)."
    )
    page_chars: int = Field(12_000, ge=500, description="Longest message or text that is shown at once.")
    session_gap_minutes: float = Field(60, gt=0, description="Silence after which a new session begins, for search.")


class HeartbeatSettings(SettingsSection):
    """The rules for waking an agent of the MemGPT style without a message."""

    every_minutes: float = Field(0, ge=0, description="Minutes between timed heartbeats; 0: none.")
    pause_max_minutes: float = Field(360, gt=0, description="Longest pause that an agent can give itself, in minutes.")


class ReplSettings(SettingsSection):
    """The look, sounds and keys of the prompt."""

    keys: Literal["emacs", "vi"] = Field("emacs", description="How the input line is edited.")
    theme: Literal["auto", "dark", "light"] = Field(
        "auto", description="Colours for a dark or a light screen; `auto`: as COLORFGBG says, else dark."
    )
    bell: bool = Field(False, description="Ring when what took longer than ten seconds ends, and for questions.")
    title: bool = Field(False, description="Show the agent, and whether it works, in the title of the window.")
    plain: bool = Field(
        False, description="No prompt that is redrawn: lines alone, as screen readers and logs take them."
    )
