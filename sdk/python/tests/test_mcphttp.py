"""Units of kind mcp: servers of tools that a capsule reaches over the capsule API."""

import json
import time
from unittest import mock

import aod
from aod import mcpclient, mcphttp, mcplines, servers
from fakeapi import problem
from fakemodel import AgentTest, calls, final

TOOLS = [{"name": "remember", "description": "Remembers.", "inputSchema": {"type": "object"}}, {"name": "forget"}]


def events(*messages, session="s1"):
    """An answer that is a stream of events, with a session."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n: hello\n\n"
    return [head.encode(), *(f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode() for message in messages)]


class Units(AgentTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(servers.end)
        for module, name in ((mcpclient, "NOTICE_SECONDS"), (mcphttp, "CLOSE_SECONDS")):
            patch = mock.patch.object(module, name, 60)  # or what a slow machine hears late comes out of its order
            patch.start()
            self.addCleanup(patch.stop)
        self.asked, self.ended = [], []
        self.answer = lambda message: {"content": [{"type": "text", "text": f"did {message['params']['name']}"}]}

    def grant(self, *entries, version="2025-06-18"):
        self.tools([{"name": "memory", "capsule": "unit.memory"}, *entries])
        self.version = version
        self.serve(self._serve)

    def _serve(self, request):
        if request.path.startswith("/capsules"):
            return 200, {"capsules": {"unit.memory": {"description": "x", "kind": "mcp"}}}
        if request.command != "POST" or not request.path.startswith("/mcp/"):
            self.ended.append((request.command, request.path, request.headers.get("Mcp-Session-Id")))
            return 204, b""
        message = request.document
        if message.get("method") == "notifications/initialized":
            time.sleep(0.3)  # what comes after it has to wait for it
        self.asked.append((request.path, message.get("method"), dict(request.headers)))
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        new = message.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if "id" not in message or "method" not in message:
            return 202, b""
        if message["method"] == "server/discover":
            if self.version > "2026":
                return 200, {**answer, "result": {"supportedVersions": [self.version]}}
            return 400, {**answer, "error": {"code": -32022, "message": "unsupported", "data": {"supported": [self.version]}}}
        if message["method"] == "initialize":
            return events({**answer, "result": {"protocolVersion": self.version}})
        if message["method"] == "tools/list":
            return 200, {**answer, "result": {"tools": TOOLS}}
        came = self.answer(message)
        if not isinstance(came, dict):
            return came
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        return (200, {**answer, "result": came}) if new else events(ping, {"jsonrpc": "2.0", "id": 999, "result": {}}, {**answer, "result": came})

    def fails_so(self, kind, *words):
        with self.assertRaises(aod.MCPError) as caught:
            aod.mcp("memory").call("remember", timeout=60)
        self.assertEqual(kind, caught.exception.kind, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_a_session_is_kept_and_named(self):
        self.grant()
        self.assertEqual("did remember", aod.mcp("memory").call("remember").text)
        self.assertEqual("did forget", aod.mcp("memory").call("forget").text)
        path, method, headers = self.asked[-2 if self.asked[-1][1] is None else -1]
        self.assertEqual(("/mcp/unit.memory", "tools/call"), (path, method))
        self.assertEqual(("s1", "2025-06-18"), (headers["Mcp-Session-Id"], headers["MCP-Protocol-Version"]))
        begun = [method for _, method, _ in self.asked]
        self.assertEqual(["server/discover", "initialize", "notifications/initialized"], begun[:3])

    def test_a_session_is_ended_with_the_run(self):
        self.grant()
        aod.mcp("memory").call("remember")
        servers.end()
        self.assertEqual([("DELETE", "/mcp/unit.memory", "s1")], self.ended)

    def test_the_newest_way_has_no_session_and_names_what_it_asks(self):
        self.grant(version="2026-07-28")
        self.assertEqual("did remember", aod.mcp("memory").call("remember").text)
        _, _, headers = self.asked[-1]
        self.assertEqual(("2026-07-28", "tools/call", "remember", None), tuple(
            headers.get(key) for key in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id")))

    def test_a_model_has_its_tools_or_the_one_that_is_granted(self):
        self.grant({"name": "note", "capsule": "unit.memory", "tool": "remember", "description": "Notes it."})
        model = self.model(calls(("memory__forget", {}), ("note", {})), final(total=1))
        aod.agent()
        names = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
        self.assertEqual(["memory__forget", "memory__remember", "note", "final_answer"], names)
        self.assertEqual(["did forget", "did remember"], self.told(model))
        self.assertEqual(1, [method for _, method, _ in self.asked].count("initialize"))

    def test_a_refusal_is_told_with_its_hint(self):
        self.grant()
        self.answer = lambda _: problem(403, "forbidden", detail="remember is not granted", hint="grant it in tools.yaml")
        self.fails_so("refused", "remember is not granted; grant it in tools.yaml")
        self.answer = lambda message: (400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "bad"}})
        self.fails_so("refused", "bad")

    def test_a_session_that_is_over_stays_over(self):
        self.grant()
        aod.mcp("memory").call("remember")
        self.answer = lambda _: problem(404, "not_found")
        self.fails_so("ended", "its session is over")
        self.answer = lambda _: {}
        self.fails_so("ended", "its session is over")

    def test_answers_that_are_none_or_too_much_are_told(self):
        self.grant()
        self.answer = lambda _: None
        self.fails_so("refused", "it can't be reached")
        self.answer = lambda _: (200, b"no json")
        self.fails_so("protocol", "it sent no answer")
        self.answer = lambda _: events()
        self.fails_so("protocol", "it sent no answer")
        with mock.patch.object(mcplines, "LINE_BYTES", 1000):
            self.answer = lambda message: {"content": [{"type": "text", "text": "x" * 2000}]}
            self.fails_so("ended", "it sent an event of over")
        servers.end()
        self.version = "2026-07-28"
        with mock.patch.object(mcplines, "LINE_BYTES", 1000):
            self.fails_so("ended", "it sent an answer of over")

    def test_without_a_capsule_api_it_is_told(self):
        self.tools([{"name": "memory", "capsule": "unit.memory"}])
        self.fails_so("refused", "it can't be reached")
