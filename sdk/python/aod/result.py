"""What comes back from a handoff."""

import os

from aod.api import text
from aod.errors import HandoffError


class File:
    """A file that the callee returned: name, path, size_bytes, sha256, and the field of the
    output that names it ("" for none; dots lead into objects).

    It can be opened as it is: open(file).
    """

    def __init__(self, document):
        self.name = text(document, "name")
        self.path = text(document, "path")
        self.size_bytes = document.get("size_bytes")
        self.sha256 = text(document, "sha256")
        self.field = text(document, "field")
        if not self.name or not os.path.isabs(self.path):
            raise HandoffError("AOD's answer has a file without name or path")

    def __fspath__(self):
        return self.path

    def is_named(self, value):
        """Say whether a value of the output is the file's name."""
        return value in (self.name, "/io/output/" + self.name, self.path)

    def __repr__(self):
        return f"File({self.path!r})"


class Result:
    """The result of a handoff: its id, the callee's output (a dict) and its files."""

    def __init__(self, handoff_id, output, files):
        self.id = handoff_id
        self.output = output
        self.files = files

    def path(self, field):
        """Return the absolute path of the file that an output field names.

        Dots lead into objects and lists: "report.pages.0". KeyError if there is no such
        field, or if it names no file.
        """
        name = self.output
        for part in field.split("."):
            name = _member(name, part, field)
        for file in self.files:
            if file.is_named(name):
                return file.path
        raise KeyError(f"the output's {field} names no file")

    def __repr__(self):
        return f"Result({self.id!r}, {len(self.files)} files)"


def conclude(document, target):
    """Return the Result in an answer, or raise the HandoffError that it tells of."""
    result = Result(text(document, "handoff_id"), _dict(document.get("output")), _files(document.get("files")))
    if document.get("success") is True:
        if not isinstance(document.get("output"), dict):
            raise HandoffError("AOD's answer has no output", target=target)
        return result
    error = _dict(document.get("error"))
    kind, message = text(error, "kind"), text(error, "message") or "no reason was given"
    raise HandoffError(
        message, target=target, kind=kind, category=text(error, "category"), type=text(error, "type"), result=result,
        about=f"{target} failed ({kind or 'unknown'}): {message}",
    )


def _member(value, part, field):
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    raise KeyError(f"the output has no field {field}")


def _dict(value):
    return value if isinstance(value, dict) else {}


def _files(value):
    if not isinstance(value, list):
        return []
    return [File(_dict(item)) for item in value]
