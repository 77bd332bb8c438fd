"""A server of tools over HTTP: a unit that tools.yaml grants, reached by the capsule API."""

import base64
import http.client
import json
import threading
import time
import urllib.parse

from aod import api, mcplines
from aod.errors import HandoffUnavailable, MCPError
from aod.mcpclient import META, NEWEST

CLOSE_SECONDS = 1
GRACE_SECONDS = 5  # beyond what the caller waits
PROBLEM_BYTES = 64 << 10
ANSWER_TYPES = "application/json, text/event-stream"


class Http:
    """Posts each message by itself. What comes back is given to receive by a thread of the request's own."""

    start_seconds = 300  # its image may have to be built

    def __init__(self, unit, client):
        self._path = "/mcp/" + urllib.parse.quote(unit, safe="")
        self._client = client
        self._session = None

    def send(self, message, seconds):
        """Post a message: a request without waiting for what comes, all else to its end."""
        if not _asks(message):
            return self._exchange(message, seconds)
        try:
            threading.Thread(target=self._exchange, args=(message, seconds + GRACE_SECONDS), daemon=True).start()
        except RuntimeError as error:
            self._fail(message, "refused", f"it can't be asked: {error}")

    def close(self):
        """End the session, so that it isn't found cut off. AOD would end it with the run."""
        if not self._session:
            return
        connection = None
        try:
            connection = api.connect(CLOSE_SECONDS)
            connection.request("DELETE", self._path, headers={"Mcp-Session-Id": self._session})
            connection.getresponse()
        except (OSError, http.client.HTTPException, HandoffUnavailable):
            pass
        finally:
            if connection:
                connection.close()

    def _exchange(self, message, seconds):
        end, connection = time.monotonic() + seconds, None
        try:
            connection = api.connect(seconds)
            response = self._ask(connection, message)
            self._session = response.headers.get("Mcp-Session-Id") or self._session
            if response.status >= 400:
                self._refused(message, response)
            elif response.headers.get_content_type() == "text/event-stream":
                self._events(response, end)
            elif response.status == 200:
                self._take(_bounded(response.read(mcplines.LINE_BYTES + 1)))
            if response.status < 400:
                self._fail(message, "protocol", "it sent no answer")  # unless there was one
        except mcplines.Breach as breach:
            self._client.ended(str(breach))
        except (OSError, ValueError, http.client.HTTPException, HandoffUnavailable) as error:
            self._fail(message, "refused", f"it can't be reached: {error or type(error).__name__}")
        finally:
            if connection:
                connection.close()

    def _ask(self, connection, message):
        headers = {"Accept": ANSWER_TYPES, "Content-Type": "application/json"}
        method, params = message.get("method"), message.get("params") or {}
        version = self._client.version or params.get("_meta", {}).get(META + "protocolVersion")
        if version:
            headers["MCP-Protocol-Version"] = version
        if version == NEWEST and method:
            headers["Mcp-Method"] = method
            if method == "tools/call":
                headers["Mcp-Name"] = _as_header(params["name"])
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        connection.request("POST", self._path, json.dumps(message, separators=(",", ":")).encode(), headers)
        return connection.getresponse()

    def _events(self, response, end):
        """Take the messages of a stream of events until it ends."""
        data, size = [], 0
        while time.monotonic() < end and (line := response.readline(mcplines.LINE_BYTES + 1)):
            size += len(line)
            if size > mcplines.LINE_BYTES:
                raise mcplines.Breach(f"it sent an event of over {mcplines.LINE_BYTES >> 20} MiB")
            line = line.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line:
                self._take(b"\n".join(data))
                data, size = [], 0

    def _take(self, text):
        message = mcplines.message(text)
        if message is not None:
            self._client.receive(message)

    def _refused(self, message, response):
        """Tell of a problem document, or of the error in the answer."""
        document = mcplines.message(response.read(PROBLEM_BYTES)) or {}
        if self._session and response.status == 404:
            self._client.ended("its session is over")
        elif isinstance(document.get("error"), dict) and document.get("id") is not None:
            self._client.receive(document)
        else:
            error = document.get("error") if isinstance(document.get("error"), dict) else document
            why = api.text(error, "detail") or api.text(error, "message") or f"status {response.status}"
            self._fail(message, "refused", "; ".join(filter(None, (why, api.text(error, "hint")))))

    def _fail(self, message, kind, why):
        if _asks(message):
            self._client.failed(message["id"], MCPError(kind, why, server=self._client.name))


def _bounded(body):
    if len(body) > mcplines.LINE_BYTES:
        raise mcplines.Breach(f"it sent an answer of over {mcplines.LINE_BYTES >> 20} MiB")
    return body


def _asks(message):
    return "id" in message and "method" in message


def _as_header(text):
    if text.isascii() and text.isprintable():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
