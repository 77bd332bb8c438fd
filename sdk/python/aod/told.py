"""What a run hears while it goes on, and what it shows before its end."""

import os
import time
import uuid

from aod import api, paths

WAIT_SECONDS = 30  # that AOD holds one request for messages at most


class Message:
    """Something that was said to the run: n (its number), id, role, parts, metadata, text, data."""

    def __init__(self, document):
        self.n = document.get("n")
        self.id = api.text(document, "id")
        self.role = api.text(document, "role")
        parts = document.get("parts")
        self.parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        metadata = document.get("metadata")
        self.metadata = metadata if isinstance(metadata, dict) else {}

    @property
    def text(self):
        """The texts of its parts, one after the other."""
        return "".join(api.text(part, "text") for part in self.parts)

    @property
    def data(self):
        """The data of the first of its parts that has some, None if none has."""
        return next((part["data"] for part in self.parts if "data" in part), None)

    def __repr__(self):
        return f"Message({self.n!r}, {len(self.parts)} parts)"


def messages(after, wait):
    """See aod.messages."""
    left = _seconds(wait)
    end = time.monotonic() + left
    while True:
        asked = min(max(left, 0), WAIT_SECONDS)
        path = f"/messages?after={int(after)}&wait={asked:.3f}s"
        _, document = api.request("GET", path, seconds=api.ANSWER_SECONDS + asked)
        found = document.get("messages")
        heard = [Message(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        left = end - time.monotonic()
        if heard or left <= 0:
            return heard


def artifact(text, data, file, artifact_id, name, media_type, append, last):
    """See aod.artifact."""
    body = {"append": bool(append), "last": bool(last)}
    for key, value in (("id", artifact_id), ("name", name), ("media_type", media_type), ("text", text), ("data", data)):
        if value is not None:
            body[key] = value
    if file is not None:
        body["file"] = _name(file)
    api.request("POST", "/artifact", body, {"Idempotency-Key": uuid.uuid4().hex})


def _name(file):
    """Return the name that a path has in /io/output."""
    path = os.fspath(file)
    return path.removeprefix(os.path.join(paths.io_dir(), "output") + "/")


UNITS = {"ms": 0.001, "s": 1, "m": 60}


def _seconds(wait):
    if wait is None:
        return 0
    if not isinstance(wait, str):
        return float(wait)
    for unit, seconds in UNITS.items():
        number = wait.removesuffix(unit)
        if number != wait and number.replace(".", "", 1).isdigit():
            return float(number) * seconds
    raise ValueError(f'a wait is in seconds or such as "20s" or "1m", not {wait!r}')
