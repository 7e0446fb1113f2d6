"""Texts that are calls although nothing can be called so: of functions that do not exist, or broken. Pure.

Such a text is no answer to the user, and it is evidence that its writer calls no functions by itself.
"""

import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from .forms import forms
from .reply import expressions, is_lead_in, read_objects, read_tagged, split_tagged


class _AnyName(Mapping[str, Sequence[str]]):
    """Functions of every name that a call may have, with any parameters: for a call of one that is not shown."""

    def __getitem__(self, name: str) -> Sequence[str]:
        if not _NAME.fullmatch(name):
            raise KeyError(name)
        return ()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,80}")
_PYTHON_CALL: Final = re.compile(r"([A-Za-z_]\w{0,80})\(\s*(\w+\s*=)?")
_ANY: Final = _AnyName()


def written_calls(text: str) -> tuple[str, ...]:
    """Return the names in a text that is calls, of functions that need not exist, however broken; none if it is not.

    Of Python only a call with named arguments counts, of what is no builtin: anything else may be an answer.
    """
    if not text.strip():
        return ()
    calls = read_objects(text, _ANY, marked=False)
    if not calls and (split := split_tagged(text)) and is_lead_in(split[0]):
        calls = tuple(call for part in split[1] for call in read_tagged(part, _ANY))
    if calls:
        return tuple(call.name for call in calls)
    begun = _begun().search(text)
    if begun and is_lead_in(text[: begun.start()]):
        return (begun["name"],)
    bare = _TOOL_CODE.sub("", text).strip().removesuffix(";").removeprefix("[").removesuffix("]")
    space, _, call_text = bare.partition(".") if bare.partition(".")[0] in forms().namespaces else ("", "", bare)
    match = _PYTHON_CALL.match(call_text)
    is_call = match and not hasattr(builtins, match[1]) and (space or match[2]) and expressions(call_text)
    return (match[1],) if match and is_call else ()


_TOOL_CODE: Final = re.compile(r"\A\s*```(?:tool_code)?[ \t]*\n|```\s*\Z")


@cache
def _begun() -> re.Pattern[str]:
    """Return the pattern of an object that opens the text, a fence or a tag, and begins as a call does."""
    opening = "|".join(re.escape(tag.open) for tag in forms().tags)
    names, values = "|".join(forms().name_keys), "|".join(forms().argument_keys)
    call = rf"[\"'](?:{names})[\"']\s*:\s*[\"'](?P<name>[A-Za-z_][\w.-]{{0,80}})[\"']\s*,\s*[\"'](?:{values})[\"']\s*:"
    wrapped = (
        r"(?:[\"']thought[\"']\s*:\s*\"(?:[^\"\\]|\\.){0,400}\"\s*,\s*)?(?:[\"'](?:call|function)[\"']\s*:\s*\{\s*)?"
    )
    return re.compile(rf"(?:\A|^[ \t]*(?:```\w*|{opening}))\s*\[?\s*\{{\s*{wrapped}{call}", re.MULTILINE)
