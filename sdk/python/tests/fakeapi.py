"""A capsule API on a Unix socket, in a thread, that answers as a test wants it to."""

import http.server
import json
import os
import socketserver
import tempfile
import threading
import time
import unittest
from unittest import mock

from aod import api


class FakeAPI:
    """Answers with answer(request), which may return:

    (status, dict or bytes): the answer; a list of bytes: these, then the connection
    ends; None: the connection ends at once.
    """

    def __init__(self, path, answer):
        self.requests = []
        self.answer = answer
        self._server = _Server(path, _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def keys(self):
        return [request.headers.get("Idempotency-Key") for request in self.requests if request.command == "POST"]


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.document = json.loads(raw) if raw else None
        self.server.api.requests.append(self)
        self.close_connection = True
        answer = self.server.api.answer(self)
        try:
            self._write(answer)
        except OSError:
            pass  # the client doesn't wait any longer

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _write(self, answer):
        if answer is None:
            return
        if isinstance(answer, list):
            for part in answer:
                self.wfile.write(part)
            return
        status, body = answer
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "capsule"

    def log_message(self, *_):
        pass


class APITest(unittest.TestCase):
    """A test with an /io of its own and, once serve is called, an API."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.outgoing = os.path.join(self.directory, "io", "handoff", "outgoing")
        os.makedirs(self.outgoing)
        self.socket = os.path.join(self.directory, "aod.sock")
        variables = {"AOD_IO_DIR": self.directory + "/io", "AOD_SOCKET": self.socket}
        for patch in (mock.patch.dict(os.environ, variables), mock.patch.object(api, "PAUSES", (0.01, 0.05))):
            patch.start()
            self.addCleanup(patch.stop)
        os.environ.pop("AOD_URL", None)

    def serve(self, answer):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.api = FakeAPI(self.socket, answer)
        self.addCleanup(self.api.stop)
        return self.api

    def file(self, name, content="content"):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
        return path


def succeeded(number="1", output=None, files=()):
    """The answer of a handoff that went well."""
    return 200, {
        "handoff_id": f"h{number}", "state": "completed", "success": True,
        "output": {"ok": True} if output is None else output, "files": list(files), "error": None,
    }


def failed(**error):
    return 200, {"handoff_id": "h1", "state": "failed", "success": False, "output": None, "files": [], "error": error}


def problem(status, code, **more):
    return status, {"type": "about:blank", "title": "no", "status": status, "code": code, "detail": "it says no", **more}


def accept(ended):
    """Accept each POST, and give GETs what ended(id, seconds since the POST) returns, or
    202 for None when the wait that was asked for is over."""
    started = {}

    def answer(request):
        if request.command == "POST":
            key = request.headers["Idempotency-Key"]
            number = list(started).index(key) if key in started else len(started)
            started.setdefault(key, time.monotonic())
            return 202, {"handoff_id": f"h{number}", "state": "running"}
        number = int(request.path.partition("?")[0].rpartition("/h")[2])
        wait = float(request.path.partition("wait=")[2].rstrip("s") or 0)
        begun, end = list(started.values())[number], time.monotonic() + wait
        while True:
            result = ended(number, time.monotonic() - begun)
            if result or time.monotonic() >= end:
                return result or (202, {"handoff_id": f"h{number}", "state": "running"})
            time.sleep(0.005)

    return answer
