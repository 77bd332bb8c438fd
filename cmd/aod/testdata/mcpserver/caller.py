"""A capsule that talks with an MCP server by plain HTTP."""
import json, urllib.error, urllib.request

given = json.load(open("/io/input.json"))
session = ""


def ask(path, message=None):
    global session
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers["Mcp-Session-Id"] = session
    data = None if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:7070" + path, data, headers)) as r:
            session = r.headers.get("Mcp-Session-Id") or session
            return r.status, json.loads(r.read() or "null")
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


def begin(unit):
    global session
    session = ""
    return ask("/mcp/" + unit, {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}})


said = []
for step in given["steps"]:
    if "unit" in step:
        unit = step["unit"]
        status, body = begin(unit)
        said.append({"status": status, "code": body.get("code", ""), "rule": body.get("rule", "")})
    else:
        status, body = ask("/mcp/" + unit, {"id": len(said), "method": "tools/call", "params": {"name": step["tool"], "arguments": {}}})
        if "error" in body:
            said.append({"error": body["error"]["message"]})
        else:
            said.append({"text": body["result"]["content"][0]["text"]})
status, body = ask("/capsules")
kinds = {name: c.get("kind", "") for name, c in body["capsules"].items()}
json.dump({"said": said, "kinds": kinds}, open("/io/output.json", "w"))
