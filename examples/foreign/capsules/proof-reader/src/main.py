"""Entry point: a model that calls tools until it has nothing more to call."""

import json
import os

import yaml

from src.ai import model
from src.utils import handoff

INPUT, OUTPUT = "/io/input", "/io/output"
MAX_TURNS = 40
LOOK_UP = {
    "name": "look_up",
    "description": "Looks a word up in the dictionary, a capsule that may not be there.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


class Desk:
    """The text, and the tools that work on it."""

    def __init__(self, lines):
        self.lines = lines

    def read_line(self, number):
        return self.lines[number - 1]

    def fix_line(self, number, text):
        self.lines[number - 1] = text
        return "done"

    def count_words(self):
        name = "draft.txt"
        with open(os.path.join(handoff.OUTGOING, name), "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines))
        answer = handoff.call("word-counter", {"file": name})
        if not answer["success"]:
            return "error: " + answer["error"]
        with open(os.path.join(handoff.INCOMING, answer["files"][0]), encoding="utf-8") as f:
            return f.read().strip()

    def look_up(self, word):
        answer = handoff.call("dictionary", {"word": word})
        return answer["output"] if answer["success"] else "error: " + answer["error"]

    def use(self, call):
        arguments = json.loads(call["function"]["arguments"] or "{}")
        return getattr(self, call["function"]["name"])(**arguments)


def tools():
    with open("tools.yaml", encoding="utf-8") as f:
        entries = yaml.safe_load(f) + [LOOK_UP]
    nothing = {"type": "object", "properties": {}}
    return [
        {"type": "function", "function": {
            "name": entry["name"], "description": entry["description"], "parameters": entry.get("parameters", nothing),
        }}
        for entry in entries
    ]


def prompts(payload, lines):
    with open("src/ai/system.md", encoding="utf-8") as f:
        system = f.read()
    with open("src/ai/task.md", encoding="utf-8") as f:
        task = f.read().format(prompt=payload["user_prompt"], lines=lines)
    return [{"role": "system", "content": system}, {"role": "user", "content": task}]


def execute(payload):
    with open(os.path.join(INPUT, payload["source_document"]), encoding="utf-8") as f:
        desk = Desk(f.read().splitlines())
    messages, offered = prompts(payload, len(desk.lines)), tools()
    for turn in range(1, MAX_TURNS + 1):
        said = model.ask(messages, offered)
        messages.append(said)
        if not said.get("tool_calls"):
            break
        for call in said["tool_calls"]:
            result = desk.use(call)
            print(f"turn {turn}: {call['function']['name']}: {result}", flush=True)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(result)})
    else:
        raise RuntimeError(f"the model had not ended after {MAX_TURNS} turns")
    with open(os.path.join(OUTPUT, "clean.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(desk.lines) + "\n")
    return {"summary_text": said["content"], "processed_document": "clean.txt", "turns": turn}
