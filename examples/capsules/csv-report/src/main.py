import aod

from .chart import bars, histogram
from .stats import Column, Groups, describe
from .table import Table

CHART = "chart.svg"


def execute(payload: dict) -> dict:
    table = Table(aod.input_path(payload["table"]))
    aod.log(f"{len(table.header)} columns, {table.encoding}")
    group_index = table.index(payload["group_by"]) if "group_by" in payload else None
    columns, groups, rows = read(table, group_index)
    drawn = choose(table, columns, payload.get("chart_column"))
    with open(aod.output_path(CHART), "w", encoding="utf-8") as file:
        file.write(draw(columns[drawn], groups, drawn))
    report = {
        "rows": rows,
        "format": {"encoding": table.encoding, "delimiter": table.delimiter},
        "columns": [describe(column, rows) for column in columns],
        "chart": CHART,
    }
    if groups:
        report["groups"] = groups.describe(columns)
    return report


def read(table, group_index):
    """Read the table once, row by row."""
    columns = [Column(name, table.decimal_comma) for name in table.header]
    groups = None if group_index is None else Groups(table.header[group_index])
    rows = 0
    for row in table.rows():
        rows += 1
        numbers = [column.add(text) for column, text in zip(columns, row)]
        if groups:
            groups.add(row[group_index], numbers)
    if not rows:
        raise aod.CapsuleError("the table has a header and no rows")
    return columns, groups, rows


def choose(table, columns, wanted):
    """Return the index of the column to draw."""
    if wanted is not None:
        index = table.index(wanted)
        if not columns[index].is_number:
            raise aod.CapsuleError(f"the column {wanted!r} holds no numbers")
        return index
    for index, column in enumerate(columns):
        if column.is_number:
            return index
    raise aod.CapsuleError("no column of the table holds numbers")


def draw(column, groups, index):
    if groups:
        return bars(f"Mean {column.name} by {groups.name}", groups.means(index))
    return histogram(f"Distribution of {column.name}", column.name, column.values)
