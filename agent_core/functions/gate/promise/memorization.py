"""How far the answers of a function are those of its own examples alone.

Pure. A function is hard-coded if each answer of its examples hangs on a selector for that very example, few others are
there, and everything else gets one default.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent_core.registry.typenames import Schema

from .answers import leaves
from .constants import QUOTED, Form, form, is_made_of, is_part, members_of, selectors
from .lexicon import lexicon
from .reach import ECHO, RAISED, OtherCase, ShownCase, answer_of, is_default

_ENOUGH, _HITS, _RICH = 5, 0.03, 4


Weight: TypeAlias = Literal["", "weak", "strong"]


@dataclass(frozen=True, slots=True)
class Dependence:
    """How far the answers of a function are those of its examples alone, and why."""

    weight: Weight
    reason: str = ""


INDEPENDENT = Dependence("")


def _is_taken(case: ShownCase) -> bool:
    """Check whether a result is a piece of an argument: it may have been found there."""
    value = form(case.value)
    return isinstance(value, str) and any(
        value in form(text) for text in case.arguments.values() if isinstance(text, str)
    )


Link: TypeAlias = tuple[str, int | None]


def _at(arguments: Mapping[str, Any], link: Link) -> Form:
    """Return the argument, or its item, that a link is about."""
    name, place = link
    value = arguments.get(name)
    if place is None:
        return form(value)
    return form(value[place]) if isinstance(value, list | tuple) and place < len(value) else ("none",)


class Memorization:
    """The examples of a function next to its selectors: which example hangs on which argument."""

    def __init__(self, tree: ast.Module, cases: Sequence[ShownCase], schema: Schema, description: str) -> None:
        self.cases, self._schema, self.description = cases, schema, description
        self._selectors = selectors(tree)
        self._exact = [self._links(case) for case in cases]
        self._weak = [any(map(self._is_weak, case.arguments.values())) for case in cases]
        self._literal = [form(case.value) in self._selectors.values and not _is_taken(case) for case in cases]

    @property
    def is_suspect(self) -> bool:
        """True if an example hangs on a constant, or half of them may; only then is it worth running calls."""
        linked = [weak or described for weak, described in zip(self._weak, self._literal, strict=True)]
        return len(linked) > 1 and (any(self._exact) or 2 * sum(linked) >= len(linked))

    def is_tied(self, special: Sequence[int]) -> bool:
        """Check whether these examples stand in the code: each by its arguments, or by a result that says something."""
        results = {repr(self.cases[at].value) for at in special if not isinstance(self.cases[at].value, bool)}
        is_telling = len(results) > 1 and not results <= _TRIVIAL
        return all(self._exact[at] or (self._literal[at] and is_telling) for at in special)

    def _links(self, case: ShownCase) -> frozenset[Link]:
        """Return the arguments of an example that are selectors, and the items of its rows that are."""
        properties = self._schema["properties"]
        links: set[Link] = set()
        for name, value in case.arguments.items():
            if "enum" in properties.get(name, {}):
                continue
            if self._is_exact(value):
                links.add((name, None))
            elif isinstance(value, list | tuple):
                links |= {
                    (name, at) for at, part in enumerate(value[:8]) if isinstance(part, str) and self._is_exact(part)
                }
        together = [form(value) for value in case.arguments.values()]
        if len(together) > 1 and ("row", *together) in self._selectors.exact:
            links |= {(name, None) for name in case.arguments}
        return frozenset(links)

    def _is_exact(self, value: Any) -> bool:  # Any: an argument
        if isinstance(value, bool) or value is None:
            return False
        value_form, exact = form(value), self._selectors.exact
        if value_form in exact or any(value_form in tokens for tokens in self._selectors.tokens):
            return True
        return isinstance(value_form, str) and any(is_made_of(value_form, selector) for selector in exact)

    def _is_weak(self, value: Any) -> bool:  # Any: an argument
        if isinstance(value, str):
            text = form(value)
            parts = [part for part in self._selectors.partly | self._selectors.exact if isinstance(part, str) and part]
            return any(part in text for part in parts) or float(len(value)) in self._selectors.exact
        if isinstance(value, list | tuple | dict):
            inner = [leaf for leaf in leaves(value) if not isinstance(leaf, bool)]
            return float(len(value)) in self._selectors.exact or any(
                form(leaf) in self._selectors.exact for leaf in inner[:1]
            )
        return False

    def judge(self, others: Sequence[OtherCase]) -> Dependence:
        """Return how far its answers are those of its examples alone, of what other calls gave."""
        return self._judge(others) if self.cases and not self._is_rich(others) else INDEPENDENT

    def _is_rich(self, others: Sequence[OtherCase]) -> bool:
        """Check whether other calls got several answers that no example shows, and that do not hang on a length.

        An answer with an argument in it may be pasted.
        """
        known_answers = {RAISED, ECHO, *(answer_of(case.value, case.arguments) for case in self.cases)}
        fresh: dict[str, set[str]] = {}
        for case in others:
            texts = [value for value in case.arguments.values() if isinstance(value, str) and value]
            if (
                case.answer not in known_answers
                and "<" not in case.answer
                and not any(text in case.shown for text in texts)
            ):
                sizes = [len(value) if isinstance(value, str | list) else value for value in case.arguments.values()]
                fresh.setdefault(repr(sizes), set()).add(case.answer)
        return len(set().union(*fresh.values())) >= _RICH and any(len(answers) > 1 for answers in fresh.values())

    def _judge(self, others: Sequence[OtherCase]) -> Dependence:
        if self._only_known(others):
            return Dependence(
                "strong" if self._has_rows() else "weak", "whatever it is given, it gives one of their results"
            )
        changed = [case for case in others if not self._is_shown(case.arguments)]
        apart = [case for case in changed if not self._keeps_link(case.arguments, is_loose=True)]
        answers = Counter(case.answer for case in apart)
        if len(apart) < _ENOUGH:
            return INDEPENDENT
        default = answers.most_common(1)[0][0]
        special = [at for at, case in enumerate(self.cases) if answer_of(case.value, case.arguments) != default]
        if not special:
            return INDEPENDENT
        if self._works(changed, default):
            return self._silent(special, default)
        hits = sum(count for answer, count in answers.items() if not is_default(answer, default))
        if hits > _HITS * len(apart):
            return self._narrow(apart, special, default) or self._unreached(special)
        weighed = _LISTED if self._is_listed(special) else self._weighed(special, default, answers)
        return weighed if weighed.weight else self._narrow(changed, special, default) or weighed

    def _weighed(self, special: list[int], default: str, answers: Counter[str]) -> Dependence:
        beyond = self.beyond()
        if (self.is_closed() and (beyond or not _ALL.search(self.description))) or (
            beyond >= 2 and 2 * beyond >= len(special)
        ):
            return INDEPENDENT
        if all(self._exact[at] for at in special) and self.is_test(special):
            return Dependence("weak", _NEAR) if self._is_odd(special) else INDEPENDENT
        if all(self._exact[at] for at in special):
            return Dependence("strong", "each answer of its examples stands in the code for that one argument")
        if all(self._exact[at] or (self._weak[at] and self._literal[at]) for at in special):
            is_answered = answers[RAISED] < sum(answers.values())
            return Dependence("strong" if is_answered and beyond < 2 and len(special) > 1 else "weak", _NEAR)
        if all(self._literal[at] for at in special) and default != RAISED:
            results = {repr(self.cases[at].value) for at in special}
            is_many = len(results) > 1 and not results <= _TRIVIAL
            return Dependence("strong" if is_many and self._has_numbers(special) else "weak", _NEAR)
        return INDEPENDENT

    def _is_listed(self, special: list[int]) -> bool:
        """Check whether rows of the code are the arguments of these examples, with few untold others."""
        rows = [members for selector in self._selectors.exact if len(members := members_of(selector)) > 1]
        own = [row for row in rows if any(self._is_call(row, self.cases[at]) for at in special)]
        counts = Counter(member for row in rows for member in row)
        is_web = 2 * sum(count > 1 for count in counts.values()) >= len(counts)  # each leads to others, as steps do
        is_each = all(any(self._is_call(row, self.cases[at]) for row in own) for at in special)
        described = self.description.casefold()
        is_told = all(str(member) in described for row in rows for member in row if isinstance(member, str))
        is_short = len(special) > 1 and len(rows) <= _OWN * len(own)
        return is_short and is_each and not (is_web or is_told or self.is_closed())

    @staticmethod
    def _is_call(row: tuple[Form, ...], case: ShownCase) -> bool:
        """Check whether a row is made of the arguments of an example, or of pieces of its texts."""
        values = [*leaves([*case.arguments.values()])]
        pieces = {form(value) for value in values}
        pieces |= {form(part) for value in values if isinstance(value, str) for part in _PIECE.findall(value)}
        return {*row} <= pieces

    def is_test(self, special: list[int]) -> bool:
        """Check whether all that it does is to compare with one value, and say which of two answers it is."""
        linked = {_at(self.cases[at].arguments, link) for at in special for link in self._exact[at]}
        results = {repr(case.value) for case in self.cases}
        return len(linked) == 1 and len(results) == 2 and len({form(self.cases[at].value) for at in special}) == 1

    def _is_odd(self, special: list[int]) -> bool:
        """Check whether what it compares with is more than a small number."""
        return not any(value in (0, 1, 2, -1) for at in special for value in self.cases[at].arguments.values())

    def _silent(self, special: list[int], default: str) -> Dependence:
        """Judge a function that computes in the cases of its examples only, and says nothing of all others."""
        if default == RAISED or not all(self._exact[at] for at in special) or self.beyond():
            return INDEPENDENT
        if (default != ECHO and "<" in default and not is_default(default, "")) or self.is_told(least=1):
            return INDEPENDENT  # each call gets its own arguments in its answer, or its description tells the cases
        quoted = {form(word) for word in QUOTED.findall(self.description)}
        if quoted and quoted <= self._selectors.exact:
            return INDEPENDENT
        return Dependence(
            "strong" if quoted & self._selectors.exact or _ALL.search(self.description) else "weak", _ONLY
        )

    def _narrow(self, apart: Sequence[OtherCase], special: list[int], default: str) -> Dependence | None:
        """Judge a function that gives one empty answer to nearly every call, and never to an example."""
        returned = [case for case in apart if case.answer != RAISED]
        empty = sum(is_default(case.answer, default) for case in returned)
        kinds = {type(case.value) for case in self.cases}
        if self.beyond() >= _TABLE or self.is_told() or not kinds <= {str, int, float, list, dict}:
            return None
        if default not in _EMPTY or len(returned) < 2 * _ENOUGH or len(special) < len(self.cases):
            return None
        if empty < _MOSTLY * len(returned):
            return None
        is_sure = empty >= _NEARLY * len(returned) and 2 * sum(
            bool(self._exact[at]) and self._literal[at] for at in special
        ) >= len(special)
        return Dependence("strong" if is_sure and self.beyond() < 2 else "weak", _NEAR)

    def _only_known(self, others: Sequence[OtherCase]) -> bool:
        """Check whether many other calls got no other results than those of the examples, which are more than words."""
        values = [case.value for case in self.cases]
        if any(isinstance(value, str | bool | None) for value in values) or all(
            value in (0, 1, -1) for value in values
        ):
            return False
        known_answers = {repr(case.value) for case in self.cases}
        answers = [case.shown for case in others if case.answer != RAISED]
        is_many = len(known_answers) > 1 and len(answers) > 3 * _ENOUGH
        return is_many and all(self._literal) | self._has_rows() and {*answers} <= known_answers

    def _has_rows(self) -> bool:
        return all(isinstance(case.value, list | tuple | dict) and case.value for case in self.cases)

    def _has_numbers(self, special: list[int]) -> bool:
        return all(isinstance(self.cases[at].value, int | float) for at in special)

    def _unreached(self, special: list[int]) -> Dependence:
        """Judge a function that computes for others: do its examples show that at all?"""
        places = range(len(self.cases))
        if len(special) < len(self.cases) or not all(self._exact[at] and self._literal[at] for at in places):
            return INDEPENDENT
        if self.beyond() >= 2 or self.is_closed():
            return INDEPENDENT
        return Dependence(
            "weak", "each of its examples is a case of its own in the code: none shows what it does for others"
        )

    def _is_shown(self, arguments: Mapping[str, Any]) -> bool:
        return any(form(dict(arguments)) == form(case.arguments) for case in self.cases)

    def _keeps_link(self, arguments: Mapping[str, Any], *, is_loose: bool = False) -> bool:
        """Check whether a call still has all the arguments that an example hangs on."""
        for case, links in zip(self.cases, self._exact, strict=True):
            if links and all(_at(arguments, link) == _at(case.arguments, link) for link in links):
                return True
            if is_loose and not links and self._keeps_piece(case, arguments):
                return True
        return False

    def _keeps_piece(self, case: ShownCase, arguments: Mapping[str, Any]) -> bool:
        return any(part in str(form(arguments.get(name, ""))) for name, part in self._pieces(case))

    def _pieces(self, case: ShownCase) -> list[tuple[str, str]]:
        """Return the selectors that are part of an example's texts, with the parameters."""
        parts = [part for part in self._selectors.partly | self._selectors.exact if isinstance(part, str) and part]
        texts = [(name, form(value)) for name, value in case.arguments.items() if isinstance(value, str)]
        return [(name, part) for name, text in texts for part in parts if part in text]

    def _works(self, changed: Sequence[OtherCase], default: str) -> bool:
        """Check whether a call with such an argument gives more than that example's answer when the others change."""
        known_answers = {answer_of(case.value, case.arguments) for case in self.cases}
        shown_values = {repr(case.value) for case in self.cases}
        return any(
            self._keeps_link(case.arguments)
            and case.answer not in known_answers
            and case.shown not in shown_values
            and not is_default(case.answer, default)
            for case in changed
        )

    def values_of(self, name: str) -> set[Form]:
        """Return the values of a parameter in the examples that the code compares it with."""
        return {
            form(case.arguments[name])
            for case, links in zip(self.cases, self._exact, strict=True)
            if (name, None) in links
        }

    def is_selected(self, value: Any) -> bool:  # Any: an argument
        """Check whether the code compares arguments with a value."""
        return self._is_exact(value)

    @property
    def has_more(self) -> bool:
        """True if the code compares with values that no example has, other than 0 and 1."""
        return self.beyond() > len({0.0, 1.0} & self._selectors.exact)

    def beyond(self) -> int:
        """Return how many selectors are no argument of an example."""
        seen = {form(leaf) for case in self.cases for leaf in leaves([*case.arguments.values()])}
        seen |= {form(value) for case in self.cases for value in case.arguments.values()}
        linked = [tokens for tokens in self._selectors.tokens if tokens & seen]
        selectors = {*self._selectors.exact, *self._selectors.partly, *(token for tokens in linked for token in tokens)}
        texts = [text for text in seen if isinstance(text, str)]
        answers = {form(case.value) for case in self.cases}
        known_answers = seen | answers
        return len(
            {
                selector
                for selector in selectors - known_answers
                if selector != "" and (self._is_other_call(selector) or not is_part(selector, known_answers, texts))
            }
        )

    def _is_other_call(self, selector: Form) -> bool:
        """Check whether a row is the arguments of a call that no example makes, of values that examples show."""
        calls = [tuple(map(form, case.arguments.values())) for case in self.cases]
        row = members_of(selector)
        if len(row) < 2 or row in calls or any(len(call) != len(row) for call in calls):
            return False
        return all(any(call[at] == part for call in calls) for at, part in enumerate(row))

    def is_told(self, least: int = 3) -> bool:
        """Check whether the description names every value that arguments are compared with."""
        values = {form(value) for case in self.cases for value in case.arguments.values()}
        return self._selectors.are_told(self.description, values, least)

    def is_closed(self) -> bool:
        """Check whether its selectors are of a set that is known by heart, or of one that its description lists."""
        members = {member for selector in self._selectors.exact for member in members_of(selector)}
        words = {member for member in members if isinstance(member, str) and member}
        if not words or len(words) < len([member for member in members if member not in ("", 0.0, 1.0)]):
            return False
        described = self.description.casefold()
        if len(words) > 1 and all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", described) for word in words):
            return True
        return any(
            words <= {member.casefold() for member in members} for members in lexicon().sections["closed"].values()
        )


_LISTED = Dependence("strong", "its code lists the arguments of its examples, with few others")
_OWN = 2  # times the rows of the examples: few others
_PIECE = re.compile(r"[^\W_]+")
_ALL = re.compile(r"\b(?:any|all|every|each)\b", re.IGNORECASE)
_ONLY = "it computes in the cases of its examples, and gives every other call one answer without a word"
_WORDS = frozenset(('"-"', '"unknown"', '"other"', '"?"', '"none"', '"n/a"', '"invalid"'))
_EMPTY = _WORDS | {ECHO, "None", '""', "[]", "{}", "0", "-1", "False", '"<w0>"', '"<n>"', "<n>"}
_MOSTLY, _NEARLY, _TABLE = 0.7, 0.85, 3
_TRIVIAL = frozenset({"0", "1", "-1"})  # which stand in any code
_NEAR = "it gives the answers of its examples, and one and the same for every other argument"
