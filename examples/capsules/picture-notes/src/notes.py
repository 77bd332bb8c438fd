"""A note of one picture, as Markdown."""

import re
from collections import namedtuple

Unreadable = namedtuple("Unreadable", "markdown readable words doubtful")


class Note:
    readable = True

    def __init__(self, name, reading, sure):
        doubts = [region["text"] for region in reading["regions"] if region["confidence"] < sure]
        self.words, self.doubtful = len(reading["regions"]), len(doubts)
        said = "\n".join(f"> {plain(line)}  " for line in reading["text"].split("\n")) if reading["text"] else "No text."
        self.markdown = f"## {plain(name)}\n\n{said}\n"
        if doubts:
            self.markdown += "\nDoubtful: " + ", ".join(plain(word) for word in doubts) + "\n"


def unreadable(name):
    return Unreadable(f"## {plain(name)}\n\nIt can't be read.\n", False, 0, 0)


def plain(text):
    """Return text of a stranger's as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>#|!&])", r"\\\1", " ".join(text.split()))
