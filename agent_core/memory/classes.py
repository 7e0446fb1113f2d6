"""Text that is always in the context: blocks of limited size, the memory classes that have them, and custom sections.

The public methods of a class become functions through the same loader as all others; they may edit any block of `self`,
and the host stores the changes. Users can write their own classes, which are trusted code.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agent_core.base.clock import Clock
from agent_core.base.errors import SettingsError, UsageError
from agent_core.base.untrusted import one_line, visible
from agent_core.registry.schema import read_methods
from agent_core.storage import (
    LARGEST_NUMBER,
    BlockRow,
    DropSection,
    MemoryStore,
    Misfit,
    SaveSection,
    SectionRow,
    Value,
    fix_of,
)

from . import edits
from .edits import Edited, EditRefused

if TYPE_CHECKING:
    from agent_core.registry.function import Function


LIMIT = 2000
_JOINERS = (
    "\u200c\u200d\ufe0e\ufe0f"  # characters that may be invisible between the letters of a tag
)
_JOINING = f"[{_JOINERS}]*"


class Block(BaseModel):
    """A labeled piece of memory; its value is a text, or a list of lines that are edited individually."""

    model_config = ConfigDict(validate_assignment=True, extra="forbid")

    label: Annotated[
        str, Field(description="What the block is called; its agent has no other of this label.")
    ]
    limit: int = Field(
        LIMIT,
        gt=0,
        le=LARGEST_NUMBER,
        description="How many characters its value may have, line ends included.",
    )
    value: str | list[str] = Field("", description="What it holds: a text, or a list of lines.")
    description: str = Field("", description="What belongs into it, as the model reads it.")
    read_only: bool = Field(False, description="Whether only a human may change it.")
    shared: bool = Field(False, description="Whether other agents may have it too, and change it.")
    position: int = Field(
        0,
        ge=-LARGEST_NUMBER,
        le=LARGEST_NUMBER,
        description="Where it stands among the blocks of its agent, lowest first.",
    )
    _seen: "Block | None" = PrivateAttr(None)

    @field_validator("label")
    @classmethod
    def _can_be_a_tag(cls, label: str) -> str:
        if not (0 < len(label) <= 64 and all(char.isalnum() or char in "_-./" for char in label)):
            raise ValueError(
                f"`{label}` cannot be a label: 1 to 64 letters, digits and any of `_-./` are taken"
            )
        return label

    @field_validator("value")
    @classmethod
    def _fits(cls, value: str | list[str], info: ValidationInfo) -> str | list[str]:
        if isinstance(value, list):
            value = "\n".join(value).split("\n") if value else []
        _check_size(info.data.get("label", ""), _length(value), info.data.get("limit", LIMIT))
        return value

    @field_validator("limit")
    @classmethod
    def _holds_what_is_there(cls, limit: int, info: ValidationInfo) -> int:
        _check_size(info.data.get("label", ""), _length(info.data.get("value", "")), limit)
        return limit

    def __deepcopy__(
        self, memo: dict[int, Any] | None = None
    ) -> "Block":  # Any: as `copy` hands it on
        return self.model_copy(
            update={} if isinstance(self.value, str) else {"value": [*self.value]}
        )

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The value as one text."""
        return self.value if isinstance(self.value, str) else "\n".join(self.value)

    @property
    def lines(self) -> list[str]:
        """The value line by line; an empty list for an empty value."""
        return self.text.split("\n") if self.text else []

    @property
    def seen_lines(self) -> list[str]:
        """The lines that the author of the current edit had read: a number of a line is one of theirs."""
        return self.lines if self._seen is None else self._seen.lines

    def note_seen(self, block: "Block") -> None:
        """Note the block as the author of the current edit had read it."""
        self._seen = block

    def put(self, lines: list[str]) -> None:
        """Set the value to these lines, in its current form."""
        self.value = "\n".join(lines) if isinstance(self.value, str) else lines

    def render(self, sibling_labels: Collection[str] = (), *, is_fixed: bool = False) -> str:
        """Return the block as the model reads it; `is_fixed` means that this agent may not change it.

        Text in it that looks like its tag, or one of `sibling_labels`, is escaped.
        """
        about = one_line(self.description, 2000).translate({ord('"'): "'", ord("<"): "‹"})
        description = f' description="{about}"' if about else ""
        flag = ' read_only="true"' if self.read_only or is_fixed else ""
        size = f'characters="{len(self.text)}/{self.limit}"'
        text = _begin_of({self.label, *sibling_labels}).sub("‹", visible(self.text))
        return f"<{self.label} {size}{description}{flag}>\n{text}\n</{self.label}>"


