"""An agent that speaks the line format of claude-code on stdin and stdout.

It asks a model at OPENAI_BASE_URL, which may have it write files of the directory that it was
started in. It asks to be permitted each. Its sessions are files in its home: --resume goes on
with one.
"""

import argparse
import json
import os
import pathlib
import sys
import urllib.request
import uuid

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
ROUNDS = 8  # of a turn: requests to the model
WRITE = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Writes a text file of the project, in place of an earlier one.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
}


class Interrupted(Exception):
    """The turn is to end."""


class Session:
    """What was said, which the model reads again each time."""

    def __init__(self, resumed):
        self.id = resumed or str(uuid.uuid4())
        self.file = pathlib.Path.home() / ".stream-json" / f"{uuid.UUID(self.id)}.json"
        self.messages = json.loads(self.file.read_text("utf-8")) if resumed else []

    def save(self):
        self.file.parent.mkdir(exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.messages), "utf-8")
        fresh.replace(self.file)


class Agent:
    def __init__(self, session):
        self.session = session
        self.usage = {"input_tokens": 0, "output_tokens": 0}

    def say(self, kind, **fields):
        print(json.dumps({"type": kind, "session_id": self.session.id, **fields}), flush=True)

    def turn(self, text):
        self.say("system", subtype="init", cwd=os.getcwd(), model=MODEL, tools=["write_file"])
        self.usage = dict.fromkeys(self.usage, 0)
        before = len(self.session.messages)
        self.session.messages.append({"role": "user", "content": text})
        try:
            answer, problem = self.work(), ""
        except Interrupted:
            answer, problem = "", "error_during_execution"
        except (OSError, ValueError, KeyError) as failed:
            answer, problem = str(failed), "error_during_execution"
        if problem:
            del self.session.messages[before:]
        self.session.save()
        self.say("result", subtype=problem or "success", is_error=bool(problem), result=answer, usage=self.usage)

    def work(self):
        for _ in range(ROUNDS):
            message = self.ask_model()
            self.session.messages.append(message)
            blocks = [{"type": "text", "text": message["content"]}] if message.get("content") else []
            calls = message.get("tool_calls") or []
            for call in calls:
                arguments = json.loads(call["function"]["arguments"])
                blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
            self.say("assistant", message={"role": "assistant", "content": blocks})
            if not calls:
                return message.get("content") or ""
            for block in [each for each in blocks if each["type"] == "tool_use"]:
                done = self.use(block)
                self.session.messages.append({"role": "tool", "tool_call_id": block["id"], "content": done})
                result = {"type": "tool_result", "tool_use_id": block["id"], "content": done}
                self.say("user", message={"role": "user", "content": [result]})
        raise ValueError(f"the model came to no end within {ROUNDS} requests")

    def ask_model(self):
        body = {"model": MODEL, "messages": self.session.messages, "tools": [WRITE]}
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
        )
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        used = answer.get("usage") or {}
        self.usage["input_tokens"] += used.get("prompt_tokens", 0)
        self.usage["output_tokens"] += used.get("completion_tokens", 0)
        return answer["choices"][0]["message"]

    def use(self, block):
        allowed, why = self.permitted(block)
        if not allowed:
            return f"not permitted: {why}"
        given = block["input"]
        root = pathlib.Path.cwd()
        path = (root / given["path"]).resolve()
        if root not in path.parents:
            return "the path leads out of the project"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given["content"], "utf-8")
        return "written"

    def permitted(self, block):
        wanted = str(uuid.uuid4())
        request = {"subtype": "can_use_tool", "tool_name": block["name"], "input": block["input"], "tool_use_id": block["id"]}
        self.say("control_request", request_id=wanted, request=request)
        for line in sys.stdin:
            message = json.loads(line)
            response = message.get("response", {})
            if message.get("request", {}).get("subtype") == "interrupt":
                raise Interrupted
            if message["type"] == "control_response" and response.get("request_id") == wanted:
                decision = response.get("response", {})
                return decision.get("behavior") == "allow", decision.get("message", "")
        raise Interrupted


options = argparse.ArgumentParser()
options.add_argument("--resume")
agent = Agent(Session(options.parse_args().resume))
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "user":
        content = message["message"]["content"]
        agent.turn(content if isinstance(content, str) else "".join(each.get("text", "") for each in content))
