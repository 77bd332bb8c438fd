"""A capsule that does its input's steps at /mcp by plain HTTP, without a session."""
import json, urllib.error, urllib.request

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": "p"}
size = 0  # bytes of JSON, both ways


def ask(method, params):
    """Returns the messages of an answer, notifications first."""
    global size
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": VERSION, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    try:
        answer = urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:7070/mcp", body, headers))
    except urllib.error.HTTPError as e:
        answer = e
    text = answer.read().decode()
    size += len(body) + len(text)
    return [json.loads(line.removeprefix("data:")) for line in text.splitlines() if line.startswith(("data:", "{"))]


said, link = [], ""
for step in json.load(open("/io/input.json"))["steps"]:
    if not step.get("name"):
        said.append({"tools": [t["name"] for t in ask("tools/list", {})[-1]["result"]["tools"]]})
        continue
    arguments = {k: link if v == "LINK" else v for k, v in (step.get("arguments") or {}).items()}
    *told, last = ask("tools/call", {"name": step["name"], "arguments": arguments})
    heard = {"told": [m["params"] for m in told if m.get("method") == "notifications/progress"]}
    if "error" in last:
        heard["code"] = last["error"]["code"]
    else:
        result = last["result"]
        heard["failed"], heard["text"] = bool(result.get("isError")), result["content"][0]["text"]
        link = next((c["uri"] for c in result["content"] if c["type"] == "resource_link"), link)
    said.append(heard)
json.dump({"said": said, "size": size}, open("/io/output.json", "w"))
