"""A function with its promise, its means and its behavior, and what makes it worth calling at all."""

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from agent_core.registry.function import Function

from ..draft import Draft, Finding
from .answers import RUNNING, WORD, texts_of
from .behavior import Behavior
from .claims import Promise
from .code import (
    admission,
    by_chance,
    by_hash,
    by_length_only,
    calls_hash,
    code_words,
    draws_result,
    has_silence,
    keeps_in_vain,
    literals,
    picks_words,
    uses_library,
)
from .constants import is_arithmetic, is_loopless, reads_made_table, sums_compared
from .invariants import Invariant, invariants
from .lexicon import forms_of, lexicon, relation_words
from .memorization import Memorization
from .probes import NUMBERS, PIECES
from .reach import FreshCall
from .state import VanishingStore, leaves_alone, vanishing_stores
from .stated import Stated, unknown_numbers

_FEW, _FIRST, _HANDFUL = 3, 9, 20
_IN_PLACE = re.compile(
    r"(?<!is )(?<!are )(?<!be )\bin[- ]place\b(?! of)|\b(?:is|are|gets?) (?:itself )?changed by\b|\bmutat(?:es|ed)\b",
    re.IGNORECASE,
)
_IN_NO_PLACE = re.compile(
    r"\b(?:not|without|never|instead of|no) (?:\w+ ){0,3}(?:in[- ]place|mutat|chang)", re.IGNORECASE
)
_AS_IT_IS = re.compile(r"\b(?:unchanged|untouched|as (?:it|they) (?:is|are|was|were|came))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A reason to doubt a promise, and calls that show it."""

    finding: Finding
    calls: tuple[FreshCall, ...] = ()


def is_row_in(value: Any, row: Any) -> bool:  # Any: values that crossed
    """Check whether a value is a list, or holds it as one of its parts."""
    return isinstance(row, list) and (value == row or (isinstance(value, dict) and row in list(value.values())))


@dataclass(frozen=True)
class Case:
    """A function with its promise, its means, and its behavior once that is known."""

    draft: Draft
    function: Function
    promise: Promise
    has_means: bool
    memorization: Memorization | None
    behavior: Behavior = field(default_factory=Behavior)

    @property
    def is_suspect(self) -> bool:
        """True if something in its words or constants makes it worth calling."""
        if self.memorization is not None and (self.memorization.is_suspect or self.is_divided or self.is_fitted):
            return True
        if self.has_means:
            return False
        return bool(
            self.promise.claims
            or self.draws
            or self.algorithm
            or self.few_words
            or self.picks
            or self.measures
            or self.is_formula
            or admission(self.draft)[1]
            or not self.is_plain
            or ((self.is_asked or self.gives_objects) and self.invents)
            or (self.function.returns == "str" and len(self.code_words - self.promise.words) > _HANDFUL)
            or self.promise.says("work", "qualities")
            or self.is_kept_in_vain
            or self.names_entity
            or self.vanishing
            or self.spares_argument
            or self.is_held
            or self.returns_rows
            or self.unknown_numbers
            or self.invariants
            or self.takes_pieces
        )

    @cached_property
    def invariants(self) -> list[Invariant]:
        """What holds between the arguments and the result of every example."""
        return invariants(self.memorization.cases) if self.memorization else []

    @property
    def takes_pieces(self) -> bool:
        """True if a number is made of a text with several numbers in it, in every example."""
        cases = self.memorization.cases if self.memorization else ()
        return len(cases) > 1 and all(
            isinstance(case.value, int | float)
            and not isinstance(case.value, bool)
            and any(isinstance(text, str) and len(NUMBERS.findall(text)) >= PIECES for text in case.arguments.values())
            for case in cases
        )

    @property
    def unknown_numbers(self) -> tuple[Stated, ...]:
        """The numbers that its description states, and that its code has in no form."""
        described = self.function.description or self.draft.candidate.description
        return unknown_numbers(self.draft.tree, described) if self.draft.tree is not None else ()

    @cached_property
    def vanishing(self) -> list[VanishingStore]:
        """The stores that it makes itself, changes, and leaves behind."""
        tree, node = self.draft.tree, self.draft.function
        return vanishing_stores(tree, node) if tree is not None and node is not None else []

    @property
    def spares_argument(self) -> bool:
        """True if an argument is to be changed in place, and none is."""
        node, description = self.draft.function, self.function.description
        is_said = bool(_IN_PLACE.search(description) and not _IN_NO_PLACE.search(description))
        return is_said and node is not None and self.takes_rows and leaves_alone(node)

    @property
    def is_divided(self) -> bool:
        """True if some of its answers are constants, or arguments as they came, and others are not."""
        node = self.draft.function
        return node is not None and (self.function.returns == "bool" or has_silence(node))

    @property
    def is_held(self) -> bool:
        """True if its words promise what can be held against the results of several calls, or one shows a filler."""
        words = relation_words()
        leading = {*self.promise.name, *self.promise.sentence[:5]}
        said = {*self.promise.name, *self.promise.sentence}
        if words["media"]["formats"] & said or words["filler"]["vague"] & self.code_words:
            return True
        if self.is_choice or self.is_optimum or self.is_likeness:
            return True
        if self.takes_rows and not words["order"]["free"].isdisjoint(leading):
            return True
        if not words["filler"]["words"].isdisjoint(self.code_words):
            return True
        shown = [
            text for case in (self.memorization.cases if self.memorization else ()) for text in texts_of(case.value)
        ]
        is_read = not (words["text"]["changing"] | words["text"]["reading"]).isdisjoint(self.heads)
        return is_read or any(map(RUNNING.search, shown))

    @property
    def is_choice(self) -> bool:
        """True if the best of rows is promised, and no place in them."""
        said = {*self.promise.name, *self.promise.sentence}
        return self.is_best and relation_words()["choice"]["place"].isdisjoint(said)

    @property
    def is_best(self) -> bool:
        """True if the best of rows is promised."""
        return self.takes_rows and self.says_best

    @property
    def says_best(self) -> bool:
        """True if the best of something is promised, wherever that comes from."""
        words, said = relation_words()["choice"], {*self.promise.name, *self.promise.sentence}
        return any(word.endswith("est") for word in said - words["none"]) or not words["best"].isdisjoint(said)

    @property
    def is_drawn_best(self) -> bool:
        """True if what is drawn comes back, and what is best or suits best is promised: no word excuses that."""
        words, said = relation_words()["choice"], (*self.promise.name, *self.promise.sentence)
        is_judged = (self.says_best and not self.says_limit) or not words["suited"].isdisjoint(said)
        return is_judged and self.draft.tree is not None and draws_result(self.draft.tree)

    @property
    def is_optimum(self) -> bool:
        """True if what is best by some measure is promised of rows or mappings."""
        words, said = relation_words()["choice"], {*self.promise.name, *self.promise.sentence}
        measures = words["measured"] if self.says_limit else words["best"] | words["measured"]
        return self.takes_rows and not measures.isdisjoint(said)

    @property
    def says_limit(self) -> bool:
        """True if `most` or `least` is a limit: "at most 5"."""
        said = (*self.promise.name, *self.promise.sentence)
        return ("at", "most") in pairwise(said) or ("at", "least") in pairwise(said)

    @property
    def is_likeness(self) -> bool:
        """True if it is to tell how much two texts are alike, and not whether they are the same."""
        words, said = relation_words()["likeness"], {*self.promise.name, *self.promise.sentence}
        is_said = any(form in words["said"] for word in said for form in forms_of(word))
        return is_said and self.promise.words.isdisjoint(words["exact"])

    @property
    def returns_rows(self) -> bool:
        """True if each example got one of its lists back as it came, and its words promise more than that."""
        cases = self.memorization.cases if self.memorization else ()
        return (
            self.takes_rows
            and bool(cases)
            and all(any(is_row_in(case.value, row) for row in case.arguments.values()) for case in cases)
        )

    @property
    def shows_more(self) -> bool:
        """True if an example whose arguments are no literals, which has no twins, has a result that no call got."""
        shown = {example.expected.strip() for example in self.function.examples if not example.raises}
        count = len(self.function.examples) + len(self.draft.candidate.examples)
        tried = sum(probe.kind == "example" for probe, _outcome in self.behavior.outcomes)
        returned = {repr(value) for _probe, value in self.behavior.returned}
        return tried < count and not shown <= returned

    @property
    def hands_on_others(self) -> bool:
        """True if it says that what it does not know comes back as it is, and an example shows a change."""
        cases = self.memorization.cases if self.memorization else ()
        is_changing = any(case.value not in case.arguments.values() for case in cases)
        node = self.draft.function
        return is_changing and node is not None and _AS_IT_IS.search(ast.get_docstring(node) or "") is not None

    @property
    def heads(self) -> tuple[str, ...]:
        """The first words of its name and of its sentence."""
        return (*self.promise.name[:1], *(form for word in self.promise.sentence[:1] for form in forms_of(word)))

    @property
    def is_computed(self) -> bool:
        """True if its results hang on the content of its arguments, and not by chance or a hash alone."""
        tree = self.draft.tree
        is_drawn = tree is not None and (by_chance(tree) or by_hash(tree))
        return self.behavior.is_computed and not (is_drawn and (self.draws or self.promise.claims))

    @property
    def is_told(self) -> bool:
        """True if its description lists the values that it looks its argument up by."""
        return self.memorization is not None and self.memorization.is_told()

    @property
    def is_fitted(self) -> bool:
        """True if a sum of its parameters is compared with a number of which its description tells nothing."""
        node, described = self.draft.function, set(re.findall(r"\d+", self.function.description))
        return node is not None and any(f"{value:g}" not in described for value in sums_compared(node))

    @property
    def takes_rows(self) -> bool:
        """True if a list or mapping is among its parameters."""
        return any(
            schema.get("type") in ("array", "object") for schema in self.function.parameters["properties"].values()
        )

    def takes_text(self, *, alone: bool = False) -> bool:
        """Check whether a text is among its parameters; if `alone`, rows of texts do not count."""
        schemas = self.function.parameters["properties"].values()
        items = [schema.get("items") for schema in schemas]
        is_in_rows = any(isinstance(item, dict) and item.get("type") == "string" for item in items)
        return any(schema.get("type") == "string" for schema in schemas) or (is_in_rows and not alone)

    @property
    def takes_numbers(self) -> bool:
        """True if numbers are all that comes in."""
        kinds = [schema.get("type") for schema in self.function.parameters["properties"].values()]
        return bool(kinds) and all(kind in ("integer", "number") for kind in kinds)  # a list of kinds is neither

    @property
    def takes_records(self) -> bool:
        """True if rows that are more than texts are among its parameters."""
        schemas = self.function.parameters["properties"].values()
        items = [schema.get("items") for schema in schemas if schema.get("type") == "array"]
        is_mapping = any(schema.get("type") == "object" for schema in schemas)
        return is_mapping or any(not isinstance(item, dict) or item.get("type") != "string" for item in items)

    @property
    def is_worded(self) -> bool:
        """True if its verb promises a text around its arguments."""
        return lexicon().among(self.promise.sentence[:1] or self.promise.name[:1], "plain", "wording")

    @property
    def is_phrase(self) -> bool:
        """True if its sentence begins with an article: it names a result, and promises no deed."""
        return self.promise.sentence[:1] in (("a",), ("an",), ("the",), ("this",), ("what",), ("whether",), ("true",))

    @property
    def is_asked(self) -> bool:
        """True if its sentence promises an answer to a question."""
        return lexicon().among(self.promise.sentence[:1] or self.promise.name[:1], "plain", "asking")

    @property
    def code_words(self) -> frozenset[str]:
        """The words in the texts of its code."""
        return code_words(self.draft.tree) if self.draft.tree is not None else frozenset()

    @property
    def is_about_media(self) -> bool:
        """True if it is to know what a picture or a sound shows."""
        return not relation_words()["media"]["nouns"].isdisjoint((*self.promise.name, *self.promise.sentence))

    @property
    def is_kept_in_vain(self) -> bool:
        """True if it changes what its module holds."""
        tree, node = self.draft.tree, self.draft.function
        return tree is not None and node is not None and keeps_in_vain(tree, node)

    @property
    def invents(self) -> bool:
        """True if there are several words in the texts of its code."""
        tree = self.draft.tree
        return tree is not None and sum(len(WORD.findall(text)) for text in literals(tree) if text[:1] in "\"'") > _FEW

    @property
    def gives_objects(self) -> bool:
        """True if its results are of classes of its own, or rows made of them: no example may show their fields."""
        tree, returns = self.draft.tree, WORD.findall(self.function.returns)
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)} if tree else set()
        return not classes.isdisjoint(returns) or (bool(classes) and "dict" in returns)

    @property
    def is_plain(self) -> bool:
        """True if its words are those of computing, or it is named for the text that it makes."""
        book = lexicon()
        return self.promise.is_plain or any(
            part and book.has(part[-1], "plain", "texts") for part in (self.promise.name,)
        )

    @property
    def few_words(self) -> frozenset[str]:
        """The words of its code by which it judges what only a mind tells, if they are few and told nowhere."""
        said, work = {*self.promise.name, *self.promise.sentence}, lexicon().sections["work"]
        if not self.takes_text() or work["minded"].isdisjoint(said) or said & work["by_words"]:
            return frozenset()
        words = self.code_words - self.promise.words
        return words if len(words) <= _HANDFUL else frozenset()

    @property
    def algorithm(self) -> str:
        """The algorithm that its words name, such as bcrypt, and that its code neither calls nor imports."""
        if self.function.returns not in ("str", "bytes"):
            return ""  # it tells of such data, and makes none
        tree, words = self.draft.tree, {*self.promise.name, *self.promise.sentence}
        named = sorted(words & lexicon().sections["code"]["algorithms"])
        return named[0] if named and tree is not None and not uses_library(tree) else ""

    @property
    def picks(self) -> bool:
        """True if a number that is reckoned picks one of the texts in its code."""
        return self.draft.tree is not None and picks_words(self.draft.tree)

    @property
    def draws(self) -> bool:
        """True if chance or a hash decides, and its description says nothing of the kind."""
        tree = self.draft.tree
        if tree is None or not (by_chance(tree) or by_hash(tree) or self.is_drawn_best):
            return False
        return self.chance_words <= (lexicon().sections["chance"]["objects"] if self.is_judged else frozenset[str]())

    @property
    def is_judged(self) -> bool:
        """True if a judgment is promised, such as the best of rows: nobody wants it from a die."""
        tree, words = self.draft.tree, (*self.promise.name, *self.promise.sentence)
        is_drawn = self.behavior.is_by_chance or (self.takes_text() and tree is not None and by_chance(tree))
        return lexicon().among(words, "chance", "judged") or (is_drawn and self.is_best) or self.is_drawn_best

    @property
    def chance_words(self) -> frozenset[str]:
        """The words with which it says that something is drawn: no sample that comes in, nothing that is reckoned, such
        as a signature, and of a judgment no seed that repeats it, and no signature for its degree.
        """
        book, tree = lexicon().sections["chance"], self.draft.tree
        given = {part for name in self.function.parameters["properties"] for part in name.lower().split("_")}
        reckoned = frozenset[str]()
        if tree is not None and by_chance(tree):
            reckoned = book["hashing"]
        elif self.is_judged and (self.gives_digest or self.is_drawn_best):
            reckoned = book["hashing"] - book["hashed"]
        repeating = book["repeating"] if self.is_judged else frozenset[str]()
        picking = book["picking"] if self.is_drawn_best else frozenset[str]()
        return self.promise.words & book["said"] - (book["objects"] & given) - reckoned - repeating - picking

    @property
    def gives_digest(self) -> bool:
        """True if a number comes of a hash by name: how much of something there is, or how likely it is."""
        return self.function.returns == "float" and self.draft.tree is not None and calls_hash(self.draft.tree)

    @property
    def is_said_to_draw(self) -> bool:
        """True if chance decides, as its description says."""
        return self.draft.tree is not None and by_chance(self.draft.tree) and not self.draws

    @property
    def is_said_to_hash(self) -> bool:
        """True if a hash decides, as its name or first sentence says."""
        book, said = lexicon().sections["chance"], {*self.promise.name, *self.promise.sentence}
        return (
            self.draft.tree is not None and by_hash(self.draft.tree) and bool(said & (book["said"] - book["objects"]))
        )

    @property
    def measures(self) -> tuple[str, ...]:
        """The parameters of which it reads the length alone, if its description says nothing of a length."""
        node = self.draft.function
        return by_length_only(node) if node is not None and not self.promise.says("length") else ()

    @property
    def names_entity(self) -> bool:
        """True if nothing but the names of things outside come in: a country, a company."""
        properties = self.function.parameters["properties"]
        named = {part for name in properties for part in name.lower().split("_")}
        is_text = all(schema.get("type") == "string" for schema in properties.values())
        return is_text and not named.isdisjoint(lexicon().sections["knowledge"]["entities"])

    @property
    def is_named_formula(self) -> bool:
        """True if its very name promises what no line of arithmetic gives, or it only picks from a list."""
        arithmetic = lexicon().sections["arithmetic"]
        beyond = arithmetic["beyond"] | arithmetic["loops"] | arithmetic["rows"]
        named = not (beyond - arithmetic["formulas"]).isdisjoint(self.promise.name)
        return self._takes_a_list or (named and arithmetic["few"].isdisjoint(self.promise.name))

    @property
    def is_formula(self) -> bool:
        """True if it is a line of arithmetic, and its words promise what no such line gives."""
        node = self.draft.function
        formulas = frozenset() if self._takes_a_list else lexicon().sections["arithmetic"]["formulas"]
        words = {*self.promise.name, *(word for word in self.promise.sentence[:4] if word not in formulas)}
        leading_words = {*self.promise.name, *(word for word in self.promise.sentence[:_FIRST] if word not in formulas)}
        if node is None or (self.draft.tree is not None and reads_made_table(self.draft.tree, node)):
            return False
        if lexicon().among(words, "arithmetic", "beyond") and is_arithmetic(node):
            return True
        is_in_order = not relation_words()["order"]["kept"].isdisjoint((*self.promise.name, *self.promise.sentence[1:]))
        needs = ("loops", "rows") if self._takes_a_list and not is_in_order else ("loops",)
        return any(lexicon().among(leading_words, "arithmetic", key) for key in needs) and is_loopless(node)

    @property
    def _takes_a_list(self) -> bool:
        schemas = self.function.parameters["properties"].values()
        return any(schema.get("type") == "array" and "prefixItems" not in schema for schema in schemas)

    @property
    def line(self) -> int:
        """The line of the function in its text."""
        return self.draft.function.lineno if self.draft.function else 0
