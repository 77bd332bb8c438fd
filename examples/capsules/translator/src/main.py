import json

import aod

from .paths import look_up, put, shown
from .template import fill

MAX_BYTES = 1024 * 1024  # of the result: a short map may copy a long text many times


def execute(payload: dict) -> dict:
    translated, size = {}, 0
    for path, rule in payload["map"].items():
        try:
            document = json.dumps(value_of(rule, payload["data"]))
            size += len(document)
            if size > MAX_BYTES:
                raise LookupError(f"the result would have more than {MAX_BYTES} bytes")
            # Parsed again it is a copy, so that what is put below it stays out of the data.
            put(translated, path, json.loads(document))
        except LookupError as error:
            raise aod.CapsuleError(f"map, {shown(path)}: {error.args[0]}") from None
    return {"data": translated}


def value_of(rule, data):
    if isinstance(rule, str):
        return look_up(data, rule)
    if "template" in rule:
        return fill(rule["template"], data, MAX_BYTES)
    return rule["const"]
