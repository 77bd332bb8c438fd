"""The capsule API: HTTP over the run's socket, or over $AOD_URL where there is none.

Each request has a connection of its own, so that any thread may make one at any time.
"""

import http.client
import json
import os
import socket
import time
import urllib.parse

from aod.errors import HandoffError, HandoffRefused, HandoffUnavailable
from aod.paths import SOCKET

ACCEPT = "application/json, application/problem+json"  # refusals that can be told apart
ANSWER_BYTES = 64 << 20  # of one answer, at most
PATIENCE = 300  # seconds of trying to reach an API that is away
PAUSES = (0.05, 2)  # seconds between two tries: the first pause, the longest
ANSWER_SECONDS = 30  # for an answer, beyond what the API was asked to wait


class Lost(Exception):
    """The API wasn't reached, or went away before it had answered."""


class Exchange:
    """One request, whose answer can be waited for by its descriptor."""

    def __init__(self, method, path, body=None, headers=None, *, seconds=ANSWER_SECONDS):
        self._connection = connect(seconds)
        try:
            self._connection.request(method, path, body, headers or {})
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Lost(str(error)) from None

    def fileno(self):
        """Return the descriptor that becomes readable with the answer."""
        return self._connection.sock.fileno()

    def answer(self, target=""):
        """Return the status and the document of a call that was accepted.

        Raises HandoffRefused for another, and Lost for 503 or an answer that breaks off.
        """
        try:
            response = self._connection.getresponse()
            body = response.read(ANSWER_BYTES + 1)
            whole = response.chunked or response.length == 0  # length is what hasn't come
        except (OSError, http.client.HTTPException) as error:
            raise Lost(str(error) or type(error).__name__) from None
        finally:
            self.close()
        if len(body) > ANSWER_BYTES:
            raise HandoffError(f"AOD's answer is over {ANSWER_BYTES >> 20} MiB", target=target)
        if response.status == 503 or not whole:
            raise Lost("it is not available" if whole else "the answer breaks off")
        document = _document(body)
        if response.status >= 400:
            raise refusal(response.status, document or {}, target)
        if document is None:
            raise HandoffError("AOD's answer is no JSON object", target=target)
        return response.status, document

    def begun(self, seconds):
        """Wait at most so long for the first byte of the answer."""
        self._connection.sock.settimeout(seconds)
        self._connection.sock.recv(1)

    def close(self):
        """End the exchange, answered or not."""
        self._connection.close()


def request(method, path, body=None, headers=None, *, seconds=ANSWER_SECONDS, patience=PATIENCE, target=""):
    """Return (status, document) of a call that was accepted.

    A connection that is refused or lost, and 503, are tried again for `patience`
    seconds; then it is HandoffUnavailable. What AOD refuses is HandoffRefused.
    """
    retry = Retry(patience, target)
    document = None if body is None else _encode(body)
    headers = {"Content-Type": "application/json", "Accept": ACCEPT, **(headers or {})}
    while True:
        try:
            return Exchange(method, path, document, headers, seconds=seconds).answer(target)
        except Lost as error:
            retry.pause(error)


class Retry:
    """The pauses between the tries of one request."""

    def __init__(self, patience=PATIENCE, target=""):
        self._end = time.monotonic() + patience
        self._pause = PAUSES[0]
        self._target = target

    def pause(self, error):
        """Sleep, or raise HandoffUnavailable when there has been enough of it."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise HandoffUnavailable(f"AOD doesn't answer: {error}", target=self._target) from None
        time.sleep(min(self._pause, left))
        self._pause = min(2 * self._pause, PAUSES[1])


def connect(seconds):
    """Return a connection to the API, of http.client."""
    path = os.environ.get("AOD_SOCKET") or SOCKET
    url = os.environ.get("AOD_URL")
    if os.path.exists(path) or (not url and "AOD_SOCKET" in os.environ):
        return _UnixConnection(path, seconds)
    if url:
        return _connection_to(url, seconds)
    raise HandoffUnavailable(
        f"there is no capsule API here: neither {path} nor AOD_URL; run the capsule with aod, not by itself",
    )


def refusal(status, problem, target):
    """Return the exception for a problem document."""
    detail = text(problem, "detail") or text(problem, "title") or f"status {status}"
    code, hint, findings = text(problem, "code"), text(problem, "hint"), problem.get("findings")
    return HandoffRefused(
        detail, code=code, rule=text(problem, "rule"), status=status, target=target, hint=hint,
        findings=findings if isinstance(findings, list) else (), about=_about(target, code, detail, hint),
    )


def text(document, key):
    """Return the string at the key, or ""."""
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _about(target, code, detail, hint):
    whole = f"{target or 'the request'} was refused ({code or 'unknown'}): {detail}"
    return f"{whole}; {hint}" if hint else whole


def _encode(body):
    try:
        return json.dumps(body, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("the arguments contain themselves, or are nested too deeply") from None


def _document(body):
    """Return the object in the body, {} for no body, None for anything else."""
    try:
        document = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _connection_to(url, seconds):
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError
        return http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=seconds)
    except ValueError:
        raise HandoffUnavailable(f"AOD_URL isn't an http URL: {url!r}") from None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, seconds):
        super().__init__("aod", timeout=seconds)
        self._path = path

    def connect(self):
        """Connect to the socket, for http.client."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
