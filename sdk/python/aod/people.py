"""Questions that a run asks people."""

import hashlib
import itertools
import json
import threading

from aod import api
from aod.errors import Denied

QUESTION_SECONDS = 7 * 24 * 3600  # the longest that a question can be open, and its request with it

_seen: dict[str, int] = {}  # how often each question was asked
_lock = threading.Lock()


class Reply:
    """A person's answer: answer, option, by, note."""

    def __init__(self, document):
        self.answer = document.get("answer")
        self.option = api.text(document, "option")
        self.by = api.text(document, "by")
        self.note = api.text(document, "note")

    def __repr__(self):
        return f"Reply(answer={self.answer!r}, option={self.option!r}, by={self.by!r}, note={self.note!r})"


def ask(text, kind, options, schema, timeout):
    """See aod.ask_person."""
    body = {"text": text, "kind": kind}
    if options:
        body["options"] = list(options)
    if schema is not None:
        body["schema"] = schema
    headers = {"Idempotency-Key": _key(body)}
    if timeout is not None:
        body["timeout"] = timeout if isinstance(timeout, str) else f"{timeout:.3f}s"
    _, document = api.request("POST", "/ask", body, headers, seconds=QUESTION_SECONDS, patience=QUESTION_SECONDS)
    denied = api.text(document, "denied")
    if denied:
        raise Denied(denied, by=api.text(document, "by"), note=api.text(document, "note"))
    return Reply(document)


def forget():
    """Begin to count again: the process serves another run."""
    _seen.clear()


def _key(body):
    """Return the key of a question: in another attempt of the run the same question has the same."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    with _lock:
        count = _seen.setdefault(digest, itertools.count(1))
        return f"ask/{digest[:40]}/{next(count)}"
