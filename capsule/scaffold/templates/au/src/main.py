"""An Agentic Unit: a text on stdin, its words as JSON on stdout."""

import json
import sys

MAX_BYTES = 1 << 20

CARD = {
    "name": "{{NAME}}",
    "version": "0.1.0",
    "description": "Counts the words of a text.",
    "capabilities": ["count"],
    "inputs": [{"media_type": "text/plain", "description": "UTF-8, at most 1 MiB"}],
    "outputs": [{"media_type": "application/json", "description": "words, the number of words"}],
    "config": {
        "min-length": {"type": "integer", "description": "shorter words don't count", "default": 1},
    },
}


class Refused(Exception):
    """What the caller can mend. Its text repeats nothing of what was given: it may be a secret."""


def arguments(given):
    """Returns the shortest length of a word."""
    if not given:
        return 1
    flag, _, value = given[0].partition("=")
    rest = given[1:] if "=" in given[0] else given[2:]
    if flag != "--min-length" or rest:
        raise Refused("expected --min-length N, or --describe alone")
    if "=" not in given[0] and len(given) == 2:
        value = given[1]
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise Refused("--min-length takes a whole number")
    return int(value)


def words(raw, shortest):
    """The result for a text."""
    if len(raw) > MAX_BYTES:
        raise Refused("the input is larger than 1 MiB")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("the input is not text in UTF-8") from None
    if not text.strip():
        raise Refused("the input has no text")
    return {"words": sum(len(word) >= shortest for word in text.split())}


def main(given, stdin, stdout, stderr):
    """Returns the exit code: 0, or 2 for an input or an argument that can't be."""
    if given == ["--describe"]:
        print(json.dumps(CARD, indent=2), file=stdout)
        return 0
    try:
        shortest = arguments(given)
        raw = stdin.read(MAX_BYTES + 1)
        print(json.dumps(words(raw, shortest)), file=stdout)
    except Refused as problem:
        print("Error:", problem, file=stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout, sys.stderr))
