"""Texts with paths in braces."""

import json
import re

from .paths import look_up, shown

PLACE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")


def fill(template, data, limit):
    """Return the template with the values of its paths, of at most limit characters."""
    parts, end = [], 0
    for place in PLACE.finditer(template):
        parts += template[end : place.start()], filling(place, data)
        end = place.end()
    parts.append(template[end:])
    if sum(map(len, parts)) > limit:
        raise LookupError(f"the text would have more than {limit} characters")
    return "".join(parts)


def filling(place, data):
    if place[1]:
        return text_of(place[1], look_up(data, place[1]))
    if len(place[0]) == 2:
        return place[0][0]
    raise LookupError(f"the template has a single brace at {place.start()}: write {{{{ or }}}} for one")


def text_of(path, value):
    if isinstance(value, (dict, list)):
        raise LookupError(f"{shown(path)} is neither text, number nor boolean, so that it has no place in a template")
    return value if isinstance(value, str) else json.dumps(value)
