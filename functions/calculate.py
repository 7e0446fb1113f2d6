"""Numbers: exact arithmetic, units and summaries; no result is rounded unless asked."""

import ast
import operator
import statistics
from decimal import Decimal, localcontext
from fractions import Fraction

_SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod}
_OPERATIONS = {**_SIGNS, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv}
# How much of each kind's first unit one of a unit is.
_UNITS = {
    "length": "m 1 km 1000 cm 0.01 mm 0.001 mi 1609.344 yd 0.9144 ft 0.3048 in 0.0254",
    "mass": "kg 1 g 0.001 mg 0.000001 t 1000 lb 0.45359237 oz 0.028349523125",
    "time": "s 1 ms 0.001 min 60 h 3600 d 86400 week 604800",
    "volume": "l 1 ml 0.001 m3 1000 gal 3.785411784 cup 0.2365882365",
    "data": "B 1 kB 1000 MB 1000000 GB 1000000000 KiB 1024 MiB 1048576 GiB 1073741824",
}


def evaluate(expression: str, places: int = 12) -> str:
    """Work out an arithmetic expression exactly.

    Args:
        expression: Numbers with + - * / // % ** and parentheses, such as "0.1 + 0.2".
        places: Digits after the point where the result has no end, such as 1/3.

    Returns:
        The result in decimal notation.

    Raises:
        ValueError: The expression holds anything but numbers and operators.

    Examples:
        >>> evaluate("0.1 + 0.2")
        '0.3'
        >>> evaluate("10 / 4 - 1 / 3", places=4)
        '2.1667'
    """
    return _decimal_text(_value(ast.parse(expression.strip(), mode="eval").body), places)


def convert_unit(amount: Decimal, unit: str, to_unit: str) -> Decimal:
    """Convert an amount between units of length, mass, time, volume or data.

    Args:
        amount: The amount to convert.
        unit: The unit it is in: m km cm mm mi yd ft in, kg g mg t lb oz, s ms min h d week,
            l ml m3 gal cup, B kB MB GB KiB MiB GiB.
        to_unit: The unit wanted, of the same kind.

    Returns:
        The amount in the wanted unit, to 20 digits.

    Raises:
        ValueError: A unit is unknown, or the two are of different kinds.

    Examples:
        >>> convert_unit(Decimal("26.2"), "mi", "km")
        Decimal('42.1648128')
        >>> convert_unit(Decimal(1), "kg", "km")
        Traceback (most recent call last):
        ValueError: cannot convert 'kg' to 'km'
    """
    for units in _UNITS.values():
        words = units.split()
        factors = dict(zip(words[::2], map(Decimal, words[1::2]), strict=True))
        if unit in factors and to_unit in factors:
            with localcontext(prec=20):
                return (amount * factors[unit] / factors[to_unit]).normalize() + 0
    raise ValueError(f"cannot convert {unit!r} to {to_unit!r}")


def summarise_numbers(numbers: list[float]) -> dict[str, float]:
    """Describe a list of numbers: count, sum, mean, median, spread and extremes.

    Args:
        numbers: At least one number.

    Returns:
        The figures by name; "deviation" is the population standard deviation.

    Examples:
        >>> summarise_numbers([2, 4, 9])["median"]
        4
        >>> summarise_numbers([1.5, 2.5])
        {'count': 2, 'sum': 4.0, 'least': 1.5, 'greatest': 2.5, 'mean': 2.0, 'median': 2.0, 'deviation': 0.5}
    """
    figures = {"count": len(numbers), "sum": sum(numbers), "least": min(numbers), "greatest": max(numbers)}
    middle = {"mean": statistics.fmean(numbers), "median": statistics.median(numbers)}
    return {**figures, **middle, "deviation": statistics.pstdev(numbers)}


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return Fraction(str(node.value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            base, exponent = _value(left), _value(right)
            if exponent.denominator != 1 or abs(exponent) > 10_000:
                raise ValueError("a power must be a whole number of at most 10000")
            return base ** int(exponent)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return Fraction(_OPERATIONS[type(operation)](_value(left), _value(right)))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is neither a number nor one of + - * / // % **")


def _decimal_text(value: Fraction, places: int) -> str:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if value.denominator == 1:
        return str(value.numerator)
    with localcontext(prec=len(str(abs(value.numerator))) + 4 * len(str(value.denominator)) + places):
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
        return f"{quotient.normalize():f}" if rest == 1 else f"{quotient:.{places}f}"
