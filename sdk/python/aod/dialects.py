"""Conversations in the words of Chat Completions and of Messages.

Whatever is sent stays as it was sent, and in its order: so providers find it in their
caches, and a replay finds it in its record.
"""

import json

from aod import thoughts
from aod.errors import AgentError

SHORT = 256  # characters of a tool's result that isn't worth leaving out
LEFT_OUT = "[{} characters were left out here to make room]"
OF_RESULTS = "The images of the results, in their order."
OUTPUT_TOKENS = 8192  # of an answer in Messages, which has to say a number


class Call:
    """A tool call of the model: id, name, arguments (a dict), or what is wrong with them."""

    def __init__(self, identity, name, arguments, problem=None):
        self.id = identity
        self.name = name
        self.arguments = arguments
        self.problem = problem


class Reply:
    """What the model said: text (without what it thought), calls, why it refused ("" if it
    didn't), whether it was cut off."""

    def __init__(self, text, calls, refusal, cut):
        self.text = thoughts.cut(text)
        self.calls = calls
        self.refusal = refusal
        self.cut = cut


def conversation(name, facts, settings):
    """Return an empty conversation with a model, in a dialect that it speaks, or else one that is translated for it."""
    dialects = facts.get("dialects") or ["chat"]
    if "chat" in dialects:
        return Chat(name, facts, settings)
    if "messages" in dialects:
        return Messages(name, facts, settings)
    if "chat" in (facts.get("translated") or ()):
        return Chat(name, facts, settings)
    raise AgentError("setup", f"the model {name} speaks neither chat nor messages, but {', '.join(map(str, dialects))}")


class Conversation:
    """What both dialects have: the messages, and what the answers took."""

    headers: dict[str, str] = {}

    def __init__(self, name, facts, settings):
        self.messages = []
        self.usage = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}
        self._name = name
        self._sees = facts.get("images") is True
        self._most = settings.get("max_tokens") or facts.get("max_output") or OUTPUT_TOKENS
        self._temperature = settings.get("temperature")

    def say(self, text):
        """Add something that a person would say."""
        self.messages.append({"role": "user", "content": text})

    def make_room(self):
        """Leave out the results of tools before the last answer; say whether there were any."""
        answers = [index for index, message in enumerate(self.messages) if message["role"] == "assistant"]
        left_out = 0
        for holder in self._results(self.messages[:answers[-1]] if answers else ()):
            content = holder["content"]
            if isinstance(content, str) and len(content) > SHORT:
                holder["content"] = LEFT_OUT.format(len(content))
                left_out += 1
        return left_out > 0

    def _request(self, **more):
        body = {"model": self._name, **more}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        return body

    def _count(self, taken, given, cached):
        for key, number in zip(self.usage, (taken, given, cached)):
            self.usage[key] += number if isinstance(number, int) else 0


class Chat(Conversation):
    """OpenAI's Chat Completions."""

    path = "/chat/completions"

    def open(self, system, task, images):
        """Begin with the instructions, the task and images: (media type, base64)."""
        if system:
            self.messages.append({"role": "system", "content": system})
        self._say(task, images)

    def body(self, tools):
        """Return the next request, which offers the tools."""
        shown = [{"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.shown,
        }} for tool in tools]
        return self._request(messages=self.messages, **({"tools": shown} if shown else {}))

    def take(self, document, turn):
        """Add the model's answer and return it as a Reply."""
        usage = _dict(document.get("usage"))
        cached = _dict(usage.get("prompt_tokens_details")).get("cached_tokens")
        self._count(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
        choice = _dict(next(iter(_list(document.get("choices"))), None))
        message, reason = _dict(choice.get("message")), choice.get("finish_reason")
        raw = [_dict(call) for call in _list(message.get("tool_calls"))]
        calls = [_call(call, f"call_{turn}_{index}") for index, call in enumerate(raw)]
        text = _text_of(message.get("content"))
        if calls:
            sent = [_sent(one, call) for one, call in zip(raw, calls)]
            self.messages.append({"role": "assistant", "content": text or None, "tool_calls": sent})
        elif text:
            self.messages.append({"role": "assistant", "content": text})
        filtered = "its filter stopped the answer" if reason == "content_filter" else ""
        refusal = message.get("refusal") or _text_of(message.get("content"), "refusal") or filtered
        return Reply(text, calls, str(refusal), reason == "length")

    def answer(self, results, note, images=()):
        """Add the results of calls, (call, text, whether it went wrong), what else there is to
        say, and the images of the results for a model that takes them."""
        for call, text, _ in results:
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        images = images if self._sees else ()
        if note or images:
            self._say(note or OF_RESULTS, images)

    def _say(self, text, images):
        parts = [{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}} for kind, data in images]
        self.say([{"type": "text", "text": text}, *parts] if parts else text)

    def _results(self, messages):
        return [message for message in messages if message["role"] == "tool"]


