"""The model, asked through the gateway that the environment names. It adds the key."""

import hashlib
import http.client
import json
import os
import re
import threading
import urllib.parse

from aod import api
from aod.errors import AgentError, HandoffUnavailable

ANSWER_BYTES = 64 << 20  # of one answer, at most
ANSWER_SECONDS = 3600  # the gateway's own bounds, and the run's time, are far shorter
MESSAGE_BYTES = 1024  # of what the gateway says of a failure

TOO_LONG = re.compile(
    r"context.{0,12}(length|window|size)|(prompt|input|request) is too long|too many (input |prompt )?tokens"
    r"|exceed.{0,20}(context|max.{0,10}tokens)", re.IGNORECASE,
)
REFUSALS = ("content_filter", "content_policy_violation", "refusal")

_asked: dict[str, int] = {}  # by digest: how often this run has sent these bytes
_counting = threading.Lock()


class Gateway:
    """Asks for models. Each request has a connection of its own; any thread may ask."""

    def __init__(self):
        self._url = (os.environ.get("OPENAI_BASE_URL") or "").rstrip("/")
        if not self._url:
            raise AgentError(
                "setup", "there is no model to ask: OPENAI_BASE_URL isn't set",
                hint="name a model in agent.yaml (model: NAME), and have whoever runs the capsule allow it",
            )

    def facts(self, name):
        """Return what the gateway knows of a model: dialects, max_output. {} where it says nothing."""
        try:
            known = self._send("GET", "/models/" + urllib.parse.quote(name, safe=""), None, {}).get("aod")
        except AgentError as error:
            if not error.status:
                raise  # it isn't there; whatever it says against the model, it will say again
            known = None
        return known if isinstance(known, dict) else {}

    def ask(self, path, body, headers):
        """Return the answer to a request: a document.

        One that was lost on its way is sent again, with the same key, so that an answer
        that was paid for is not paid for twice. Raises AgentError for all that is final.
        """
        document = json.dumps(body, separators=(",", ":")).encode()
        return self._send("POST", path, document, {**headers, "Idempotency-Key": _key(path, document)})

    def _send(self, method, path, document, headers):
        retry = api.Retry()
        headers = {"Content-Type": "application/json", "Accept": "application/json", **_credentials(), **headers}
        while True:
            try:
                return self._exchange(method, path, document, headers)
            except api.Lost as lost:
                try:
                    retry.pause(lost)
                except HandoffUnavailable:
                    raise AgentError("model", f"the gateway of models doesn't answer: {lost}") from None

    def _exchange(self, method, path, document, headers):
        connection, base = _connection(self._url)
        try:
            connection.request(method, base + path, document, headers)
            response = connection.getresponse()
            body = response.read(ANSWER_BYTES + 1)
            whole = response.length in (None, 0)  # what hasn't come
        except (OSError, http.client.HTTPException) as error:
            raise api.Lost(str(error) or type(error).__name__) from None
        finally:
            connection.close()
        if not whole or response.status == 503 and response.headers.get("x-should-retry") != "false":
            raise api.Lost("it is not available" if whole else "the answer breaks off")
        answer = _document(body)
        if response.status >= 300 or answer and isinstance(answer.get("error"), dict):
            raise failure(response.status, answer or {})
        if answer is None:
            raise AgentError("model", "the gateway's answer is no JSON object", status=response.status)
        return answer


def forget():
    """Count from the start: another run begins in this process."""
    _asked.clear()


def failure(status, document):
    """Return the AgentError for an answer that is none, in whatever envelope it came."""
    error = document.get("error")
    error = error if isinstance(error, dict) else document
    message = api.text(error, "message") or api.text(error, "detail") or f"the gateway answered {status}"
    code, hint = api.text(error, "code") or api.text(error, "type"), api.text(error, "hint")
    message = message.removesuffix(f" ({hint})")  # said to programs that read the message alone
    message = message.encode("utf-8", "replace")[:MESSAGE_BYTES].decode("utf-8", "ignore")
    return AgentError(_kind(status, code, message), message, rule=api.text(error, "rule"), hint=hint, status=status)


def _kind(status, code, message):
    if status == 402:
        return "budget"
    if status in (400, 413, 422) and (TOO_LONG.search(code) or TOO_LONG.search(message)):
        return "context_length"
    return "refusal" if code in REFUSALS else "model"


def _key(path, document):
    """Return the key of the n-th request with these bytes: a run that begins anew has the same ones."""
    digest = hashlib.sha256(path.encode() + b"\n" + document).hexdigest()
    with _counting:
        _asked[digest] = _asked.get(digest, 0) + 1
        return f"{digest[:40]}-{_asked[digest]}"


def _credentials():
    key = os.environ.get("OPENAI_API_KEY") or "aod"  # a placeholder, for the gateway to replace
    return {"Authorization": f"Bearer {key}"}


def _connection(url):
    try:
        parts = urllib.parse.urlsplit(url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if not parts.hostname:
            raise ValueError
        return kinds[parts.scheme](parts.hostname, parts.port, timeout=ANSWER_SECONDS), parts.path
    except (KeyError, ValueError):
        raise AgentError("setup", f"OPENAI_BASE_URL isn't an http URL: {url!r}") from None


def _document(body):
    try:
        document = json.loads(body) if len(body) <= ANSWER_BYTES else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
