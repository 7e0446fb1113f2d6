"""A function with its promise, its means and its behavior, and what makes it worth calling at all."""

from dataclasses import dataclass, field

from agent_core.registry.function import Function

from ..draft import Draft
from .answers import WORD
from .behavior import Behavior
from .claims import Promise
from .code import admission, by_chance, by_hash, by_length_only, has_silence, keeps_in_vain, literals
from .constants import is_arithmetic, is_loopless
from .lexicon import lexicon
from .memory import Memory

_PICKING = frozenset({"pick", "picks", "flip", "roll", "rolls", "test", "sample", "samples"})
_FEW, _FIRST = 3, 9


@dataclass(frozen=True)
class Case:
    """A function with its promise, its means, and its behavior once that is known."""

    draft: Draft
    function: Function
    promise: Promise
    has_means: bool
    memory: Memory | None
    behavior: Behavior = field(default_factory=Behavior)

    @property
    def is_suspect(self) -> bool:
        """True if something in its words or constants makes it worth calling."""
        if self.memory is not None and (self.memory.is_suspect or self.is_divided):
            return True
        if self.has_means:
            return False
        return bool(
            self.promise.claims
            or self.draws
            or self.measures
            or self.is_formula
            or admission(self.draft)[1]
            or not self.is_plain
            or (self.is_asked and self.invents)
            or self.promise.says("work", "qualities")
            or self.is_kept_in_vain
            or self.names_entity
        )

    @property
    def is_divided(self) -> bool:
        """True if some of its answers are constants, or arguments as they came, and others are not."""
        node = self.draft.function
        return node is not None and (self.function.returns == "bool" or has_silence(node))

    @property
    def is_computed(self) -> bool:
        """True if its results hang on the content of its arguments, and not by chance or a hash alone."""
        tree = self.draft.tree
        is_drawn = tree is not None and (by_chance(tree) or by_hash(tree))
        return self.behavior.is_computed and not (is_drawn and (self.draws or self.promise.claims))

    @property
    def is_told(self) -> bool:
        """True if its description lists the values that it looks its argument up by."""
        return self.memory is not None and self.memory.is_told()

    @property
    def takes_rows(self) -> bool:
        """True if a list or mapping is among its parameters."""
        return any(
            schema.get("type") in ("array", "object") for schema in self.function.parameters["properties"].values()
        )

    @property
    def takes_numbers(self) -> bool:
        """True if numbers are all that comes in."""
        kinds = {schema.get("type") for schema in self.function.parameters["properties"].values()}
        return bool(kinds) and kinds <= {"integer", "number"}

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
    def is_kept_in_vain(self) -> bool:
        """True if it changes what its module holds."""
        return self.draft.tree is not None and keeps_in_vain(self.draft.tree)

    @property
    def invents(self) -> bool:
        """True if there are several words in the texts of its code."""
        tree = self.draft.tree
        return tree is not None and sum(len(WORD.findall(text)) for text in literals(tree) if text[:1] in "\"'") > _FEW

    @property
    def is_plain(self) -> bool:
        """True if its words are those of computing, or it is named for the text that it makes."""
        book = lexicon()
        return self.promise.is_plain or any(
            part and book.has(part[-1], "plain", "texts") for part in (self.promise.name,)
        )

    @property
    def draws(self) -> bool:
        """True if chance or a hash decides, and its description says nothing of the kind."""
        tree = self.draft.tree
        if tree is None or not (by_chance(tree) or by_hash(tree)):
            return False
        said = self.promise.words & lexicon().sections["chance"]["said"]
        is_picked = said <= _PICKING and lexicon().among(
            (*self.promise.name, *self.promise.sentence), "chance", "judged"
        )
        return not said or is_picked

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
        return self._takes_a_list or not (beyond - arithmetic["formulas"]).isdisjoint(self.promise.name)

    @property
    def is_formula(self) -> bool:
        """True if it is a line of arithmetic, and its words promise what no such line gives."""
        node = self.draft.function
        formulas = frozenset() if self._takes_a_list else lexicon().sections["arithmetic"]["formulas"]
        words = {*self.promise.name, *(word for word in self.promise.sentence[:4] if word not in formulas)}
        said = {*self.promise.name, *(word for word in self.promise.sentence[:_FIRST] if word not in formulas)}
        if node is None:
            return False
        if lexicon().among(words, "arithmetic", "beyond") and is_arithmetic(node):
            return True
        needs = ("loops", "rows") if self._takes_a_list else ("loops",)
        return any(lexicon().among(said, "arithmetic", key) for key in needs) and is_loopless(node)

    @property
    def _takes_a_list(self) -> bool:
        schemas = self.function.parameters["properties"].values()
        return any(schema.get("type") == "array" and "prefixItems" not in schema for schema in schemas)

    @property
    def line(self) -> int:
        """The line of the function in its text."""
        return self.draft.function.lineno if self.draft.function else 0
