"""Counts the words of a text."""

import re
from collections import Counter

WORD = re.compile(r"\w+(?:['’-]\w+)*")


def execute(payload: dict) -> dict:
    words = WORD.findall(payload["text"].casefold())
    if not words:
        raise ValueError("the text holds no word")
    counts = Counter(words)
    return {
        "words": len(words),
        "distinct": len(counts),
        "top": most_frequent(counts, payload["top"]),
    }


def most_frequent(counts: Counter, limit: int) -> list:
    """The most frequent words first; those of one count in alphabetical order."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"word": word, "count": count} for word, count in ranked[:limit]]
