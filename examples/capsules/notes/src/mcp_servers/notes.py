"""A server of tools over a folder of notes (Model Context Protocol on stdin and stdout)."""

import json
import os
import pathlib
import sys

NOTES = pathlib.Path(os.environ["NOTES"])
NEWEST = "2026-07-28"
OLDER = ("2025-11-25", "2025-06-18", "2025-03-26")

TOOLS = [
    {
        "name": "search",
        "description": "The lines of notes that hold all the words, each with its note's name.",
        "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    },
    {
        "name": "open",
        "description": "A whole note, by its name. It becomes a file.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
]


def search(words):
    wanted = words.lower().split()
    found = [f"{note.name}: {line}" for note in sorted(NOTES.iterdir()) for line in note.read_text().splitlines()
             if all(word in line.lower() for word in wanted)]
    return {"type": "text", "text": "\n".join(found[:50]) or "no line holds all of these words"}


def open_(name):
    note = NOTES / name
    if note.parent != NOTES or not note.is_file():
        raise ValueError(f"there is no note {name}; there are: " + ", ".join(sorted(note.name for note in NOTES.iterdir())))
    return {"type": "resource", "resource": {"uri": f"notes:{name}", "mimeType": "text/markdown", "text": note.read_text()}}


def call(tool, arguments):
    try:
        return {"content": [{"search": search, "open": open_}[tool](**arguments)]}
    except (KeyError, TypeError, ValueError) as error:  # the model can mend these
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def answer(method, params):
    about = {"capabilities": {"tools": {}}}
    if method == "server/discover":
        return {**about, "resultType": "complete", "supportedVersions": [NEWEST, *OLDER]}
    if method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in OLDER else OLDER[0]
        return {**about, "protocolVersion": version, "serverInfo": {"name": "notes", "version": "1.0.0"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params.get("name"), params.get("arguments") or {})
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
