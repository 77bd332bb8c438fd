"""Statistics of columns and groups, over values that arrive one by one."""

import math
import re
from array import array

import aod

MAX_GROUPS = 1000
MISSING = {"", "-", "?", "n/a", "na", "nan", "none", "null"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
DIGITS = 6  # behind the point, of everything that is computed


class Column:
    """One column: numbers, as long as nothing else turns up in it."""

    def __init__(self, name, decimal_comma):
        self.name = name
        self.count = 0
        self.values = array("d")
        self._decimal_comma = decimal_comma
        self._is_text = False

    @property
    def is_number(self):
        return self.count > 0 and not self._is_text

    def add(self, text):
        """Take in one field; return its number, None if it has none."""
        text = text.strip()
        if text.lower() in MISSING:
            return None
        self.count += 1
        if self._is_text:
            return None
        number = parse_number(text, self._decimal_comma)
        if number is None:
            self._is_text = True
            self.values = array("d")
            return None
        self.values.append(number)
        return number


class Groups:
    """Rows and sums for each value of one column."""

    def __init__(self, name):
        self.name = name
        self._groups = {}  # value -> [rows, {column index: [count, sum]}]

    def add(self, value, numbers):
        group = self._groups.setdefault(value.strip(), [0, {}])
        if len(self._groups) > MAX_GROUPS:
            raise aod.CapsuleError(f"{self.name!r} has more than {MAX_GROUPS} different values")
        group[0] += 1
        for index, number in enumerate(numbers):
            if number is not None:
                total = group[1].setdefault(index, [0, 0.0])
                total[0] += 1
                total[1] += number

    def means(self, index):
        """Return (value, mean) of one column for every group that has one."""
        return [(value, sums[index][1] / sums[index][0]) for value, (_, sums) in sorted(self._groups.items()) if index in sums]

    def describe(self, columns):
        return [
            {
                "value": value,
                "rows": rows,
                "means": {columns[i].name: rounded(total / n) for i, (n, total) in sorted(sums.items()) if columns[i].is_number},
            }
            for value, (rows, sums) in sorted(self._groups.items())
        ]


def describe(column, rows):
    kind = "number" if column.is_number else "text" if column.count else "empty"
    summary = {"name": column.name, "kind": kind, "count": column.count, "missing": rows - column.count}
    if kind == "number":
        summary |= numbers_summary(column.values)
    return summary


def numbers_summary(values):
    ordered = sorted(values)
    mean = math.fsum(ordered) / len(ordered)
    spread = math.fsum((value - mean) ** 2 for value in ordered)
    summary = {
        "mean": mean,
        "stdev": math.sqrt(spread / (len(ordered) - 1)) if len(ordered) > 1 else 0.0,
        "min": ordered[0],
        "q1": quantile(ordered, 0.25),
        "median": quantile(ordered, 0.5),
        "q3": quantile(ordered, 0.75),
        "max": ordered[-1],
    }
    return {name: rounded(value) for name, value in summary.items()}


def quantile(ordered, share):
    """Return the quantile, with a straight line between neighbours."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def parse_number(text, decimal_comma):
    """Return the number; None for anything else, or one too large to compute with."""
    if decimal_comma and "." not in text:
        text = text.replace(",", ".", 1)
    if len(text) > 100 or not NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if abs(number) < 1e100 else None


def rounded(value):
    return round(value, DIGITS) + 0.0  # no -0.0
