"""A client of MCP in a few lines: revision 2026-07-28, which needs no session."""

import http.client
import json

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "mcp-client", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class ToolFailed(Exception):
    pass


class Client:
    def __init__(self, host: str = "127.0.0.1", port: int = 7070):
        self.host, self.port, self.count = host, port, 0

    def ask(self, method: str, **params) -> dict:
        """Sends one request, and returns its result."""
        self.count += 1
        body = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": {**params, "_meta": META}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": VERSION,
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        connection = http.client.HTTPConnection(self.host, self.port)
        try:
            connection.request("POST", "/mcp", json.dumps(body), headers)
            answer = last_message(connection.getresponse())
        finally:
            connection.close()
        if "error" in answer:
            raise ToolFailed(answer["error"]["message"])
        return answer["result"]

    def call(self, name: str, arguments: dict) -> dict:
        """Calls a tool, and returns its result."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        if result.get("isError"):
            raise ToolFailed(result["content"][0]["text"])
        return result


def last_message(response: http.client.HTTPResponse) -> dict:
    """The answer to a request: alone, or after notifications in a stream of events."""
    text = response.read().decode()
    if response.getheader("Content-Type") == "application/json":
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    return json.loads(data[-1])
