"""The Model Context Protocol, as a client speaks it: to a server that is a child, or over HTTP.

The transport gives what comes to receive, and says by ended that nothing more will.
"""

import itertools
import threading
import time

from aod.errors import MCPError

NEWEST = "2026-07-28"  # each request says all that it needs
WITH_SESSION = "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"

DISCOVER_SECONDS = 30  # for a server that may not know the question
NOTICE_SECONDS = 5  # for a notification, or an answer of ours, to be taken
MOST_TOOLS = 1000
MOST_PAGES = 100
MESSAGE_BYTES = 2000  # of an error's text

_ABOUT = {"name": "aod", "version": "1"}
META = "io.modelcontextprotocol/"


class Client:
    """One conversation with a server. Any thread may call."""

    def __init__(self, name):
        self.name = name
        self.version = None
        self._transport = None
        self._numbers = itertools.count(1)
        self._waiting = {}  # by id
        self._lock = threading.Lock()
        self._over = None  # why

    def connect(self, transport):
        """Begin: the newest way, or else as older servers want it."""
        self._transport = transport
        end = time.monotonic() + transport.start_seconds
        if self._discover():
            return
        offer = {"protocolVersion": WITH_SESSION[0], "capabilities": {}, "clientInfo": _ABOUT}
        answer = self._request("initialize", offer, end - time.monotonic())
        if answer.get("protocolVersion") not in WITH_SESSION:
            raise self._error("protocol", f"it speaks none of {', '.join((NEWEST, *WITH_SESSION))}")
        self.version = answer["protocolVersion"]
        self._notify("notifications/initialized", {})

    def tools(self, seconds):
        """Return the server's tools: documents with a name each."""
        found, cursor, end = [], None, time.monotonic() + seconds
        for _ in range(MOST_PAGES):
            page = self._request("tools/list", {"cursor": cursor} if cursor else {}, end - time.monotonic())
            listed = page.get("tools")
            if not isinstance(listed, list) or not all(isinstance(tool, dict) and _named(tool) for tool in listed):
                raise self._error("protocol", "its list of tools is none")
            found += listed
            if len(found) > MOST_TOOLS:
                raise self._error("protocol", f"it has more than {MOST_TOOLS} tools")
            cursor = page.get("nextCursor")
            if not cursor:
                return found
        raise self._error("protocol", f"its list of tools has more than {MOST_PAGES} pages")

    def call(self, tool, arguments, seconds, progress=None):
        """Return the result of a tool: a document. progress is called with what the server tells of it."""
        return self._request("tools/call", {"name": tool, "arguments": arguments}, seconds, progress)

    def ping(self, seconds):
        """Return when the server has answered."""
        self._request("ping", {}, seconds)

    def receive(self, message):
        """Take a message of the server. What answers nothing that is asked is passed over."""
        if "method" in message:
            if "id" in message:
                self._answer(message)
            elif message["method"] == "notifications/progress":
                self._progress(message.get("params"))
            return
        number = message.get("id")
        with self._lock:
            slot = self._waiting.pop(number, None) if type(number) is int else None
        if slot:
            slot.end(message)

    def ended(self, why):
        """Hear that nothing more will come, and tell all that wait."""
        with self._lock:
            self._over = self._over or why
            waiting, self._waiting = self._waiting, {}
        for slot in waiting.values():
            slot.end(self._error("ended", self._over))

    def failed(self, number, error):
        """Hear that a request will have no answer."""
        with self._lock:
            slot = self._waiting.pop(number, None)
        if slot:
            slot.end(error)

    def _discover(self):
        try:
            answer = self._request("server/discover", {}, DISCOVER_SECONDS, version=NEWEST)
        except MCPError as error:
            if error.kind == "ended":
                raise
            return False
        versions = answer.get("supportedVersions")
        if not isinstance(versions, list) or NEWEST not in versions:
            return False
        self.version = NEWEST
        return True

    def _request(self, method, params, seconds, progress=None, version=None):
        slot, number = _Slot(), next(self._numbers)
        with self._lock:
            if self._over:
                raise self._error("ended", self._over)
            self._waiting[number] = slot
        end = time.monotonic() + seconds
        meta = {"progressToken": number} if progress else {}
        if (version or self.version) == NEWEST:
            meta |= {META + "protocolVersion": NEWEST, META + "clientInfo": _ABOUT, META + "clientCapabilities": {}}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **({"_meta": meta} if meta else {})}}
        try:
            self._transport.send(message, seconds)
            outcome = slot.wait(end, progress)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if outcome is None:
            if method != "initialize":
                self._notify("notifications/cancelled", {"requestId": number, "reason": "it takes too long"})
            raise self._error("timeout", f"it had no answer to {method} after {seconds:.3g} s")
        return self._result(outcome)

    def _result(self, outcome):
        if isinstance(outcome, MCPError):
            raise outcome
        error, result = outcome.get("error"), outcome.get("result")
        if isinstance(error, dict):
            raise self._error("refused", str(error.get("message") or "no reason was given"))
        if not isinstance(result, dict):
            raise self._error("protocol", "its answer has no result")
        if result.get("resultType") == "input_required":
            raise self._error("protocol", "it asks back, which nobody here can answer")
        return result

    def _answer(self, message):
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "this client offers nothing but ping"}
        self._transport.send(answer, NOTICE_SECONDS)

    def _progress(self, params):
        token = params.get("progressToken") if isinstance(params, dict) else None
        with self._lock:
            slot = self._waiting.get(token) if type(token) is int else None
        if slot:
            slot.tell(params)

    def _notify(self, method, params):
        self._transport.send({"jsonrpc": "2.0", "method": method, "params": params}, NOTICE_SECONDS)

    def _error(self, kind, message):
        return MCPError(kind, message.encode("utf-8", "replace")[:MESSAGE_BYTES].decode("utf-8", "ignore"), server=self.name)


class _Slot:
    """Where one request waits: its last progress, and its end."""

    def __init__(self):
        self._changed = threading.Event()
        self._news = None
        self._outcome = None

    def tell(self, news):
        self._news = news
        self._changed.set()

    def end(self, outcome):
        self._outcome = outcome
        self._changed.set()

    def wait(self, end, progress):
        """Return how it ended, None if it hasn't by then."""
        while self._changed.wait(max(end - time.monotonic(), 0)):
            self._changed.clear()
            if self._outcome is not None:
                return self._outcome
            news, self._news = self._news, None
            if progress and news:
                progress(news)
            if time.monotonic() >= end:
                break
        return self._outcome


def _named(tool):
    return isinstance(tool.get("name"), str) and tool["name"]
