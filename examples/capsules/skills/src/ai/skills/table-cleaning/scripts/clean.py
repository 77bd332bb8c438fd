"""Clean a CSV table: clean.py TABLE CLEANED."""

import csv
import datetime
import sys


def main(source, target):
    with open(source, newline="", encoding="utf-8-sig") as file:
        header, *rows = [[_cell(cell) for cell in row] for row in csv.reader(file)]
    filled = [row for row in rows if any(row)]
    kept = list(dict.fromkeys(map(tuple, filled)))
    with open(target, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *kept])
    print(f"{len(kept)} rows kept; dropped: {len(rows) - len(filled)} empty, {len(filled) - len(kept)} that stood twice")


def _cell(text):
    text = " ".join(text.split())
    for form in ("%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d"):
        try:
            return datetime.datetime.strptime(text, form).date().isoformat()
        except ValueError:
            pass
    return text


if __name__ == "__main__":
    main(*sys.argv[1:])
