"""A server of tools on stdin and stdout. Its argument says how it behaves: well, or in which way not."""

import base64
import json
import os
import resource
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else "new"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
ANY = {"type": "object"}
TOOLS = [
    {"name": "search", "description": "Finds notes.", "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"query": {"$ref": "#/$defs/text"}},
        "required": ["query"], "$defs": {"text": {"type": "string"}},
    }},
    {"name": "draw.it", "title": "Draws.", "inputSchema": ANY},
    {"name": "read", "inputSchema": {"type": "object", "properties": {"file": {"type": "string", "format": "file_path"}}}},
    *({"name": name} for name in ("fail", "slow", "count", "where", "sleep", "cancelled", "pid", "twice")),
]
NOTHING = dict.fromkeys((
    "title", "description", "properties", "required", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not", "$ref",
    "$defs", "definitions", "enum", "default", "examples", "format", "minimum", "exclusiveMinimum", "type", "x-of-its-own",
))
NULLS = (
    ("empty", {**NOTHING, "type": "object"}),
    ("none", None),
    ("full", {
        "type": "object", "required": ["of"], "$defs": {"word": {**NOTHING, "type": "string"}}, "properties": {
            "of": {**NOTHING, "$ref": "#/$defs/word"}, "anything": None,
            "mark": {**NOTHING, "type": ["string", "null"], "enum": ["a", None], "examples": [None]},
            "only": {**NOTHING, "const": None},
            "rows": {**NOTHING, "type": "array", "items": {"anyOf": [{**NOTHING, "type": "null"}, {"const": {"a": None}}]}},
        },
    }),
)
seen = []  # notifications


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(*texts, **more):
    return {"content": [{"type": "text", "text": item} for item in texts], **more}


def tool(name, given, meta):
    if name == "search":
        return text(f"found {given['query']}", structuredContent={"query": given["query"]})
    if name == "draw.it":
        data = base64.b64encode(PNG).decode()
        return {"content": [
            {"type": "text", "text": "drawn"}, {"type": "image", "data": data, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "notes://1", "mimeType": "text/plain", "text": "a note"}},
            {"type": "resource_link", "uri": "notes://2", "name": "two"}, {"type": "strange"},
        ]}
    if name == "read":
        with open(given["file"]) as file:
            return text(file.read())
    if name == "fail":
        return text("no such note", isError=True)
    if name == "count" and how == "holds":  # until the test has heard of it
        say({"method": "notifications/progress", "params": {"progressToken": meta["progressToken"], "progress": 1}})
        while not os.path.exists("../go"):
            time.sleep(0.01)
        return {"content": [], "structuredContent": {"n": 2}}
    if name == "count":
        for number in (1, 10**400, "x", None, [], float("nan"), True, 2):
            say({"method": "notifications/progress", "params": {"progressToken": meta["progressToken"], "progress": number, "total": 2}})
        say({"method": "notifications/progress", "params": [1]})
        say({"method": ["x"]})
        return {"content": [], "structuredContent": {"n": 2}}
    if name == "twice":
        return text('{"n":2}', structuredContent={"n": 2})
    if name == "where":
        return text(f"{os.getcwd()} {os.environ.get('WHO')} {seen}")
    if name == "pid":
        return text(str(os.getpid()))
    if name == "cancelled":
        return text(json.dumps([note for note in seen if note["method"] == "notifications/cancelled"]))
    return None  # sleep: no answer


def listed(cursor):
    if how == "pages":
        number = int(cursor or 0)
        return {"tools": [{"name": f"t{number}"}], **({"nextCursor": str(number + 1)} if number < 4 else {})}
    if how == "endless":
        return {"tools": [], "nextCursor": "again"}
    if how == "many":
        return {"tools": [{"name": f"t{number}", "inputSchema": ANY} for number in range(100_000)]}
    if how == "noname":
        return {"tools": [{"name": 7}]}
    if how == "longname":
        return {"tools": [{"name": "n" * 70, "inputSchema": ANY}]}
    if how == "badschema":
        return {"tools": [{"name": "bad", "inputSchema": {"type": "object", "properties": []}}]}
    if how == "nulls":
        return {"tools": [{"name": name, "title": None, "description": None, "inputSchema": given} for name, given in NULLS]}
    return {"tools": TOOLS}


