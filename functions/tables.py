"""Tables, in files or as text: CSV and JSON, columns chosen, rows sorted and summed up."""

import csv
import io
import json
from typing import Any


def csv_to_json(table: str, separator: str = ",") -> str:
    """Turn CSV into JSON. Of a CSV file or text, make JSON text, a list of objects whose values are texts.

    Args:
        table: The path of a CSV file, or CSV text; its first line names the columns.
        separator: What stands between the fields.

    Examples:
        >>> csv_to_json("name,age\\nAda,36\\n")
        '[{"name": "Ada", "age": "36"}]'
        >>> csv_to_json("a;b\\n1;x y\\n2;z", separator=";")
        '[{"a": "1", "b": "x y"}, {"a": "2", "b": "z"}]'
    """
    return json.dumps(_rows(table, separator=separator), ensure_ascii=False)


def json_to_csv(rows: str) -> str:
    """Turn JSON into CSV. Of JSON text, a list of objects, make CSV text.

    Args:
        rows: The JSON text; columns appear in the order in which they are first met.

    Returns:
        CSV text with a heading line; what a row lacks stays empty.

    Examples:
        >>> json_to_csv('[{"name": "Ada", "age": 36}, {"name": "Bob, jr."}]')
        'name,age\\nAda,36\\n"Bob, jr.",\\n'
        >>> json_to_csv('[{"a": 1}, {"b": 2}]')
        'a,b\\n1,\\n,2\\n'
    """
    found = json.loads(rows)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError("This is not a list of objects.")
    return _text(found)


def select_columns(table: str, columns: list[str]) -> str:
    """Keep some columns of a CSV file or text, in the order given.

    Args:
        table: The path of a CSV file, or CSV text; its first line names the columns.
        columns: Names of the columns to keep.

    Returns:
        CSV text with these columns only.

    Examples:
        >>> select_columns("a,b,c\\n1,2,3\\n", ["c", "a"])
        'c,a\\n3,1\\n'
        >>> select_columns("a,b\\n1,2\\n", ["d"])
        Traceback (most recent call last):
        ValueError: the table has no column 'd'; its first line is 'a,b'
    """
    rows = _rows(table, *columns)
    return _text([{column: row[column] for column in columns} for row in rows])


def sort_rows(table: str, column: str, descending: bool = False) -> str:
    """Sort the rows of a CSV file or text by a column, numbers by their value.

    Args:
        table: The path of a CSV file, or CSV text; its first line names the columns.
        column: Name of the column to sort by.
        descending: Put the greatest first.

    Examples:
        >>> sort_rows("name,age\\nAda,36\\nBob,9\\n", "age")
        'name,age\\nBob,9\\nAda,36\\n'
        >>> sort_rows("n\\nb\\na\\nc\\n", "n", descending=True)
        'n\\nc\\nb\\na\\n'
    """
    rows = _rows(table, column)
    return _text(sorted(rows, key=lambda row: _sort_key(row[column]), reverse=descending))


def sum_column(table: str, column: str) -> float:
    """Sum a column. Give the total of all rows of a CSV file or text.

    Args:
        table: The path of a CSV file, or CSV text; its first line names the columns.
        column: Name of the column of numbers to add up.

    Examples:
        >>> sum_column("item,paid\\ntea,2\\ncake,1.5\\n", "paid")
        3.5
        >>> sum_column("item,paid\\n", "paid")
        0.0
    """
    return sum((float(row[column]) for row in _rows(table, column)), 0.0)


def sum_by(table: str, group: str, column: str) -> dict[str, float]:
    """Sum by group. Group the rows of a CSV file or text by one column, and add up another for each.

    Args:
        table: The path of a CSV file, or CSV text; its first line names the columns.
        group: Name of the column whose values are the groups.
        column: Name of the column of numbers to add up.

    Returns:
        The sum for each group, in the order in which groups are met.

    Examples:
        >>> sum_by("city,paid\\nRome,2\\nOslo,5\\nRome,1.5\\n", "city", "paid")
        {'Rome': 3.5, 'Oslo': 5.0}
        >>> sum_by("city,paid\\n", "city", "paid")
        {}
    """
    sums: dict[str, float] = {}
    for row in _rows(table, group, column):
        sums[row[group]] = sums.get(row[group], 0.0) + float(row[column])
    return sums


def _rows(table: str, *columns: str, separator: str = ",") -> list[dict[str, str]]:
    if "\n" not in table and table.lower().endswith((".csv", ".txt")):
        with open(table, encoding="utf-8-sig", newline="") as file:
            table = file.read()
    reader = csv.DictReader(io.StringIO(table), delimiter=separator, restval="")
    named = reader.fieldnames or ()
    for column in columns:
        if column not in named:
            raise ValueError(f"the table has no column {column!r}; its first line is {table.partition(chr(10))[0]!r}")
    return list(reader)


def _text(rows: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _sort_key(value: str) -> tuple[bool, float, str]:
    try:
        return (False, float(value), value)
    except ValueError:
        return (True, 0.0, value)
