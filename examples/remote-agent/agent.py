#!/usr/bin/env python3
"""An agent that speaks the agent HTTP contract, in nothing but Python's standard library.

It knows one task, WORD_STATS: how many words, lines and different words a text has, and
which words are the most frequent. Run it with: python3 agent.py [--port 8000]
"""

import argparse
import collections
import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TASK = "WORD_STATS"
DEMO_TEXT = "To be, or not to be, that is the question."
MAX_BODY = 4 * 1024 * 1024  # bytes
LINES_A_STEP = 1000  # a progress event stands for so many
WORD = re.compile(r"\w+(?:['’]\w+)*")


class Refused(Exception):
    """A request that is not taken. Its text names a field and a rule, never a value."""

    def __init__(self, status, text, request_id=""):
        super().__init__(text)
        self.status, self.text, self.request_id = status, text, request_id


def parse(raw):
    """Returns the request in a body, or says what is wrong with it."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is not an object")
    request_id = text_of(body, "request_id")
    if text_of(body, "task_type", request_id) != TASK:
        raise Refused(422, f"task_type: this agent knows {TASK} alone", request_id)
    inputs = body.get("inputs") or {}
    if not isinstance(inputs, dict):
        raise Refused(422, "inputs: it is not an object", request_id)
    if "text" not in inputs and (body.get("mode") or "DEMO") == "DEMO":
        inputs = {"text": DEMO_TEXT}
    if not isinstance(inputs.get("text"), str):
        raise Refused(422, "inputs.text: it is missing or not a string", request_id)
    return request_id, inputs["text"]


def text_of(body, name, request_id=""):
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(400, f"{name}: it is missing, empty or not a string", request_id)
    return value


def word_stats(text):
    """Yields how far it is, in percent, and at last the result."""
    lines = text.splitlines()
    words = collections.Counter()
    for number, line in enumerate(lines, 1):
        words.update(word.lower() for word in WORD.findall(line))
        if number % LINES_A_STEP == 0 or number == len(lines):
            yield 100 * number // len(lines)
    top = sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))[:10]
    yield {
        "words": sum(words.values()),
        "different_words": len(words),
        "lines": len(lines),
        "characters": len(text),
        "top": [{"word": word, "count": count} for word, count in top],
    }


def answer(request_id, outputs, began):
    return {
        "request_id": request_id,
        "task_type": TASK,
        "status": "ok",
        "ok": True,
        "outputs": outputs,
        "warnings": [],
        "provenance": {"agent": "word-stats", "version": "1.0.0"},
        "usage": {"duration_ms": round(1000 * (time.monotonic() - began))},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds, for a client that says nothing

    def do_GET(self):
        if self.path in ("/health", "/health/ready"):
            return self.reply(200, {"status": "ok", "service": "word-stats"})
        return self.reply(404, {"detail": "not found"})

    def do_POST(self):
        ways = {"/agents/run/sync": self.run_sync, "/agents/run/stream": self.run_stream}
        began = time.monotonic()
        try:
            raw = self.body()
            if self.path not in ways:
                raise Refused(404, "there is nothing at this address")
            request_id, text = parse(raw)
        except Refused as refused:
            return self.refuse(refused)
        return ways[self.path](request_id, text, began)

    def body(self):
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", length):
            self.close_connection = True
            raise Refused(411, "the header Content-Length is missing")
        if int(length) > MAX_BODY:
            self.close_connection = True  # what is on its way is not read
            raise Refused(413, f"the body has more than {MAX_BODY} bytes")
        return self.rfile.read(int(length))

    def run_sync(self, request_id, text, began):
        *_, outputs = word_stats(text)
        self.reply(200, answer(request_id, outputs, began))

    def run_stream(self, request_id, text, began):
        self.close_connection = True  # the end of the stream is the end of the connection
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.event("started", {"request_id": request_id, "task_type": TASK})
            for step in word_stats(text):
                if isinstance(step, int):
                    self.event("progress", {"percent": step, "step": "counting"})
                else:
                    self.event("final", answer(request_id, step, began))
        except OSError:
            pass  # the client has gone

    def event(self, name, data):
        data = {"type": name, **data}  # for readers that see the data alone
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def refuse(self, refused):
        error = {"code": "VALIDATION_ERROR", "message": refused.text}
        document = {"ok": False, "status": "error", "outputs": {}, "warnings": [], "error": error}
        if refused.request_id:
            document["request_id"] = refused.request_id
        self.reply(refused.status, document)

    def reply(self, status, document):
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass  # an address or a body in a log may be somebody's secret


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # What is printed otherwise may hold what the request held.
        print(f"a request ended with {sys.exc_info()[0].__name__}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes one that is free")
    args = parser.parse_args()
    with Server((args.host, args.port), Handler) as server:
        print(f"listening on http://{args.host}:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
