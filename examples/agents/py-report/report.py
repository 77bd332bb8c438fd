"""Reads a JSON document with numbers, and writes one with what they have in common."""

import argparse
import json
import statistics

options = argparse.ArgumentParser()
options.add_argument("--title", required=True)
options.add_argument("numbers")
options.add_argument("report")
given = options.parse_args()

with open(given.numbers, encoding="utf-8") as file:
    numbers = json.load(file)["numbers"]
report = {
    "title": given.title,
    "count": len(numbers),
    "mean": statistics.fmean(numbers),
    "median": statistics.median(numbers),
    "largest": max(numbers),
}
with open(given.report, "w", encoding="utf-8") as file:
    json.dump(report, file)
