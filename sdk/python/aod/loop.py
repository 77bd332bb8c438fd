"""The loop of an agent: a model, its tools, and the contract that its answer has to keep."""

import copy
import json
import os
import re
import sys

from aod import calls, dialects, judged, paths, schema, settings, thoughts, tools, watch
from aod.errors import AgentError, ContractError
from aod.files import Files, places
from aod.model import Gateway
from aod.toolbox import ERROR_BYTES, Toolbox

FINAL = "final_answer"
DEFAULTS = {"max_turns": 20, "parallel": 8, "repairs": 2}
NOTED, ENDED = 3, 5  # turns with the same calls and the same results
MOST_TOLD = 20  # findings about one answer

ABOUT_FINAL = "Gives the answer and ends the task. Call it alone, once, when everything else is done."
ONLY_FINAL = f"This is the last turn: call {FINAL} now, with the best answer that you have."
SAME_AGAIN = "The same calls had the same results three times in a row. Do something else, or answer with what you have."
FENCED = re.compile(r"```[\w+-]*[ \t\r]*\n(.*?)```", re.DOTALL)


class Answer:
    """What an agent came to: output (None where text was asked for), text, turns (questions to
    the model), usage (input_tokens, output_tokens, cached_tokens) and messages, as the model
    had them."""

    def __init__(self, output, text, turns, usage, messages):
        self.output = output
        self.text = text
        self.turns = turns
        self.usage = usage
        self.messages = messages

    def __repr__(self):
        return f"Answer({self.turns} turns, {self.usage})"


def agent(task, system, values, wanted, output, model, images, max_turns, parallel, repairs):
    """See aod.agent."""
    numbers = _numbers(max_turns=max_turns, parallel=parallel, repairs=repairs)
    files = Files()
    goal = None if output is str else Goal(output, files)
    known = tools.load(wanted)
    if any(tool.name == FINAL for tool in known):
        raise AgentError("setup", f"a tool may not be called {FINAL}: the loop has one")
    name, gateway = model or settings.model(), Gateway()
    talk = dialects.conversation(name, gateway.facts(name), settings.agent())
    system, task = _instructions(task, system, values)
    system = "\n\n".join(filter(None, [system, *(tool.prompt for tool in known)]))
    talk.open(system, task, [files.image(image) for image in images])
    try:
        return Loop(gateway, talk, known, goal, files, **numbers).run()
    finally:
        for tool in known:
            tool.close()


def without_code():
    """Return the execute function of a capsule that has none: its files say everything."""
    tools.functions()  # loaded while nobody waits, as logic is
    tools.skills()
    settings.tools()
    settings.servers()
    settings.agent()
    settings.contract()

    def execute(_payload):
        return agent(None, None, None, None, None, None, (), None, None, None).output

    return execute


class Goal:
    """The output that is asked for: a schema, and the tool with which the model gives it."""

    name = FINAL
    description = ABOUT_FINAL

    def __init__(self, output, files):
        whole = settings.contract() if output is None else {"output": output}
        self._files = files
        self._judge = judged.by(whole, "output", "output", output is None)
        try:
            self._view = schema.inlined(schema.document(whole, "output"), "output")
        except (ContractError, LookupError) as error:
            raise AgentError("setup", f"the schema of the answer can't be read: {error}") from None
        self.shown = tools.shown(self._view)

    def problems(self, value):
        """List what is wrong with an answer."""
        found = self._judge.problems(value) or self._files.missing(places(self._view, value), "output")
        return found if len(found) <= MOST_TOLD else [*found[:MOST_TOLD], f"and {len(found) - MOST_TOLD} more"]

    def finish(self, value):
        """Return an answer that is right, with its files where results have theirs."""
        value = copy.deepcopy(value)
        for holder, key in places(self._view, value):
            holder[key] = self._files.deliver(holder[key])
        return value

    def read(self, text):
        """Return the answer that a text holds, and what is wrong with it."""
        whole, broken = text.strip(), None
        if _object(whole) is None:
            text = thoughts.cut_all(text)
            whole = text.strip()
        fenced = [part.strip() for part in FENCED.findall(text)]
        for candidate in (whole, *fenced, whole[whole.find("{"):whole.rfind("}") + 1]):
            for value in _meant(candidate):
                found = self.problems(value)
                if not found:
                    return value, []
                broken = broken or found
        begins = fenced[0] if len(fenced) == 1 and whole.startswith("```") and whole.endswith("```") else whole
        is_object = begins.startswith(("{", "<tool_call>")) or whole.startswith("```") and broken
        if self._text_field() and whole and not is_object:
            value = {self._text_field(): whole}
            return value, self.problems(value)
        return None, broken or [f"it isn't a call of {FINAL}, and the text holds no JSON object that keeps the schema"]

    def _text_field(self):
        """Return the name of the only field, if that is a text."""
        fields = self.shown["properties"]
        name = next(iter(fields), None)
        view = (self._view.get("properties") or {}).get(name)
        return name if len(fields) == 1 and view.get("type") == "string" and view.get("format") != "file_path" else None


