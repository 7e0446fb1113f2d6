"""What a model may ask at a breakpoint: an evaluator of expressions that reads values and runs nothing.

It reads names, stored fields and items, computes with plain data (values of built-in types), and knows a few functions
and methods of these types. Everything else is refused with a sentence. An object is only ever looked at through the
base methods of the built-in types and the dictionaries and slots in which it stores its fields, so no code of the
function runs: no property, no `__eq__`, no `__repr__`. What an expression may take is bounded, in steps and in size.
"""

import ast
import builtins
import operator
from collections import ChainMap, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context as DecimalContext
from decimal import Decimal, localcontext
from itertools import islice
from pathlib import Path, PurePosixPath
from types import (
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, Final, NamedTuple

MOST_STEPS: Final = 50_000  # of one expression: its nodes, and the items that it looks at
_MOST_BITS: Final = 50_000  # of a number
_MOST_CHARS: Final = 1_000_000  # of a text
_MOST_KEYS: Final = 1_000  # of a set or dictionary that an expression makes: keys may be chosen so that they collide
_MOST_NESTED: Final = 20
_CHARS_A_STEP: Final = 1_000
_MOST_DIGITS: Final = 100  # of a width or a precision
_SHOWN_ITEMS, _SHOWN_CHARS, _SHOWN_LEVELS = 12, 200, 4


class Unreadable(Exception):
    """Raised for what a breakpoint does not do; the message says what."""


class _Pair(NamedTuple):
    one: int


_TupleField: Final = type(_Pair.one)
_MRO: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_NAME: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
_NAMESPACE: Final[Callable[[type], Mapping[str, Any]]] = type.__dict__["__dict__"].__get__
_SLOTS: Final = (MemberDescriptorType, _TupleField)

_NUMBERS: Final = (bool, int, float, complex)
_SEQUENCES: Final = (str, bytes, bytearray, list, tuple, range, deque)
_CONTAINERS: Final = (*_SEQUENCES, dict, set, frozenset)
_MOMENTS: Final = (date, datetime, time, timedelta, timezone)
_PATHS: Final = (PurePosixPath, type(Path()))
_EXACT: Final = {
    id(kind): kind for kind in (NoneType, *_NUMBERS, *_CONTAINERS, *_MOMENTS, Decimal, *_PATHS)
}
# Of a subclass of these, the value is that of the base: a number of numpy, a member of an `IntEnum`, a named tuple.
_INHERITED: Final = {id(kind) for kind in (int, float, *_CONTAINERS)}

_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {  # Any: plain values
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FIELDS: Final[dict[type, frozenset[str]]] = {
    date: frozenset({"year", "month", "day"}),
    time: frozenset({"hour", "minute", "second", "microsecond"}),
    datetime: frozenset({"year", "month", "day", "hour", "minute", "second", "microsecond"}),
    timedelta: frozenset({"days", "seconds", "microseconds"}),
    complex: frozenset({"real", "imag"}),
    range: frozenset({"start", "stop", "step"}),
    **dict.fromkeys(_PATHS, frozenset({"name", "stem", "suffix", "parts", "parent"})),
}
_OF_TEXT: Final = frozenset(
    {
        "capitalize",
        "casefold",
        "count",
        "endswith",
        "find",
        "index",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
    }
    | {
        "removesuffix",
        "rfind",
        "rindex",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
    }
    | {
        "swapcase",
        "title",
        "upper",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
        "isdigit",
        "islower",
        "isnumeric",
    }
    | {"isspace", "istitle", "isupper"}
)
_OF_SET: Final = frozenset(
    {"isdisjoint", "issubset", "issuperset", "union", "intersection", "difference"}
)
_METHODS: Final[dict[type, frozenset[str]]] = {  # each returns little more than it is given
    str: _OF_TEXT,
    bytes: (_OF_TEXT & frozenset(dir(bytes))) | {"hex"},
    int: frozenset({"bit_length"}),
    float: frozenset({"is_integer"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get", "items", "keys", "values"}),
    set: _OF_SET,
    frozenset: _OF_SET,
    date: frozenset({"isoformat", "weekday", "isoweekday"}),
    time: frozenset({"isoformat"}),
    datetime: frozenset({"isoformat", "weekday", "isoweekday", "date", "time"}),
    timedelta: frozenset({"total_seconds"}),
}
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {  # Any: plain values
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "date": date,
    "datetime": datetime,
    "Decimal": Decimal,
    "dict": dict,
    "enumerate": enumerate,
    "float": float,
    "frozenset": frozenset,
    "int": int,
    "isinstance": isinstance,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "next": next,
    "range": range,
    "repr": repr,
    "reversed": reversed,
    "round": round,
    "set": set,
    "sorted": sorted,
    "str": str,
    "sum": sum,
    "timedelta": timedelta,
    "tuple": tuple,
    "type": type,
    "zip": zip,
}
_MOST_EXPONENT: Final = 1_000  # of a decimal number that an expression makes
_GOING_THROUGH: Final = frozenset(
    {"dict", "enumerate", "frozenset", "list", "reversed", "set", "tuple", "zip"}
)
_KNOWN_METHODS: Final = frozenset().union(*_METHODS.values())
_READS: Final = "a breakpoint reads values"
_NODES: Final = (
    *(
        ast.Expression,
        ast.Constant,
        ast.Name,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
        ast.Starred,
        ast.expr_context,
    ),
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.IfExp,
        ast.boolop,
        ast.operator,
        ast.unaryop,
        ast.cmpop,
    ),
    *(
        ast.List,
        ast.Tuple,
        ast.Set,
        ast.Dict,
        ast.JoinedStr,
        ast.FormattedValue,
        ast.Call,
        ast.keyword,
    ),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.comprehension),
)


def check(tree: ast.AST) -> None:
    """Check whether an expression only reads, as far as its text says.

    Raises:
        Unreadable: it does more.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if name in _KNOWN_METHODS:
                pass
            case ast.Call(func=called):
                raise Unreadable(
                    f"{_READS}: it does not call `{ast.unparse(called)[:80]}`, only "
                    f"{', '.join(f'`{name}`' for name in _FUNCTIONS)}, and methods such as `lower` of a text"
                )
            case ast.MatMult() | ast.comprehension(is_async=1):
                raise Unreadable(f"{_READS}: it does not wait, and does not multiply matrices")
            case _ if not isinstance(node, _NODES):
                raise Unreadable(f"{_READS}: `{type(node).__name__}` is nothing that it evaluates")


def read(text: str, names: Mapping[str, object]) -> object:
    """Return the value of an expression over these names.

    Raises:
        Unreadable: the expression does more than to read, or takes too much.
        Exception: as Python says of plain values, such as KeyError.
    """
    tree = ast.parse(text.strip(), mode="eval")
    check(tree)
    with localcontext(DecimalContext()):  # the flags of the function's own context stay as they are
        return _Reading().value(tree.body, names)


def holds(text: str, names: Mapping[str, object]) -> bool:
    """Return whether a condition is true. It raises what `read` raises."""
    return _Reading().truth(read(text, names))


def type_name(value: object) -> str:
    """Return the name of a value's type, which no code of the function can change."""
    return _NAME(type(value))


class _Reading:
    """The evaluation of one expression. Values are `Any`: whatever a function has."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def value(self, node: ast.AST, names: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one line a kind of node
        """Return the value of a node."""
        self._charge()
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name, names)
            case ast.Attribute(value=owner, attr=name):
                return self._field(self.value(owner, names), name)
            case ast.Subscript(value=owner, slice=key):
                return self._item(self.value(owner, names), self.value(key, names))
            case ast.Slice():
                ends = (node.lower, node.upper, node.step)
                return slice(
                    *(None if end is None else self._whole(self.value(end, names)) for end in ends)
                )
            case ast.BinOp(left=left, op=op, right=right):
                return self._compute(
                    op, self._plain(self.value(left, names)), self._plain(self.value(right, names))
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.truth(self.value(operand, names))
            case ast.UnaryOp(op=op, operand=operand):
                return _OPERATORS[type(op)](self._plain(self.value(operand, names)))
            case ast.BoolOp(op=op, values=values):
                return self._first(values, names, until=isinstance(op, ast.Or))
            case ast.Compare():
                return self._compare(node, names)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.value(body if self.truth(self.value(test, names)) else otherwise, names)
            case ast.List(elts=parts):
                return self._parts(parts, names)
            case ast.Tuple(elts=parts):
                return tuple(self._parts(parts, names))
            case ast.Set(elts=parts):
                return set(self._keys(self._parts(parts, names)))
            case ast.Dict(keys=keys, values=values):
                named = [key for key in keys if key is not None]
                if len(named) < len(values):
                    raise Unreadable(f"{_READS}: it does not merge dictionaries with `**`")
                rows = zip(named, values, strict=True)
                return self._dict(
                    [(self.value(key, names), self.value(item, names)) for key, item in rows]
                )
            case ast.JoinedStr(values=parts):
                return self._short("".join(self._text(part, names) for part in parts))
            case (
                ast.ListComp(elt=part, generators=loops)
                | ast.GeneratorExp(elt=part, generators=loops)
            ):
                return [self.value(part, inner) for inner in self._loops(loops, names)]
            case ast.SetComp(elt=part, generators=loops):
                return set(
                    self._keys([self.value(part, inner) for inner in self._loops(loops, names)])
                )
            case ast.DictComp(key=key, value=item, generators=loops):
                found = self._loops(loops, names)
                return self._dict(
                    [(self.value(key, inner), self.value(item, inner)) for inner in found]
                )
            case ast.Call():
                return self._call(node, names)
        raise Unreadable(f"{_READS}: `{type(node).__name__}` is nothing that it evaluates")

    def truth(self, value: Any) -> bool:
        """Return whether a value is true."""
        kind = _base(value)
        if kind is None:
            raise Unreadable(
                f"whether a {type_name(value)} is true, its own code says: ask for a field, or `is None`"
            )
        return kind.__len__(value) > 0 if kind in _CONTAINERS else bool(self._plain(value))

    def _charge(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise Unreadable(f"{_READS}, in at most {MOST_STEPS:,} steps: this takes more")

    def _name(self, name: str, names: Mapping[str, Any]) -> Any:
        if name in names:
            return names[name]
        try:
            return vars(builtins)[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined") from None

    def _plain(self, value: Any, levels: int = _MOST_NESTED) -> Any:
        """Return a value with all that it contains, as values of the built-in types."""
        kind = _base(value)
        self._charge()
        if kind is None or (kind in (datetime, time) and not _is_plain_zone(value.tzinfo)):
            raise Unreadable(
                f"{_READS}, and computes with plain data: a {type_name(value)} has code of its own"
            )
        if kind in (str, bytes, bytearray):
            self._charge(kind.__len__(value) // _CHARS_A_STEP)
            return (
                str.__str__(self._short(value))
                if kind is str
                else bytes(self._short(kind.__getitem__(value, slice(None))))
            )
        if kind is int:
            if int.bit_length(value) > _MOST_BITS:
                raise Unreadable(f"{_READS}: this number is too large to compute with")
            return int.__pos__(value)
        if kind is float:
            return float.__pos__(value)
        if kind is Decimal and value.__sizeof__() > _MOST_DIGITS * 10:
            raise Unreadable(f"{_READS}: this number is too large to compute with")
        if kind not in _CONTAINERS or kind is range:
            return value
        if not levels:
            raise Unreadable(f"{_READS}: this value is nested too deep to compute with")
        self._charge(kind.__len__(value))
        if kind is dict:
            return {
                self._plain(key, levels - 1): self._plain(item, levels - 1)
                for key, item in dict.items(value)
            }
        items = [self._plain(item, levels - 1) for item in kind.__iter__(value)]
        return items if kind in (list, deque) else kind(items)

    def _short(self, text: Any) -> Any:
        if len(text) > _MOST_CHARS:
            raise Unreadable(
                f"{_READS}: a text of {len(text):,} characters is too long to compute with"
            )
        return text

    def _whole(self, value: Any) -> int | None:
        plain = self._plain(value)
        if plain is not None and type(plain) not in (int, bool):
            raise TypeError("an index is a whole number")
        return plain  # type: ignore[no-any-return]

    def _field(self, owner: Any, name: str) -> Any:
        kind = _base(owner)
        if kind is not None and type(owner) is kind and name in _FIELDS.get(kind, ()):
            return getattr(owner, name)
        if name == "__name__" and issubclass(type(owner), type):
            return _NAME(owner)
        if name.startswith("__"):
            raise Unreadable(
                f"{_READS}: `{name[:80]}` is none of the stored fields of a {type_name(owner)}"
            )
        stored = _stored(owner, name)
        if stored is _COMPUTED and name in ("name", "value"):
            stored = _stored(owner, f"_{name}_")  # of a member of an enumeration
        if stored is _COMPUTED:
            raise Unreadable(
                f"{_READS}: `{name[:80]}` of a {type_name(owner)} is code, and not a stored field"
            )
        if stored is _ABSENT:
            raise Unreadable(f"a {type_name(owner)} has no stored field `{name[:80]}`")
        return stored

    def _item(self, owner: Any, key: Any) -> Any:
        kind = _base(owner)
        if kind is dict:
            return self._of_dict(owner, key)
        if kind not in _SEQUENCES:
            raise Unreadable(f"{_READS}: what `[…]` of a {type_name(owner)} is, its own code says")
        if type(key) is slice:
            if kind is deque:
                raise TypeError("a deque has no slices")
            self._charge(
                len(range(*key.indices(kind.__len__(owner))))
                // (_CHARS_A_STEP if kind in (str, bytes, bytearray) else 1)
            )
            return kind.__getitem__(owner, key)
        return kind.__getitem__(owner, self._whole(key))

    def _of_dict(self, owner: Any, key: Any, *default: Any) -> Any:
        """Return the item of a key. The keys are gone through: looking one up would run the code of others."""
        wanted = self._plain(key)
        hash(wanted)
        for stored, item in dict.items(owner):
            self._charge()
            if _base(stored) in (None, frozenset, tuple):
                try:
                    stored = self._plain(stored)
                except Unreadable:
                    continue
            elif type(stored) is not type(wanted):
                stored = self._plain(stored)
            if stored == wanted:
                return item
        if default:
            return default[0]
        raise KeyError(wanted)

    def _compute(self, op: ast.operator, left: Any, right: Any) -> Any:
        sizes = [len(side) for side in (left, right) if type(side) in _SEQUENCES]
        numbers = [side for side in (left, right) if type(side) in _NUMBERS]
        bits = [int(side).bit_length() for side in numbers if type(side) in (int, bool)]
        match op:
            case ast.Mod() if type(left) in (str, bytes):
                raise Unreadable(f"{_READS}: it formats with f-strings alone")
            case ast.Pow() if len(bits) == 2 and right > 0 and bits[0] * right > _MOST_BITS:
                raise Unreadable(f"{_READS}: this number is too large to compute with")
            case ast.Pow() if len(numbers) < 2:
                raise Unreadable(f"{_READS}: it takes powers of numbers")
            case ast.LShift() if len(bits) == 2 and right > _MOST_BITS:
                raise Unreadable(f"{_READS}: this number is too large to compute with")
            case ast.Mult() if sizes and bits:
                self._charge(max(0, sizes[0] * int(numbers[0])))
            case ast.Add():
                self._charge(sum(sizes) // (_CHARS_A_STEP if type(left) in (str, bytes) else 1))
        return _OPERATORS[type(op)](left, right)

    def _compare(self, node: ast.Compare, names: Mapping[str, Any]) -> bool:
        left = self.value(node.left, names)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand, names)
            match op:
                case ast.Is() | ast.IsNot():
                    is_so = (left is right) is isinstance(op, ast.Is)
                case ast.In() | ast.NotIn():
                    is_so = self._contains(right, left) is isinstance(op, ast.In)
                case _:
                    is_so = bool(_OPERATORS[type(op)](self._plain(left), self._plain(right)))
            if not is_so:
                return False
            left = right
        return True

    def _contains(self, owner: Any, item: Any) -> bool:
        if _base(owner) is dict:
            return self._of_dict(owner, item, _ABSENT) is not _ABSENT
        return bool(operator.contains(self._plain(owner), self._plain(item)))

    def _first(self, nodes: list[ast.expr], names: Mapping[str, Any], *, until: bool) -> Any:
        value: Any = None
        for node in nodes:
            value = self.value(node, names)
            if self.truth(value) is until:
                break
        return value

    def _parts(self, nodes: list[ast.expr], names: Mapping[str, Any]) -> list[Any]:
        parts: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                parts.extend(self._items(self.value(node.value, names)))
            else:
                parts.append(self.value(node, names))
        return parts

    def _items(self, owner: Any) -> Iterator[Any]:
        kind = _base(owner)
        if kind not in _CONTAINERS:
            raise Unreadable(f"{_READS}: what a {type_name(owner)} goes through, its own code says")
        for item in kind.__iter__(owner):
            self._charge()
            yield item

    def _keys(self, keys: list[Any]) -> list[Any]:
        if len(keys) > _MOST_KEYS:
            raise Unreadable(
                f"{_READS}: it makes sets and dictionaries of up to {_MOST_KEYS:,} keys"
            )
        return [self._plain(key) for key in keys]

    def _dict(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        keys = self._keys([key for key, _ in pairs])
        return dict(zip(keys, (item for _, item in pairs), strict=True))

    def _loops(
        self, loops: list[ast.comprehension], names: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        loop, *inner_loops = loops
        for item in self._items(self.value(loop.iter, names)):
            own: dict[str, Any] = {}
            self._bind(loop.target, item, own)
            inner = ChainMap(own, names)  # type: ignore[arg-type]  # only its first mapping is written to
            if all(self.truth(self.value(test, inner)) for test in loop.ifs):
                if inner_loops:
                    yield from self._loops(inner_loops, inner)
                else:
                    yield inner

    def _bind(self, target: ast.expr, item: Any, own: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                own[name] = item
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, piece in zip(parts, [*self._items(item)], strict=True):
                    self._bind(part, piece, own)
            case _:
                raise Unreadable(f"{_READS}: a loop in it binds names alone")

    def _call(self, node: ast.Call, names: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one case a function
        given = self._parts(node.args, names)
        if any(word.arg is None for word in node.keywords):
            raise Unreadable(f"{_READS}: it does not give arguments with `**`")
        options = {
            str(word.arg): self._plain(self.value(word.value, names)) for word in node.keywords
        }
        if isinstance(node.func, ast.Attribute):
            return self._method(self.value(node.func.value, names), node.func.attr, given, options)
        assert isinstance(node.func, ast.Name)  # as `check` found
        name = node.func.id
        if name in names and names[name] is not _FUNCTIONS[name]:
            raise Unreadable(
                f"{_READS}: it does not call `{name}`, which is the function's own here"
            )
        if name in _GOING_THROUGH:
            return self._gone_through(name, given, options)
        match name, given:
            case "isinstance", [value, kinds]:
                wanted = self._items(kinds) if _base(kinds) is tuple else [kinds]
                return any(kind is one for one in wanted for kind in _MRO(type(value)))
            case "next", [_, *_]:
                return self._next(node, given)
            case "bool", [value]:
                return self.truth(value)
            case "type", [value]:
                return type(value)
            case "len", [value] if _base(value) in _CONTAINERS:
                return _base(value).__len__(value)
            case (("str" | "repr"), [value]):
                return self._as_text(value, name)
            case "round", [_, digits, *_] if abs(self._whole(digits) or 0) > _MOST_DIGITS:
                raise Unreadable(f"{_READS}: it rounds to up to {_MOST_DIGITS} digits")
            case "type" | "str" | "repr" | "bool" | "isinstance" | "next", _:
                raise Unreadable(f"{_READS}: it does not call `{name}` with these arguments")
        plain = [self._plain(value) for value in given]
        if name == "sum" and (len(plain) != 1 or options):
            raise Unreadable(f"{_READS}: `sum` takes one list of numbers here")
        if name == "round" and plain and type(plain[0]) not in (bool, int, float):
            raise Unreadable(f"{_READS}: it rounds whole numbers and floats")
        if name == "int" and any(type(each) is Decimal for each in plain):
            plain = [self._moderate(each) if type(each) is Decimal else each for each in plain]
        made = _FUNCTIONS[name](*plain, **options)
        return self._moderate(made) if name == "Decimal" else made

    def _moderate(self, number: Decimal) -> Decimal:
        if number.is_finite() and abs(number.adjusted()) > _MOST_EXPONENT:
            raise Unreadable(f"{_READS}: this number is too large to compute with")
        return number

    def _gone_through(self, name: str, given: list[Any], options: dict[str, Any]) -> Any:
        """Return what a function makes of the items of its arguments, whatever these are."""
        if name == "zip":
            return [*zip(*[[*self._items(each)] for each in given], **options)]  # noqa: B905 - as it says
        owner, *rest = given or [()]
        items = (
            [*dict.items(owner)]
            if name == "dict" and _base(owner) is dict
            else [*self._items(owner)]
        )
        if name == "enumerate":
            return [*enumerate(items, *map(self._plain, rest), **options)]
        if rest:
            raise TypeError(f"{name} takes one value")
        match name:
            case "dict":
                pairs = [(key, item) for key, item in (self._items(pair) for pair in items)]
                return self._dict([*pairs, *options.items()])
            case "reversed":
                return items[::-1]
            case "set" | "frozenset":
                items = self._keys(items)
        return _FUNCTIONS[name](items, **options)

    def _next(self, node: ast.Call, given: list[Any]) -> Any:
        if not isinstance(node.args[0], ast.GeneratorExp):
            raise Unreadable(f"{_READS}: `next` takes a generator expression here")
        items, *default = given
        if not (items or default):
            raise ValueError("there is no item")
        return [*items, *default][0]

    def _method(self, owner: Any, name: str, given: list[Any], options: dict[str, Any]) -> Any:
        kind = _base(owner)
        if kind is None or name not in _METHODS.get(kind, ()):
            raise Unreadable(f"{_READS}: it does not call `{name[:80]}` of a {type_name(owner)}")
        if kind is not dict:
            return getattr(kind, name)(self._plain(owner), *map(self._plain, given), **options)
        if name == "get":
            key, *default = given
            return self._of_dict(owner, key, *(default or [None]))
        self._charge(dict.__len__(owner))
        return [*getattr(dict, name)(owner)]

    def _text(self, node: ast.AST, names: Mapping[str, Any]) -> str:
        if not isinstance(node, ast.FormattedValue):
            return str(self.value(node, names))
        value = self.value(node.value, names)
        form = "" if node.format_spec is None else str(self.value(node.format_spec, names))
        if node.conversion != -1 or not form:
            value = self._as_text(value, "str" if node.conversion in (-1, ord("s")) else "repr")
        plain = self._plain(value)
        figures = "".join(
            mark if mark.isdecimal() else " " for mark in form[: _MOST_DIGITS + 1]
        ).split()
        is_wide = len(form) > _MOST_DIGITS or any(
            len(figure) > 3 or int(figure) > _MOST_DIGITS for figure in figures
        )
        if is_wide or (form and type(plain) not in (str, bool, int, float, *_MOMENTS)):
            raise Unreadable(
                f"{_READS}: `{form[:80]}` is no format that it knows for a {type_name(value)}"
            )
        return format(plain, form)

    def _as_text(self, value: Any, how: str) -> str:
        try:
            plain = self._plain(value)
        except Unreadable:
            if how == "str" and _base(value) in (datetime, time):
                raise
            return told(value)
        return str(self._short((str if how == "str" else repr)(plain)))


class _Mark:
    pass


_ABSENT, _COMPUTED = _Mark(), _Mark()


def _base(value: Any) -> Any:  # Any: any value of a function; a type or None
    """Return the built-in type whose own methods read a value, or None for an object with code of its own."""
    kind = type(value)
    if id(kind) in _EXACT:
        return kind
    return next((base for base in _MRO(kind) if id(base) in _INHERITED), None)


def _namespaces(value: Any) -> Iterator[Mapping[str, Any]]:  # Any: as above
    """Yield where a value stores its fields, and then what its classes have."""
    if issubclass(type(value), type):
        yield from map(_NAMESPACE, _MRO(value))
    of_class = [*map(_NAMESPACE, _MRO(type(value)))]
    own: Any = next((space["__dict__"] for space in of_class if "__dict__" in space), None)
    if type(own) in (GetSetDescriptorType, MemberDescriptorType) and not issubclass(
        type(value), type
    ):
        fields = own.__get__(value)
        if type(fields) is dict:
            yield fields
    yield from of_class


def _stored(value: Any, name: str) -> Any:  # Any: as above
    """Return a stored field, or that it is computed or absent."""
    members = (
        _first_in(value, "_member_map_") if issubclass(type(value), type) else None
    )  # of an enumeration
    if type(members) is dict and name in members:
        return members[name]
    found = _first_in(value, name)
    if type(found) in _SLOTS:
        try:
            return found.__get__(value, type(value))
        except (AttributeError, TypeError):
            return _ABSENT
    is_code = any("__get__" in _NAMESPACE(kind) for kind in _MRO(type(found)))
    return _COMPUTED if is_code else found


def _first_in(value: Any, name: str) -> Any:  # Any: as above
    for space in _namespaces(value):
        for key, item in space.items():
            if type(key) is str and key == name:
                return item
    return _ABSENT


def told(value: Any, levels: int = _SHOWN_LEVELS) -> str:  # Any: as above
    """Return a short text of a value: plain data as Python writes it, anything else by its type and stored fields."""
    kind = _base(value)
    if kind in (str, bytes, bytearray):
        cut = kind.__getitem__(value, slice(_SHOWN_CHARS))
        return repr(cut) + ("…" if kind.__len__(value) > _SHOWN_CHARS else "")
    if kind is int and int.bit_length(value) > _MOST_BITS // 10:
        return f"<int of {int.bit_length(value)} bits>"
    if kind is range or (
        kind not in _CONTAINERS and type(value) is kind and not _is_long_decimal(value)
    ):
        if kind not in (datetime, time) or _is_plain_zone(value.tzinfo):
            return repr(value)
        return f"{repr(value.replace(tzinfo=None))[:-1]}, tzinfo={told(value.tzinfo, levels - 1)})"
    if not levels:
        return "…"
    return _container(value, kind, levels) if kind in _CONTAINERS else _object(value, levels)


def _is_plain_zone(zone: Any) -> bool:  # Any: as above
    """Return whether a time zone has no code of a function: what a moment asks of it is built in, as of `ZoneInfo`."""
    if type(zone) in (NoneType, timezone):
        return True
    spaces = [*map(_NAMESPACE, _MRO(type(zone)))]
    found = [next((space[name] for space in spaces if name in space), None) for name in _OF_A_ZONE]
    return all(type(each) in (MethodDescriptorType, WrapperDescriptorType) for each in found)


def _is_long_decimal(value: Any) -> bool:  # Any: as above
    return type(value) is Decimal and value.__sizeof__() > _MOST_DIGITS * 10


_OF_A_ZONE: Final = (
    "utcoffset",
    "dst",
    "tzname",
    "__repr__",
    "__str__",
    "__eq__",
    "__hash__",
    "__getattribute__",
)
_BRACKETS: Final = {tuple: ("(", ")"), dict: ("{", "}"), set: ("{", "}"), frozenset: ("{", "}")}


def _container(value: Any, kind: Any, levels: int) -> str:  # Any: a container, and its type
    if kind is dict:
        pairs = islice(dict.items(value), _SHOWN_ITEMS)
        items = [f"{told(key, levels - 1)}: {told(item, levels - 1)}" for key, item in pairs]
    else:
        items = [told(item, levels - 1) for item in islice(kind.__iter__(value), _SHOWN_ITEMS)]
    begin, end = _BRACKETS.get(kind, ("[", "]"))
    if kind is tuple and len(items) == 1:
        end = ",)"
    items = [*items, "…"] if kind.__len__(value) > len(items) else items
    text = f"{begin}{', '.join(items)}{end}"
    return (
        text
        if kind in (list, tuple, dict) and type(value) is kind
        else f"{type_name(value)}({text})"
    )


def _object(value: Any, levels: int) -> str:
    name = type_name(value)
    if issubclass(type(value), type):
        return f"<class {_NAME(value)}>"
    if issubclass(type(value), ModuleType):
        return f"<module {told(_stored(value, '__name__'))}>"
    fields: dict[str, str] = {}
    for space in _namespaces(value):
        for field, item in islice(space.items(), 1_000):
            is_own = type(space) is dict or (type(item) in _SLOTS and "__slots__" in space)
            if (
                type(field) is str
                and is_own
                and not field.startswith("__")
                and len(fields) < _SHOWN_ITEMS
            ):
                stored = _stored(value, field)
                if stored is not _ABSENT and stored is not _COMPUTED:
                    fields.setdefault(field, told(stored, levels - 1))
    return f"<{' '.join([name, ', '.join(f'{field}={text}' for field, text in fields.items())]).strip()}>"
