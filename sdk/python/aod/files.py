"""The files of an agent, which a model knows by names: those of /io/input, of results of
earlier calls, of /workspace and of /io/output."""

import base64
import filecmp
import hashlib
import os
import shutil
import stat

from aod import paths
from aod.errors import ContractError, ToolError

LISTED = 20  # names in a message
KINDS = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"RIFF", "image/webp"))


class Files:
    """What can be named. Only the thread of the agent may add to it."""

    def __init__(self):
        self._returned = {}  # name: path, sha256

    def add(self, file):
        """Return the name for a file of a result: its own, or one with a number if that is taken."""
        stem, extension = os.path.splitext(file.name)
        number = 1
        while True:
            name = file.name if number == 1 else f"{stem}-{number}{extension}"
            _, digest = self._returned.get(name, (None, None))
            if digest is not None and digest == file.sha256:
                return name  # the same content once more
            if digest is None and not _lying(name):
                self._returned[name] = file.path, file.sha256
                return name
            number += 1

    def find(self, name):
        """Return the path of a file, None if there is none of that name."""
        path, _ = self._returned.get(name, (None, None))
        return path or _lying(name)

    def problem(self, name):
        """Say what keeps a name from being that of a file; None if nothing."""
        if self.find(name):
            return None
        names = self._names()
        return f"there is no file {name[:200]!r}; " + ("there are: " + ", ".join(names) if names else "there are none")

    def missing(self, named, where):
        """List what is wrong with the names at places of a value."""
        wrong = [(key, self.problem(holder[key])) for holder, key in named]
        return [f"{where}, {key}: {problem}" for key, problem in wrong if problem]

    def need(self, name):
        """Return the path of a file, or tell the model that there is none."""
        problem = self.problem(name)
        if problem:
            raise ToolError(problem)
        return self.find(name)

    def deliver(self, name):
        """Put a file where results have theirs, and return its name there."""
        path, base = self.find(name), os.path.join(paths.io_dir(), "output")
        if path.startswith(base + "/"):
            return path[len(base) + 1:]
        stem, extension = os.path.splitext(_relative(name) or os.path.basename(path))
        number = 1
        while True:
            own = stem + extension if number == 1 else f"{stem}-{number}{extension}"
            target = paths.output_path(own)
            if not os.path.lexists(target):
                shutil.copyfile(path, target)
                return own
            if os.path.isfile(target) and filecmp.cmp(path, target, shallow=False):
                return own
            number += 1

    def image(self, name):
        """Return the media type of an image and its bytes in base64."""
        with open(self.find(name) if isinstance(name, str) and self.find(name) else name, "rb") as file:
            content = file.read()
        kind = media_type(content)
        if kind:
            return kind, base64.b64encode(content).decode()
        raise ContractError(f"{os.path.basename(os.fspath(name))!r} isn't a PNG, JPEG, GIF or WebP image")

    def keep(self, tool, text):
        """Write a text that is too long for the model to the workspace, and return its name."""
        return self.keep_bytes(tool, text.encode(), ".txt")

    def keep_bytes(self, tool, content, extension):
        """Write what a tool returned to the workspace, and return its name."""
        digest = hashlib.sha256(content).hexdigest()[:12]
        name = f"results/{tool}-{digest}{extension}"
        path = os.path.join(paths.workspace(), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return name

    def _names(self):
        names = list(self._returned)
        for root in _roots():
            for directory, below, files in os.walk(root):
                below.sort()
                start = os.path.relpath(directory, root)
                names.extend(os.path.normpath(os.path.join(start, file)) for file in sorted(files))
                if len(names) > LISTED:
                    return [*names[:LISTED], "..."]
        return names


def media_type(content):
    """Return the media type of an image by its first bytes, None if it is none that models know."""
    return next((kind for beginning, kind in KINDS if content.startswith(beginning)), None)


def places(schema, value):
    """List the (container, key) of each string that names a file by an inlined schema, once."""
    return list({(id(holder), key): (holder, key) for holder, key in _places(schema, value, None, None)}.values())


def _places(schema, value, holder, key):
    if not isinstance(schema, dict):
        return
    if isinstance(value, str) and schema.get("format") == "file_path" and holder is not None:
        yield holder, key
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word) or ():
            yield from _places(part, value, holder, key)
    if isinstance(value, dict):
        fields = schema.get("properties") or {}
        for name, item in list(value.items()):
            yield from _places(fields.get(name, schema.get("additionalProperties")), item, value, name)
    if isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            own = items[index] if isinstance(items, list) and index < len(items) else items
            yield from _places(own, item, value, index)


def _roots():
    return os.path.join(paths.io_dir(), "input"), paths.workspace(), os.path.join(paths.io_dir(), "output")


def _relative(name):
    """Return a name relative to the directory that it lies in; None if it leads elsewhere."""
    for root in _roots():
        name = name.removeprefix(root + "/")
    return None if not name or "\0" in name or name.startswith("/") or ".." in name.split("/") else name


def _lying(name):
    """Return the path of a regular file of that name, reached through no link."""
    relative = _relative(name)
    for root in _roots() if relative else ():
        path = os.path.join(root, relative)
        try:
            if name in (relative, path) and stat.S_ISREG(paths.mode_without_links(path, len(root))):
                return path
        except (OSError, ValueError):
            pass
    return None
