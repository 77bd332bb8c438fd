"""Words out of tesseract's table."""

from collections import namedtuple
from itertools import groupby

WORD = "5"  # the level of a row that is a word
FIELDS = 12


class Word(namedtuple("Word", "line text confidence bbox")):
    def as_region(self):
        return {"text": self.text, "confidence": self.confidence, "bbox": self.bbox}


def regions(table):
    """Return the words in the order of reading."""
    rows = (row.split("\t") for row in table.splitlines()[1:])
    return [word(fields) for fields in rows if len(fields) == FIELDS and fields[0] == WORD and fields[11].strip()]


def word(fields):
    left, top, width, height = map(int, fields[6:10])
    confidence = min(1.0, max(0.0, float(fields[10]) / 100))
    return Word(tuple(fields[1:5]), fields[11].strip(), round(confidence, 2), [left, top, left + width, top + height])


def text_of(words):
    """Return the text with tesseract's lines."""
    return "\n".join(" ".join(word.text for word in line) for _, line in groupby(words, key=lambda word: word.line))
