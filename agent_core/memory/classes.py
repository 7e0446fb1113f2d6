"""Memory classes: the blocks that an agent has, and the functions that edit them.

The public methods of a class become functions through the same loader as all others; they may edit any block of `self`,
and the host stores the changes. Users can write their own classes, which are trusted code.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_core.base.errors import SettingsError, UsageError
from agent_core.registry.schema import read_methods

from . import edits
from .block import Block, too_large
from .edits import Edited, EditRefused

if TYPE_CHECKING:
    from agent_core.registry.function import Function


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

    blocks: list[Block] = Field(default_factory=list, description="The blocks in their order, one per label.")

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
        return {"blocks": blocks} | {key: value for key, value in data.items() if key in cls.model_fields}

    @model_validator(mode="after")
    def _one_per_label(self) -> "Memory":
        twice = next((label for n, label in enumerate(self.labels) if label in self.labels[:n]), None)
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
        if "blocks" in self.__dict__ and name not in type(self).model_fields and name in self.labels:
            self[name].value = value  # type: ignore[assignment] # checked on assignment
        else:
            super().__setattr__(name, value)

    def core_memory_append(self, name: str, content: str) -> str:
        """Add a fact to a block of your memory; what is there already is not added twice.

        Args:
            name: `human` for the user and everybody else, `persona` for yourself alone.
            content: A sentence that can be understood alone.
        """
        return self._edit(name, lambda block: edits.append(block.lines, content), content)

    def core_memory_replace(self, name: str, old_content: str, new_content: str) -> str:
        """Change what a block of your memory says, when it is no longer true.

        Args:
            old_content: A whole line, at best.
            new_content: Empty to only take the old one out.
        """
        replace = lambda block: edits.replace(block.lines, old_content, new_content, block.seen_lines)  # noqa: E731
        return self._edit(name, replace, old_content, new_content)

    def core_memory_remove(self, name: str, content: str) -> str:
        """Take a line or a part of one out of a block of your memory.

        Args:
            name: The block's label.
            content: The text to take out, as it stands there.
        """
        return self._edit(name, lambda block: edits.remove(block.lines, content, block.seen_lines), content)

    def core_memory_rewrite(self, name: str, content: str) -> str:
        """Write a block of your memory anew: all that it held is replaced. Use it to tidy up a block that is full.

        Args:
            name: The block's label.
            content: All that it should hold from now on, one fact per line.
        """
        new = content.split("\n") if content else []
        return self._edit(name, lambda _: Edited(new, f"It holds {len(new)} lines now."))

    def _edit(self, label: str, change: Callable[[Block], Edited], *texts: str) -> str:
        meant = [candidate for candidate in self.labels if candidate.casefold() == label.strip().casefold()]
        block = self[meant[0] if len(meant) == 1 else label]
        if block.read_only:
            raise EditRefused(f"`{block.label}` is read-only: only a human may change it.")
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
            label="persona", position=0, description="Who you are: your name, manner and what you have learned to do."
        ),
        Block(label="human", position=1, description="What you know of the user: name, people, likes, plans."),
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
        raise SettingsError(f"The memory class `{name}` cannot be loaded: {error}.", fix=fix) from error
    if not (isinstance(memory_class, type) and issubclass(memory_class, Memory)):
        raise SettingsError(f"`{name}` is not a class derived from `agent_core.memory.classes.Memory`.", fix=fix)
    return memory_class


@lru_cache(maxsize=16)
def methods_of(memory_class: type[Memory]) -> tuple["Function", ...]:
    """Return the functions of a class. An invalid one is an error, since its author can fix it."""
    functions, problems = read_methods(memory_class, BaseModel)
    refused = [problem for problem in problems if problem.severity == "refuses"]
    if refused:
        reasons = "; ".join(f"{problem.where}: {problem.message}" for problem in refused)
        raise SettingsError(f"The memory class `{memory_class.__qualname__}` cannot be used: {reasons}.")
    return tuple(function for function in functions if function.name not in memory_class.without)