class Messages(Conversation):
    """Anthropic's Messages."""

    path = "/messages"
    headers = {"anthropic-version": "2023-06-01"}

    def open(self, system, task, images):
        """Begin with the instructions, the task and images: (media type, base64)."""
        self._system = system
        self.say([*_pictures(images), {"type": "text", "text": task}])

    def body(self, tools):
        """Return the next request, whose last block marks what is worth keeping in a cache."""
        *before, last = self.messages
        blocks = last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
        marked = {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]}
        shown = [{"name": tool.name, "description": tool.description, "input_schema": tool.shown} for tool in tools]
        return self._request(
            max_tokens=self._most, **({"system": self._system} if self._system else {}),
            messages=[*before, marked], **({"tools": shown} if shown else {}),
        )

    def take(self, document, turn):
        """Add the model's answer and return it as a Reply."""
        usage = _dict(document.get("usage"))
        numbers = [usage.get(key) for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]
        self._count(sum(n for n in numbers if isinstance(n, int)), usage.get("output_tokens"), numbers[1])
        blocks = [_dict(block) for block in _list(document.get("content"))]
        blocks = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        calls = [Call(str(use.get("id")), str(use.get("name")), *_arguments(use.get("input"))) for use in uses]
        sent = {id(use): {**use, "input": call.arguments} for use, call in zip(uses, calls)}
        if blocks:
            self.messages.append({"role": "assistant", "content": [sent.get(id(block), block) for block in blocks]})
        text = "".join(str(block["text"]) for block in blocks if block.get("type") == "text")
        reason = document.get("stop_reason")
        return Reply(text, calls, "it gave no reason" if reason == "refusal" else "", reason == "max_tokens")

    def answer(self, results, note, images=()):
        """Add the results of calls, (call, text, whether it went wrong), what else there is to
        say, and the images of the results for a model that takes them."""
        blocks = [{
            "type": "tool_result", "tool_use_id": call.id, "content": text, **({"is_error": True} if wrong else {}),
        } for call, text, wrong in results]
        blocks += _pictures(images if self._sees else ())
        self.say([*blocks, {"type": "text", "text": note}] if note else blocks)

    def _results(self, messages):
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        return [block for block in blocks if block.get("type") == "tool_result"]


def _pictures(images):
    return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}} for kind, data in images]


def _call(raw, identity):
    function = _dict(raw.get("function"))
    given, problem = _arguments(function.get("arguments"))
    return Call(str(raw.get("id") or identity), str(function.get("name")), given, problem)


def _arguments(given):
    """Return the arguments of a call, and what is wrong with them. Nothing, null and [] are what some send where
    a tool takes nothing."""
    if isinstance(given, str):
        try:
            given = json_of(given) if given.strip() else {}
        except (ValueError, RecursionError) as error:
            return {}, f"the arguments aren't JSON: {error}"
    if given is None or given == []:
        given = {}
    return (given, None) if isinstance(given, dict) else ({}, "the arguments aren't a JSON object")


def json_of(text):
    """Return what a text of a model says in JSON. Line ends within its strings are none of JSON's, and plain enough."""
    return json.loads(text, strict=False, parse_constant=_no_number)


def _no_number(name):
    raise ValueError(f"{name} isn't a number")


def _sent(raw, call):
    """Return a call as it goes back: some servers choke on arguments that are broken."""
    function = {**_dict(raw.get("function")), "name": call.name}
    if not call.arguments or not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(call.arguments)
    return {**raw, "id": call.id, "type": "function", "function": function}


def _text_of(content, kind="text"):
    if isinstance(content, list):
        parts = [part for part in map(_dict, content) if part.get("type", "text") in (kind, "output_" + kind)]
        return "".join(str(part.get(kind) or "") for part in parts)
    return content if isinstance(content, str) and kind == "text" else ""


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, list) else []
