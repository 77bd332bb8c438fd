"""What a server of tools writes, read as if it meant harm: lines, and the messages in them."""

import json
import os
import re

LINE_BYTES = 16 << 20
DEEPEST = 64  # levels of a message
MOST_VALUES = 500_000  # in a message, so that what is built of it stays within some 100 MiB
PART_BYTES = 64 << 10

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]|,', re.DOTALL)


class Breach(Exception):
    """A bound was broken: nothing more of this is read."""


def lines(descriptor):
    """Yield the lines of a descriptor, without their ends; Breach for one that is too long."""
    rest = bytearray()
    while part := os.read(descriptor, PART_BYTES):
        *ended, last = part.split(b"\n")
        for line in ended:
            _bound(len(rest) + len(line))
            yield bytes(rest) + line
            rest.clear()
        rest += last
        _bound(len(rest))
    if rest:
        yield bytes(rest)


def message(line):
    """Return the JSON object in a line, None if there is none; Breach if it is too deep or too large."""
    line = line.strip()
    if not line.startswith(b"{"):
        return None
    _measure(line)
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _bound(size):
    if size > LINE_BYTES:
        raise Breach(f"it wrote a line of over {LINE_BYTES >> 20} MiB")


def _measure(line):
    """Count levels and values before anything is built of them."""
    depth = values = 0
    for token in _TOKEN.finditer(line):
        first = token[0][:1]
        if first == b'"':
            continue
        values += first not in b"]}"
        depth += (first in b"[{") - (first in b"]}")
        if depth > DEEPEST:
            raise Breach(f"it wrote a message of over {DEEPEST} levels")
        if values > MOST_VALUES:
            raise Breach(f"it wrote a message of over {MOST_VALUES} values")
