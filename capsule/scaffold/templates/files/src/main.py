"""Cleans a CSV file: one way to name columns, no stray spaces, no empty or double rows."""

import csv
import re
from collections import Counter

import aod

RESULT = "clean.csv"


def execute(payload: dict) -> dict:
    source, target = aod.input_path(payload["table"]), aod.output_path(RESULT)
    with open(source, newline="", encoding="utf-8-sig") as infile:
        with open(target, "w", newline="", encoding="utf-8") as outfile:
            columns, counts = clean(csv.reader(infile), csv.writer(outfile, lineterminator="\n"))
    aod.log(f"kept {counts['kept']} rows")
    return {
        "table": RESULT,
        "columns": columns,
        "rows": counts["kept"],
        "dropped": {"empty": counts["empty"], "duplicate": counts["duplicate"]},
    }


def clean(reader, writer) -> tuple:
    """Copy the rows that are worth keeping, one at a time; count the others."""
    header = next(reader, None)
    if not header:
        raise ValueError("the table has no header")
    columns = [column_name(cell, number) for number, cell in enumerate(header, 1)]
    writer.writerow(columns)

    counts, seen = Counter(), set()
    for row in reader:
        cells = tidy(row, len(columns), reader.line_num)
        kind = "empty" if not any(cells) else "duplicate" if cells in seen else "kept"
        counts[kind] += 1
        if kind == "kept":
            seen.add(cells)
            writer.writerow(cells)
    return columns, counts


def column_name(cell: str, number: int) -> str:
    """'Unit Price (EUR)' becomes 'unit_price_eur'; a column without a name gets its number."""
    return re.sub(r"\W+", "_", cell.strip().casefold()).strip("_") or f"column_{number}"


def tidy(row: list, width: int, line: int) -> tuple:
    """Strip the cells and fill the row up; one that is too long can't be understood."""
    if len(row) > width:
        raise ValueError(f"line {line} has {len(row)} cells, the header has {width}")
    return tuple(" ".join(cell.split()) for cell in row) + ("",) * (width - len(row))