class Loop:
    """One conversation, from its opening to an Answer or an AgentError."""

    def __init__(self, gateway, talk, known, goal, files, max_turns, parallel, repairs):
        self._gateway = gateway
        self._talk = talk
        self._goal = goal
        self._tools = known
        self._files = files
        self._max_turns = max_turns
        self._parallel = parallel
        self._repairs = repairs
        self._turns = 0
        self._place = calls.agent()
        self._made_room = False
        self._before, self._alike = None, 0

    def run(self):
        """Return the Answer."""
        try:
            while True:
                reply = self._ask()
                answer = self._work(reply) if reply.calls else self._judge(reply)
                if answer:
                    return answer
        except AgentError as error:
            error.turns, error.usage, error.messages = self._turns, self._talk.usage, self._talk.messages
            raise

    def _ask(self):
        self._turns += 1
        document = self._document()
        reply = self._talk.take(document, self._turns)
        if reply.refusal:
            raise AgentError("refusal", f"the model refused: {tools.clip(tools.clean(reply.refusal), 500)}")
        return reply

    def _document(self):
        """Return the model's answer. What is too long for it is made shorter, once."""
        try:
            return self._gateway.ask(self._talk.path, self._talk.body(self._offered()), self._talk.headers)
        except AgentError as error:
            if error.kind != "context_length" or self._made_room or not self._talk.make_room():
                raise
        self._made_room = True
        return self._document()

    def _is_last(self):
        return self._turns >= self._max_turns

    def _offered(self):
        known = () if self._is_last() else self._tools
        return [*known, *([self._goal] if self._goal else [])]

    def _work(self, reply):
        """Run the calls of a reply, unless one of them is the answer."""
        results, wrong = {}, []
        for index, call in enumerate(reply.calls):
            if call.name != FINAL or not self._goal:
                continue
            found = [call.problem] if call.problem else self._goal.problems(copy.deepcopy(call.arguments))
            found = found and _cut(found, reply)
            if not found:
                return self._answer(self._goal.finish(call.arguments), reply.text)
            wrong += found
            results[index] = tools.clip(tools.listed("the answer breaks its contract:", found), ERROR_BYTES), True
        if self._is_last() and not results:
            raise AgentError("max_turns", f"there was no answer after {self._turns} turns")
        if wrong:
            self._spend_repair(wrong)
        self._run_calls(reply, results)
        return None

    def _run_calls(self, reply, results):
        names = [call.name[:64] for call in reply.calls if call.name != FINAL]
        if names:
            watch.progress(None, f"turn {self._turns}: {', '.join(names)}", None)
        known = () if self._is_last() else self._tools
        box = Toolbox(known, self._files, self._parallel, f"{self._place}/turn:{self._turns}")
        came = box.run(reply.calls, results)
        notes = [self._watch([(call.name, call.arguments, text) for call, text, _ in came])]
        if self._turns == self._max_turns - 1 and self._goal:
            notes.append(ONLY_FINAL)
        self._talk.answer(came, "\n".join(filter(None, notes)), box.images)

    def _judge(self, reply):
        """Take a text for the answer, or ask for a better one."""
        if self._goal:
            value, wrong = self._goal.read(reply.text)
        else:
            value, wrong = None, [] if reply.text.strip() else ["it is empty"]
        wrong = _cut(wrong, reply)
        if not wrong:
            return self._answer(self._goal and self._goal.finish(value), reply.text)
        self._spend_repair(wrong)
        ending = f"Call {FINAL} with an answer that keeps its schema." if self._goal else "Answer again."
        self._talk.say(tools.listed("That isn't an answer yet:", wrong) + "\n" + ending)
        return None

    def _spend_repair(self, wrong):
        if self._repairs == 0:
            raise AgentError("invalid_output", "the model's answer breaks its contract: " + "; ".join(wrong)[:2000], findings=wrong)
        self._repairs -= 1

    def _watch(self, came):
        """Return a note where turns are alike, and end the run where they stay so."""
        seen = json.dumps(came, sort_keys=True)
        self._alike = self._alike + 1 if seen == self._before else 1
        self._before = seen
        if self._alike >= ENDED:
            raise AgentError("no_progress", f"the same calls had the same results {ENDED} times in a row")
        return SAME_AGAIN if self._alike == NOTED else None

    def _answer(self, output, text):
        return Answer(output, text, self._turns, self._talk.usage, self._talk.messages)


def _numbers(**given):
    declared = settings.agent().get("loop") or {}
    numbers = {key: declared.get(key, DEFAULTS[key]) if value is None else value for key, value in given.items()}
    for key, value in numbers.items():
        if not isinstance(value, int) or value < (key != "repairs"):
            raise AgentError("setup", f"{key} can't be {value!r}")
    return numbers


def _instructions(task, system, values):
    """Return system and task. Texts of src/ai are filled; a text that is given is, if values are."""
    known = _input() if values is None and None in (system, task) else values
    system = settings.prompt("system.md", known) if system is None else _given(system, values, "system")
    task = settings.prompt("task.md", known) if task is None else _given(task, values, "task")
    if task is None:
        raise AgentError("setup", "there is no task: neither src/ai/task.md nor one that was given")
    return tools.clean(system or "").strip(), tools.clean(task).strip()


def _given(text, values, where):
    return text if values is None else settings.fill(text, values, where)


def _input():
    bridge = sys.modules.get("aod.bridge")
    if bridge and bridge.payload is not None:
        return bridge.payload
    try:
        with open(os.path.join(paths.io_dir(), "input.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise ContractError(f"there is no input for the prompts: {error}") from None


def _cut(wrong, reply):
    """Say of an answer that was cut off, too, that it was."""
    return [*wrong, "it was cut off at the most tokens that an answer may have: answer shorter"] if reply.cut else wrong


def _meant(text):
    """Return the objects that a text may mean: what it says, and before that the arguments of a call written out."""
    value = _object(text)
    if value is None:
        return []
    written = [value.get(key) for key in ("arguments", "parameters")] if value.get("name") == FINAL else []
    return [*(each for each in written if isinstance(each, dict)), value]


def _object(text):
    try:
        value = dialects.json_of(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
