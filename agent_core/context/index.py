"""The index: functions as lines of text in the system message, in place of a schema each.

It is made once a conversation, so that what a server has cached of the requests stays. What comes later is told where
it comes: in the answer to a call, or in a notice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_core.registry.synopsis import line_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function

_HEAD: Final = "Call these {}by call_function (no type: a str; in []: what it reaches):"
_ALSO: Final = "And of the program (introspect_function shows how): "
_MARKS: Final = ("*", "**", "***")
_SHARED: Final = 3
_MOST_MODULES: Final = 12


@dataclass(frozen=True, slots=True)
class PromptIndex:
    """The text of an index, and the names of the functions that it has a line for."""

    text: str
    names: frozenset[str]

    @classmethod
    def of(
        cls,
        functions: Mapping[str, "Function"],
        order: Iterable[str],
        room: int,
        ending: Callable[["Function"], str],
        seen_type: Callable[["Function"], str],
        program: Sequence["Function"] = (),
        *,
        has_programs: bool = True,
    ) -> "PromptIndex":
        """Return the index of functions in this many bytes: the first of `order` that fit, and the others by module.
        It says whether the agent `has_programs`.

        Those of the `program` are listed by name, whatever the room.
        """
        lines: dict[str, str] = {}
        endings: dict[str, str] = {}
        for name in order:
            line, end = line_of(functions[name], seen_type(functions[name])), ending(functions[name])
            room -= len(f"{line}{end}".encode("utf-8", "replace")) + 1
            if room < 0:
                break
            lines[name], endings[name] = line, end
        marks = _marks(Counter(endings.values()))
        lines = {name: f"{line}{_marked(endings[name], marks)}" for name, line in lines.items()}
        listed = sorted(lines, key=lambda name: (functions[name].module, name))
        others = Counter(function.module for name, function in functions.items() if name not in lines)
        legend = "".join(f"\n{mark}:{text}" for text, mark in marks.items())
        head = _HEAD.format("in a program or " if has_programs else "")
        parts = [head + legend, *(lines[name] for name in listed)] if lines or others else []
        if others:
            many = ", ".join(f"{module} {count}" for module, count in others.most_common(_MOST_MODULES))
            rest = ", …" if len(others) > _MOST_MODULES else ""
            parts.append(f"And {others.total()} more, by module: {many}{rest}. list_functions finds them.")
        if program:
            parts.append(_ALSO + ", ".join(function.name for function in program))
        return cls("\n".join(parts), frozenset(lines))


def _marks(endings: Counter[str]) -> dict[str, str]:
    """Return a mark for each ending that many functions share, the most frequent first."""
    often = [text for text, count in endings.most_common(len(_MARKS)) if text and count >= _SHARED]
    return dict(zip(often, _MARKS, strict=False))


def _marked(ending: str, marks: Mapping[str, str]) -> str:
    return f" {marks[ending]}" if ending in marks else ending