def misbehave(number):
    """What a hostile server does in place of an answer to a call."""
    out = sys.stdout.buffer
    if how == "longline":
        part = b"x" * (1 << 20)
        out.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "' % number)
        for _ in range(1024):
            out.write(part)
        out.write(b'"}}\n')
    elif how == "endlessnoise":
        while True:
            out.write(b"noise, nothing but noise\n")
    elif how == "muchnoise":
        out.write(b"noise, nothing but noise\n" * 1000)
        out.flush()
        say({"id": number, "result": text("ok")})
    elif how == "deep":
        out.write(b"[" * 10_000 + b"\n" + b'{"a":' * 10_000 + b"\n")
    elif how == "values":
        out.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": [' % number + b"[]," * 2_000_000 + b"[]]}}\n")
    elif how == "exit":
        sys.stderr.write("the disk of notes is broken\n")
        out.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"conte' % number)
        out.flush()
        os._exit(3)
    elif how == "closes":
        os.close(1)
        time.sleep(600)
    elif how == "bomb":
        resource.setrlimit(resource.RLIMIT_NPROC, (200, 200))
        while True:
            try:
                os.fork()
            except OSError:
                time.sleep(0.01)
    elif how == "deaf":
        time.sleep(600)
    elif how == "foreign":
        for strange in (number + 7, str(number), float(number) + 0.5, True, None, [number], -1):
            say({"id": strange, "result": text("not yours")})
        say({"id": number, "result": text("first")})
        say({"id": number, "result": text("second")})
    elif how == "asks":
        say({"id": "a", "method": "ping"})
        say({"id": "b", "method": "sampling/createMessage", "params": {}})
        answers = [json.loads(sys.stdin.readline()) for _ in range(2)]
        say({"id": number, "result": text(json.dumps(answers))})
    elif how == "noise":
        sys.stdout.write("hello, I am a print\n\n[1, 2]\n\"text\"\n{broken\n\xff\n")
        say({"id": number, "result": text("ok")})
    elif how == "noresult":
        say({"id": number, "result": [1]})
    elif how == "refuses":
        say({"id": number, "error": {"code": -32602, "message": "unknown tool"}})
    elif how == "askback":
        say({"id": number, "result": {"resultType": "input_required", "inputRequests": {}}})
    elif how == "orphan":  # a child of its own keeps its stdout
        if os.fork() == 0:
            time.sleep(600)
        os._exit(4)
    else:
        return False
    out.flush()
    return True


def answer(message):
    method, number, params = message["method"], message.get("id"), message.get("params") or {}
    seen.append({"method": method, "params": params})
    if number is None:
        return
    meta = params.get("_meta") or {}
    new = meta.get("io.modelcontextprotocol/protocolVersion") == "2026-07-28"
    if method == "server/discover" and how != "old":
        say({"id": number, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}})
    elif method == "initialize" and how in ("old", "ancient"):
        version = "2024-11-05" if how == "ancient" else "2025-06-18"
        say({"id": number, "result": {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}})
    elif method in ("tools/list", "tools/call") and how != "old" and not new:
        say({"id": number, "error": {"code": -32602, "message": "no _meta"}})
    elif method == "tools/list" and how == "deepschema":
        schema = '{"properties":{"a":' * 10_000 + "{}" + "}}" * 10_000
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"deep","inputSchema":%s}]}}\n' % (number, schema))
        sys.stdout.flush()
    elif method == "tools/list":
        say({"id": number, "result": listed(params.get("cursor"))})
    elif method == "tools/call":
        if misbehave(number):
            return
        result = tool(params["name"], params["arguments"], meta)
        if result:
            say({"id": number, "result": result})
    elif method == "ping":
        say({"id": number, "result": {}})
    else:
        say({"id": number, "error": {"code": -32601, "message": "no such method"}})


if how == "stillborn":
    sys.exit("no notes here")
for line in sys.stdin:
    answer(json.loads(line))
