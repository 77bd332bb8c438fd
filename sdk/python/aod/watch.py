"""What a run can ask AOD about itself, and tell it."""

import json
import time

from aod import api

TEXT_BYTES = 1024  # of a step or a message
PROGRESS_SECONDS = 0.9


def progress(percent, step, message):
    """See aod.progress."""
    try:
        _send(_body(percent, step, message))
    except Exception:  # a run doesn't fail because nobody hears how it goes
        pass


def capsules(schema=None):
    """See aod.capsules. With "json" as the schema, contracts are plain JSON Schema."""
    _, answer = api.request("GET", f"/capsules?schema={schema}" if schema else "/capsules")
    named = answer.get("capsules")
    return named if isinstance(named, dict) else {}


def run_info():
    """See aod.run_info."""
    _, answer = api.request("GET", "/run")
    return answer


def _body(percent, step, message):
    body = {}
    if percent is not None:
        body["percent"] = min(max(float(percent), 0), 100)
    if step is not None:
        body["step"] = _short(step)
    if message is not None:
        body["message"] = _short(message)
    return json.dumps(body, allow_nan=False).encode()


def _short(text):
    return str(text).encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")


def _send(body):
    """Post it, and wait only until AOD has begun to answer."""
    end = time.monotonic() + PROGRESS_SECONDS
    exchange = api.Exchange("POST", "/progress", body, {"Content-Type": "application/json"}, seconds=PROGRESS_SECONDS / 3)
    try:
        exchange.begun(max(end - time.monotonic(), 0.01))
    finally:
        exchange.close()
