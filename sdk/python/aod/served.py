"""Tools of servers, as an agent has them: named server__tool, their results told as text."""

import base64
import binascii
import json
import mimetypes
import re
import time

from aod import schema, servers, watch
from aod.errors import AgentError, ContractError, MCPError, ToolError
from aod.files import media_type
from aod.tools import Tool, clip

NAME_LETTERS = 64
DESCRIPTION_BYTES = 4 << 10
SCHEMA_BYTES = 64 << 10
STEP_SECONDS = 1  # between two words of progress
MOST_STEPS = 1e15
SHOWN_IMAGES = 4  # of one result
IMAGE_BYTES = 4 << 20

_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, ContractError)


class Served(Tool):
    """A tool of a server. What it returns beside text becomes files of the workspace."""

    def __init__(self, server, found, entry):
        entry = {"description": str(found.get("description") or found.get("title") or ""), **entry}
        entry["description"] = clip(entry["description"], DESCRIPTION_BYTES)
        if len(entry["name"]) > NAME_LETTERS:
            raise _unfit(entry["name"], f"its name has over {NAME_LETTERS} letters")
        try:
            super().__init__(entry, _document(found.get("inputSchema")))
        except _BROKEN as error:
            raise _unfit(entry["name"], f"its schema can't be read: {error}") from None
        self._server = server
        self._tool = found["name"]

    def run(self, arguments):
        """Have the server run it and return its ServerResult."""
        try:
            return self._server.call(self._tool, arguments, timeout=self.seconds, progress=_Steps(self.name).tell)
        except MCPError as error:
            raise ToolError(error.message if error.kind == "tool" else str(error)) from None

    def told(self, result, files):
        """Return the text for the model."""
        parts = [_told(part, self.name, files) for part in result.content]
        if result.structured is not None and not any(_says(part, result.structured) for part in result.content):
            parts.append(json.dumps(result.structured, ensure_ascii=False))
        return "\n".join(parts)

    def images(self, result):
        """Return the images of a result that models take: (media type, base64)."""
        found = [_bytes(part.get("data")) for part in result.content if part.get("type") == "image"]
        shown = [content for content in found if media_type(content) and len(content) <= IMAGE_BYTES]
        return [(media_type(content), base64.b64encode(content).decode()) for content in shown[:SHOWN_IMAGES]]

    def _file(self, path):
        return path


def start(entries):
    """Start the servers of entries at once, where they aren't yet."""
    try:
        servers.start(list(dict.fromkeys(_server(entry) for entry in entries)))
    except MCPError as error:
        raise AgentError("setup", str(error)) from None


def tools(entry):
    """Return the tools of an entry: a server of mcp.json, or a unit of kind mcp with all its tools or one."""
    server, only = _server(entry), entry.get("tool")
    how = {key: entry[key] for key in ("sequential", "timeout") if key in entry}
    if only:
        found = [tool for tool in server.tools() if tool["name"] == only]
        if not found:
            raise AgentError("setup", f"{server.name} has no tool {only!r}, which tools.yaml names")
        return [Served(server, found[0], entry)]
    whole = [(tool, f"{entry['name']}__{_STRANGE.sub('_', tool['name'])}") for tool in server.tools()]
    wanted = entry.get("shown")
    return [Served(server, tool, {**how, "name": name}) for tool, name in whole if wanted in (None, name)]


class _Steps:
    """Passes on what a server tells of its progress, now and then."""

    def __init__(self, name):
        self._name = name
        self._next = 0

    def tell(self, news):
        """Take the parameters of notifications/progress."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + STEP_SECONDS
        done, total = news.get("progress"), news.get("total")
        numbers = all(isinstance(number, (int, float)) and abs(number) < MOST_STEPS for number in (done, total)) and total > 0
        share = f"{100 * done / total:.0f}%" if numbers else None
        said = news.get("message") if isinstance(news.get("message"), str) else None
        watch.progress(None, f"{self._name}: {' '.join(filter(None, (share, said))) or 'it works'}", None)


def _server(entry):
    return servers.granted(entry) if entry.get("capsule") else servers.get(entry["name"])


def _document(given):
    if len(json.dumps(given)) > SCHEMA_BYTES:
        raise ValueError(f"it has over {SCHEMA_BYTES >> 10} KiB")
    given = {} if given is None else schema.without_nulls(given)
    if not isinstance(given, dict) or not isinstance(given.get("properties", {}), dict):
        raise ValueError("it isn't a schema of an object")
    return schema.document({"input": given}, "input")


def _unfit(name, why):
    return AgentError("setup", f"the tool {name[:100]} can't be used: {why}", hint="name the tools that are wanted, without it: tools in mcp.json, or tool in tools.yaml")


def _says(part, structured):
    """Whether a part has in words what the result has as a document, too."""
    try:
        return part.get("type") == "text" and json.loads(part["text"]) == structured
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _told(part, tool, files):
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text"))
    if kind in ("image", "audio"):
        return f"[{kind}: {_kept(_bytes(part.get('data')), part.get('mimeType'), tool, files)}]"
    if kind == "resource" and isinstance(part.get("resource"), dict):
        return _told_resource(part["resource"], tool, files)
    if kind == "resource_link":
        return f"[link: {' '.join(str(part[key]) for key in ('name', 'uri', 'description') if part.get(key))}]"
    return f"[a part of type {str(kind)[:50]!r}, which can't be shown]"


def _told_resource(resource, tool, files):
    text = resource.get("text")
    content = text.encode("utf-8", "replace") if isinstance(text, str) else _bytes(resource.get("blob"))
    where = f"[{str(resource.get('uri'))[:500]}: {_kept(content, resource.get('mimeType'), tool, files)}]"
    return f"{where}\n{text}" if isinstance(text, str) else where


def _kept(content, kind, tool, files):
    extension = mimetypes.guess_extension(kind if isinstance(kind, str) else "") or ".bin"
    return f"the file {files.keep_bytes(tool, content, extension)}, {len(content)} bytes"


def _bytes(data):
    try:
        return base64.b64decode(data if isinstance(data, str) else "", validate=True)
    except (binascii.Error, ValueError):
        return b""