def _begin_of(labels: Collection[str]) -> re.Pattern[str]:
    """Return the pattern of what looks like the beginning of a tag with one of these labels."""
    tags = "|".join(_JOINING.join(map(re.escape, label)) for label in labels)
    return re.compile(rf"<(?=[\s/{_JOINERS}]*(?:{tags})(?![\w.-]))", re.IGNORECASE)


def _length(value: str | list[str]) -> int:
    return len(value) if isinstance(value, str) else len("\n".join(value))


def _check_size(label: str, size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(too_large(label, size, limit))


def too_large(label: str, size: int, limit: int) -> str:
    """Return the message that a value is larger than the block allows, and by how much."""
    return (
        f"`{label}` may hold {limit:,} characters and would have {size:,}, which is {size - limit:,} too many. "
        "Shorten or remove something in it first."
    )


def reasons(error: ValidationError) -> str:
    """Return the findings of pydantic: our own messages as they are, others with the name of the field."""
    return " ".join(
        str(detail["ctx"]["error"])
        if detail["type"] == "value_error"
        else f"`{detail['loc'][0]}`: {detail['msg']}."
        for detail in error.errors()
    )


def from_row(row: BlockRow) -> Block:
    """Return the block of a row. Its limit is at least the size of its value: only an edit is rejected for its size."""
    value = row.value if isinstance(row.value, str) else list(row.value)
    try:
        return Block(
            label=row.label,
            limit=max(row.limit, _length(value)),
            value=value,
            description=row.description,
            read_only=row.read_only,
            shared=row.shared,
            position=row.position,
        )
    except ValidationError as error:
        raise Misfit(
            f"A memory block in the state file cannot be: {reasons(error)}", fix=fix_of()
        ) from error


def value_lines(value: Value) -> list[str]:
    """Return the lines of a stored value; an empty list for an empty one."""
    return [] if not value else value.split("\n") if isinstance(value, str) else [*value]


def kept_value(block: Block) -> Value:
    """Return the value in its stored form."""
    return block.value if isinstance(block.value, str) else tuple(block.value)


_NAME = re.compile(r"[\w.-]{1,64}")
SECTION_LIMIT = 4000
"""Characters of one section."""
POSITIONS: Final = {"instructions": 0, "memory": 100, "functions": 200, "statistics": 300}
"""The positions of the program's parts in the system message; a custom section must not use one of these names."""


def check_length(name: str, text: str) -> None:
    """Check that a section may have this text.

    Raises:
        UsageError: it is too long.
    """
    if (over := len(text) - SECTION_LIMIT) > 0:
        sizes = f"{SECTION_LIMIT:,} characters and would have {len(text):,}: {over:,} too many."
        raise UsageError(f"The section `{name}` may have {sizes}", fix="Shorten it.")


class Sections:
    """The sections of one agent, in the order of their position and name."""

    def __init__(self, store: MemoryStore, agent: str, clock: Clock | None = None) -> None:
        self._store = store
        self._agent = agent
        self._clock = clock or Clock()

    async def list(self) -> "list[SectionRow]":
        """Return the sections, in order."""
        return await self._store.sections(self._agent)

    async def set(self, name: str, position: int, text: str) -> SectionRow:
        """Store a section, replacing one with the same name.

        Raises:
            UsageError: the name is invalid or one of the program's own parts, the position is too far, or the text is
                too long.
        """
        if abs(position) > LARGEST_NUMBER:
            what = f"A section's position is a number from {-LARGEST_NUMBER} to {LARGEST_NUMBER}."
            raise UsageError(what, fix="Take a small one, such as 10: the lowest comes first.")
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` cannot be a section's name.",
                fix="Take up to 64 letters, digits and any of `_-.`.",
            )
        if name in POSITIONS:
            raise UsageError(
                f"The program has a section `{name}` of its own.", fix="Take another name."
            )
        check_length(name, text)
        section = SectionRow(name, position, text, SECTION_LIMIT, self._clock.now())
        await self._store.apply([SaveSection(self._agent, section)])
        return section

    async def drop(self, name: str) -> None:
        """Remove a section."""
        known_names = [section.name for section in await self.list()]
        if name not in known_names:
            names = ", ".join(f"`{known_name}`" for known_name in known_names) or "none"
            raise UsageError(f"There is no section `{name}`.", fix=f"There are: {names}.")
        await self._store.apply([DropSection(self._agent, name)])


class UnknownBlock(UsageError, AttributeError, LookupError):
    """Raised if no block has that label; the message names the existing ones."""

    code = "unknown-block"

    def __init__(self, label: str, labels: list[str]) -> None:
        names = ", ".join(f"`{name}`" for name in labels) or "none yet"
        super().__init__(f"There is no block `{label}`.", fix=f"The blocks are: {names}.")


class Memory(BaseModel):
    """Memory that is always in an agent's context: blocks in order, and the functions that edit them.

    Only its blocks are stored. A custom class lists them in `starts_with` and adds methods; methods of its bases that
    are named in `without` are not offered.
    """

    model_config = ConfigDict(validate_assignment=True)
    starts_with: ClassVar[tuple[Block, ...]] = ()
    without: ClassVar[frozenset[str]] = frozenset()

    blocks: list[Block] = Field(
        default_factory=list, description="The blocks in their order, one per label."
    )

    @model_validator(mode="before")
    @classmethod
    def _first_blocks(cls, data: Any) -> Any:  # Any: as pydantic hands it over
        """Accept `ChatMemory(human="…")`: the class's blocks, with some values given by label."""
        if not isinstance(data, dict):
            return data
        values = {key: value for key, value in data.items() if key not in cls.model_fields}
        blocks = data.get("blocks", [block.model_copy(deep=True) for block in cls.starts_with])
        by_label = {block.label: block for block in blocks if isinstance(block, Block)}
        for label, value in values.items():
            if label not in by_label:
                raise ValueError(str(UnknownBlock(label, [*by_label])))
            by_label[label].value = value
        return {"blocks": blocks} | {
            key: value for key, value in data.items() if key in cls.model_fields
        }

    @model_validator(mode="after")
    def _one_per_label(self) -> "Memory":
        twice = next(
            (label for n, label in enumerate(self.labels) if label in self.labels[:n]), None
        )
        if twice is not None:
            raise ValueError(f"there is a block `{twice}` already, and there can be one per label")
        return self

    @property
    def labels(self) -> list[str]:
        """The labels of the blocks, in order."""
        return [block.label for block in self.blocks]

    def __getitem__(self, label: str) -> Block:
        match = next((block for block in self.blocks if block.label == label), None)
        if match is None:
            raise UnknownBlock(label, self.labels)
        return match

    def __contains__(self, label: object) -> bool:
        return label in self.labels

    def __getattr__(self, name: str) -> Block:
        if name.startswith("_"):
            return super().__getattr__(name)  # type: ignore[misc,no-any-return] # what pydantic keeps, at run time alone
        return self[name]

    def __setattr__(self, name: str, value: object) -> None:
        if (
            "blocks" in self.__dict__
            and name not in type(self).model_fields
            and name in self.labels
        ):
            self[name].value = value  # type: ignore[assignment] # checked on assignment
        else:
            super().__setattr__(name, value)

    def core_memory_append(self, name: str, content: str) -> str:
        """Add a fact to a block of your memory.

        Args:
            name: `human` for the user and everybody else, `persona` for yourself alone.
            content: A sentence that can be understood alone.
        """
        return self._edit(name, lambda block: edits.append(block.lines, content), content)

    def core_memory_replace(self, name: str, old_content: str, new_content: str) -> str:
        """Change what a block of your memory says.

        Args:
            old_content: A whole line, at best.
            new_content: Empty to only take the old one out.
        """
        replace = lambda block: edits.replace(  # noqa: E731
            block.lines, old_content, new_content, block.seen_lines
        )
        return self._edit(name, replace, old_content, new_content)

    def core_memory_remove(self, name: str, content: str) -> str:
        """Take a line or a part of one out of a block of your memory.

        Args:
            name: The block's label.
            content: The text to take out, as it stands there.
        """
        return self._edit(
            name, lambda block: edits.remove(block.lines, content, block.seen_lines), content
        )

    def core_memory_rewrite(self, name: str, content: str) -> str:
        """Write a block of your memory anew: all that it held is replaced. Use it to tidy up a block that is full.

        Args:
            name: The block's label.
            content: All that it should hold from now on, one fact per line.
        """
        new = content.split("\n") if content else []
        return self._edit(name, lambda _: Edited(new, f"It holds {len(new)} lines now."))

    def _edit(self, label: str, change: Callable[[Block], Edited], *texts: str) -> str:
        meant = [
            candidate
            for candidate in self.labels
            if candidate.casefold() == label.strip().casefold()
        ]
        block = self[meant[0] if len(meant) == 1 else label]
        if block.read_only:
            raise EditRefused(
                f"`{block.label}` is read-only: only the user may change it, with `knapper memory edit`."
            )
        check_given(block, *texts)
        edited = change(block)
        block.put(edited.lines)
        return edited.edit_summary


def check_given(block: Block, *texts: str) -> None:
    """Raise an error if no block of this limit could hold the texts, before the slow comparison with every line."""
    size = max(map(len, texts), default=0)
    if size > block.limit:
        raise EditRefused(too_large(block.label, size, block.limit))


class ChatMemory(Memory):
    """Memory of a conversation: who the agent is, and what it knows about its user."""

    starts_with: ClassVar[tuple[Block, ...]] = (
        Block(
            label="persona",
            position=0,
            description="Who you are: your name, manner and what you have learned to do.",
        ),
        Block(
            label="human",
            position=1,
            description="What you know of the user: name, people, likes, plans.",
        ),
    )


KNOWN: Mapping[str, type[Memory]] = {"chat": ChatMemory}


def named(name: str) -> type[Memory]:
    """Return the memory class that a setting names: a built-in one, or `package.module:Class`."""
    if name in KNOWN:
        return KNOWN[name]
    module, _, inner = name.partition(":")
    fix = (
        f"Write `package.module:Class`, or one of: {', '.join(KNOWN)}. A module is looked for where packages are"
        " installed and in PYTHONPATH, but not in the current folder."
    )
    if not all(part.isidentifier() for part in (*module.split("."), inner)):
        raise SettingsError(f"`{name}` names no memory class.", fix=fix)
    try:
        memory_class = getattr(import_module(module), inner)  # trusted code of the user: design 14
    except (ImportError, AttributeError, SyntaxError) as error:
        raise SettingsError(
            f"The memory class `{name}` cannot be loaded: {error}.", fix=fix
        ) from error
    if not (isinstance(memory_class, type) and issubclass(memory_class, Memory)):
        raise SettingsError(
            f"`{name}` is not a class derived from `agent_core.memory.classes.Memory`.", fix=fix
        )
    return memory_class


@lru_cache(maxsize=16)
def methods_of(memory_class: type[Memory]) -> tuple["Function", ...]:
    """Return the functions of a class. An invalid one is an error, since its author can fix it."""
    functions, problems = read_methods(memory_class, BaseModel)
    refused = [problem for problem in problems if problem.severity == "refuses"]
    if refused:
        reasons = "; ".join(f"{problem.where}: {problem.message}" for problem in refused)
        raise SettingsError(
            f"The memory class `{memory_class.__qualname__}` cannot be used: {reasons}."
        )
    return tuple(function for function in functions if function.name not in memory_class.without)
