"""The servers of tools that a run has: those of mcp.json, and units that tools.yaml grants."""

import json
import threading

from aod import settings
from aod.errors import MCPError
from aod.mcpclient import Client

CALL_SECONDS = 60  # where mcp.json says nothing

_kept: dict[str, "Server"] = {}  # by name: the servers of this run, dead ones too
_keeping = threading.Lock()


class ServerResult:
    """What a tool returned: text (its texts, below one another), structured (a dict, or None) and
    content (the parts, as the protocol has them)."""

    def __init__(self, document):
        content = document.get("content")
        self.content = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        self.structured = document.get("structuredContent")
        self.text = "\n".join(str(part.get("text")) for part in self.content if part.get("type") == "text")

    def __repr__(self):
        return f"ServerResult({len(self.content)} parts, {len(self.text)} characters)"


class Server:
    """One server: started once, at the first need of it, and never again."""

    def __init__(self, name, connect, wanted=None, seconds=None):
        self.name = name
        self.wanted = wanted  # names of tools; None for all
        self.seconds = seconds or CALL_SECONDS
        self._connect = connect
        self._starting = threading.Lock()
        self._client = self._transport = self._problem = self._tools = None

    def call(self, tool, arguments=None, /, *, timeout=None, progress=None, **more):
        """Call a tool and return its ServerResult; see aod.mcp."""
        if self.wanted is not None and tool not in self.wanted:
            raise MCPError("setup", f"mcp.json lists no tool {tool!r} of it", server=self.name)
        seconds = settings.seconds(timeout) if isinstance(timeout, str) else timeout
        document = self._started().call(tool, {**(arguments or {}), **more}, seconds or self.seconds, progress)
        result = ServerResult(document)
        if document.get("isError"):
            raise MCPError("tool", result.text or "the tool failed, and doesn't say why", server=self.name)
        return result

    def tools(self):
        """Return its tools, as the protocol has them: those that mcp.json lists, or all, by their names."""
        client = self._started()
        with self._starting:
            if self._tools is None:
                self._tools = self._chosen(client.tools(self.seconds))
            return self._tools

    def end(self):
        """End it."""
        if self._transport:
            self._transport.close()

    def _started(self):
        with self._starting:
            if self._problem:
                raise self._problem
            if not self._client:
                self._start()
            return self._client

    def _start(self):
        client = Client(self.name)
        try:
            self._transport = self._connect(client)
            client.connect(self._transport)
        except MCPError as error:
            self._problem = error
            self.end()
            raise
        self._client = client

    def _chosen(self, found):
        named = {tool["name"]: tool for tool in found}
        names = sorted(named) if self.wanted is None else self.wanted
        missing = [name for name in names if name not in named]
        if missing:
            raise MCPError("setup", f"it has no tool {missing[0]!r}, which mcp.json lists", server=self.name)
        return [named[name] for name in names]


def get(name):
    """Return the server of that name in mcp.json, or of the unit that tools.yaml grants under it."""
    spec = settings.servers().get(name)
    if spec is not None:
        return _keep(name, lambda: Server(name, lambda client: _child(name, spec, client), spec.get("tools"),
                                          settings.seconds(spec.get("timeout"))))
    for entry in settings.tools():
        if entry["name"] == name and entry.get("capsule"):
            return granted(entry)
    declared = ", ".join(settings.servers()) or "none"
    raise MCPError("setup", f"mcp.json has no such server; there are: {declared}", server=name)


def granted(entry):
    """Return the server that a unit of kind mcp is, for an entry of tools.yaml. Entries share its session."""
    unit = entry["capsule"]
    return _keep("capsule " + unit, lambda: Server(unit, lambda client: _http(unit, client), None, settings.seconds(entry.get("timeout"))))


def start(servers):
    """Start servers at once and ask for their tools; raise what went wrong with the first that didn't."""
    problems = {}

    def work(server):
        try:
            server.tools()
        except MCPError as error:
            problems[server.name] = error

    threads = [threading.Thread(target=work, args=(server,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        if server.name in problems:
            raise problems[server.name]


def end():
    """End all servers: the run is over."""
    with _keeping:
        for server in _kept.values():
            server.end()
        _kept.clear()


def _keep(key, make):
    with _keeping:
        if key not in _kept:
            _kept[key] = make()
        return _kept[key]


def _child(name, spec, client):
    from aod.mcpchild import Child
    return Child(name, spec["command"], spec.get("args") or (), spec.get("env") or {}, client.receive, client.ended)


def _http(unit, client):
    from aod.mcphttp import Http
    return Http(unit, client)
