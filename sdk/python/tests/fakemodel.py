"""A gateway of models in a thread, whose answers a test has written down, and a test with
a capsule, an /io, a workspace and a capsule API of its own."""

import http.server
import json
import os
import sys
import threading
from unittest import mock

from aod import settings
from fakeapi import APITest, problem

KEY = "aod-test"
OUTPUT = {
    "type": "object", "properties": {"total": {"type": "int", "minimum": 0}, "note": {"type": "string"}},
    "required": ["total"], "additionalProperties": False,
}
SCHEMA = {"input": {"type": "object", "properties": {"message": {"type": "string"}, "n": {"type": "int"}}}, "output": OUTPUT}
ADD = {
    "name": "add", "description": "Adds.",
    "parameters": {
        "type": "object", "properties": {"a": {"type": "int"}, "b": {"type": "int", "default": 10}},
        "required": ["a"], "additionalProperties": False,
    },
}


def text(content, reason="stop", **more):
    """The model says something."""
    return {"text": content, "calls": [], "reason": reason, **more}


def calls(*named, content=None, reason="tool_calls"):
    """The model calls tools: (name, arguments, a dict or whatever text it says)."""
    return {"text": content, "calls": list(named), "reason": reason}


def final(**output):
    """The model answers by the tool for it."""
    return calls(("final_answer", output))


def error(status, **envelope):
    """The gateway, or the provider, says no."""
    return {"status": status, "error": envelope}


class FakeModel:
    """Gives one answer after the other: of text, calls, final and error, or functions that
    take the request and return one of these; None ends the connection without an answer."""

    def __init__(self, answers, facts=None):
        self.answers = list(answers)
        self.requests = []  # documents, in the order in which they came
        self.bodies = []
        self.headers = []
        self.facts = {"dialects": ["chat", "messages"]} if facts is None else facts
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.model = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def next(self, path, raw, headers):
        document = json.loads(raw)
        with self._lock:  # the lists have the same order, however many ask at once
            self.bodies.append((path, raw))
            self.headers.append(headers)
            self.requests.append(document)
            answer = self.answers.pop(0) if self.answers else error(500, message="the script is at its end")
        return answer(document) if callable(answer) else answer


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._send(200, {"id": self.path.rpartition("/")[2], "object": "model", "aod": self.server.model.facts})

    def do_POST(self):
        model = self.server.model
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        answer = model.next(self.path, raw, dict(self.headers))
        if answer is None:
            self.close_connection = True
        elif "error" in answer:
            self._send(answer["status"], self._envelope(answer["error"]))
        else:
            self._send(200, _message(answer) if self.path == "/v1/messages" else _chat(answer))

    def _envelope(self, content):
        return {"type": "error", "error": content} if self.path == "/v1/messages" else {"error": content}

    def _send(self, status, document):
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("x-should-retry", "false" if status >= 400 else "true")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


def _chat(answer):
    message = {"role": "assistant", "content": answer["text"], "refusal": answer.get("refusal")}
    if answer["calls"]:
        message["tool_calls"] = [{"id": f"c{index}", "type": "function", "function": {
            "name": name, "arguments": given if isinstance(given, str) else json.dumps(given),
        }} for index, (name, given) in enumerate(answer["calls"])]
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    return {"choices": [{"index": 0, "message": message, "finish_reason": answer["reason"]}], "usage": usage}


def _message(answer):
    content = [{"type": "text", "text": answer["text"]}] if answer["text"] else []
    content += [{"type": "tool_use", "id": f"c{index}", "name": name, "input": given}
                for index, (name, given) in enumerate(answer["calls"])]
    reason = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}.get(answer["reason"], answer["reason"])
    usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 3}
    return {"role": "assistant", "content": content, "stop_reason": reason, "usage": usage}


class AgentTest(APITest):
    """A test with a capsule whose model answers as it is told."""

    def setUp(self):
        super().setUp()
        self.io, self.capsule = self.directory + "/io", self.directory + "/capsule"
        self.workspace = self.directory + "/workspace"
        for path in (self.io + "/input", self.io + "/output", self.workspace):
            os.makedirs(path)
        self.capsule_file("agent.yaml", "name: it\nmodel: small\n")
        self.capsule_file("schema.json", json.dumps(SCHEMA))
        self.capsule_file("src/ai/system.md", "You add.\n")
        self.capsule_file("src/ai/task.md", "Do this: $message ($n)\n")
        self.file("io/input.json", json.dumps({"message": "$n and $$", "n": 3}))
        variables = {"AOD_CAPSULE_DIR": self.capsule, "AOD_WORKSPACE": self.workspace, "OPENAI_API_KEY": KEY}
        modules = {name: module for name, module in sys.modules.items() if name.partition(".")[0] != "src"}
        for patch in (mock.patch.dict(os.environ, variables), mock.patch.dict(sys.modules, modules, clear=True),
                      mock.patch.object(sys, "path", list(sys.path)), mock.patch("aod.bridge.payload", None)):
            patch.start()
            self.addCleanup(patch.stop)
        sys.modules.pop("src", None)
        os.environ.pop("OPENAI_BASE_URL", None)

    def capsule_file(self, name, content):
        settings._kept.clear()  # of a capsule, files never change
        return self.file("capsule/" + name, content)

    def tools(self, entries, code=""):
        """Give the capsule tools: tools.yaml (JSON is YAML) and src/tools.py."""
        self.capsule_file("tools.yaml", json.dumps(entries))
        if code:
            self.capsule_file("src/tools.py", code)

    def model(self, *answers, facts=None):
        """Have the model answer like this, and return it."""
        found = FakeModel(answers, facts)
        self.addCleanup(found.stop)
        os.environ["OPENAI_BASE_URL"] = found.url
        return found

    def units(self, handoff, **named):
        """Serve a capsule API: named units with their inputs, and what handoff(document) returns.

        What it was told of progress is in self.steps."""
        self.steps = []
        listed = {name: {"description": f"About {name}.", "input": schema, "output": {}} for name, schema in named.items()}

        def answer(request):
            if request.path.startswith("/capsules"):
                self.listing = request.path
                return 200, {"capsules": listed}
            if request.path == "/progress":
                self.steps.append(request.document["step"])
                return 204, b""
            if request.command == "POST" and handoff:
                return handoff(request.document)
            return problem(404, "not_found")

        return self.serve(answer)

    def told(self, model, request=-1):
        """The results of tools in a request to the model."""
        return [message["content"] for message in model.requests[request]["messages"] if message["role"] == "tool"]

    def fails(self, kind, call):
        """The AgentError that a call raises, which has to be of that kind."""
        import aod

        with self.assertRaises(aod.AgentError) as caught:
            call()
        self.assertEqual(kind, caught.exception.kind)
        return caught.exception
