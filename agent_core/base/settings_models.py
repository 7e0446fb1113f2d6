"""The settings of a model, and of those that are named to switch between: `[model]` and `[models.NAME]`."""

from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

KEY_VARIABLE: Final = r"^[A-Z][A-Z0-9_]*_API_KEY$"
"""What a variable with a key is called: no other variable is sent, whatever a file says."""
ProgramsOffer: TypeAlias = Literal["auto", "on", "off"]


class SettingsSection(BaseModel):
    """A table of the settings file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(SettingsSection):
    """The model to use, and the options of its requests."""

    name: str | None = Field(
        None, description="Model at the chosen endpoint, `local/…`, or `local`: the best local model that is here."
    )
    base_url: str | None = Field(None, description="Address of an endpoint with OpenAI's API.")
    mode: Literal["auto", "native", "constrained"] = Field(
        "auto",
        description="How calls are sent; `auto`: native, or constrained if the model is small, or does not make calls.",
    )
    programs: ProgramsOffer = Field(
        "auto",
        description="Whether the model is offered `run_program`; `auto`: if its calls are sent natively.",
    )
    api: Literal["auto", "chat", "responses"] = Field(
        "auto",
        description="API that the endpoint is asked by; `auto`: `responses` at OpenAI and Azure's newer surface,"
        " `chat` elsewhere.",
    )
    stream: bool = Field(True, description="Ask the endpoint to stream its replies.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; the endpoint's own if unset."
    )
    max_tokens: int | None = Field(None, ge=1, description="Longest reply in tokens.")
    context_tokens: int | None = Field(
        None, ge=512, description="Size of the window, if the endpoint does not report it."
    )
    timeout_s: float = Field(600, gt=0, description="Longest wait for the next piece of a reply, in seconds.")
    retries: int = Field(4, ge=0, le=10, description="Retries after 429, 5xx and lost connections.")
    key_variable: str = Field(
        "OPENAI_API_KEY", pattern=KEY_VARIABLE, description="Environment variable with the endpoint's key: `…_API_KEY`."
    )
    threads: int | None = Field(None, ge=1, description="Threads of the local model; by default, cores − 1.")


class ModelPrice(SettingsSection):
    """The price of a model, in US dollars per million tokens."""

    input: float = Field(ge=0, description="For what it reads.")
    output: float = Field(ge=0, description="For what it writes.")
    cached: float | None = Field(None, ge=0, description="For what it had read already; as input if unset.")


class NamedModel(SettingsSection):
    """A table `[models.NAME]`: what differs from `[model]` when the model of that name is used."""

    name: str | None = Field(None, description="Model at the endpoint, or `local/…`; by default, the table's name.")
    base_url: str | None = Field(None, description="Address of its endpoint; by default, that of `[model]`.")
    key_variable: str | None = Field(
        None, pattern=KEY_VARIABLE, description="Environment variable with its key: `…_API_KEY`."
    )
    mode: Literal["auto", "native", "constrained"] | None = Field(None, description="How calls are sent.")
    programs: ProgramsOffer | None = Field(None, description="Whether the model is offered `run_program`.")
    api: Literal["auto", "chat", "responses"] | None = Field(None, description="API that its endpoint is asked by.")
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature.")
    context_tokens: int | None = Field(None, ge=512, description="Size of the window.")
    price: ModelPrice | None = Field(None, description="`{ input = 1.0, cached = 0.1, output = 4.0 }` in dollars.")

    def over(self, settings: ModelSettings, table: str) -> ModelSettings:
        """Return the settings of `[model]` with what this table says."""
        own = self.model_dump(exclude_none=True, exclude={"price"})
        return settings.model_copy(update={"name": table, **own})
