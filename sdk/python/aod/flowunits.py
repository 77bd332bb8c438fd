"""Nodes whose work is a run of another unit, and calls from async nodes. See aod.flow."""

import copy
import json
import os
import re
import threading
import weakref

from aod import address
from aod.flownodes import FlowError, Node

CALLS_AT_ONCE = 64  # of one event loop; others wait for their turn

_turns: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by event loop


class UnitNode(Node):
    """Runs a unit by a handoff.

    args are the unit's parameters and the keys of the shared state that have their values; a
    key may have dots, that lead into dicts and lists. files are the same, where the values are
    paths of files, or lists of them. The output is put into shared[output_key]: a field that
    the unit's contract calls a file is a File there, which open() takes, and which may be an
    argument of another unit. timeout is that of a handoff, of each try.
    """

    def __init__(self, unit, args=None, output_key=None, files=None, timeout=None, max_retries=1, wait=0):
        super().__init__(max_retries, wait)
        self.unit = unit
        self.args = dict(args or {})
        self.files = dict(files or {})
        self.output_key = output_key
        self.timeout = timeout  # AOD keeps it

    def _limited(self, prep_res):
        return self.exec(prep_res)

    def prep(self, shared):
        """Return the arguments: by parameter. Those of files are path-like."""
        from pathlib import Path

        args = {name: value_at(shared, key, self.unit) for name, key in self.args.items()}
        for name, key in self.files.items():
            value = value_at(shared, key, self.unit)
            args[name] = [Path(each) for each in value] if isinstance(value, (list, tuple)) else Path(value)
        return args

    def exec(self, prep_res):
        """Make the handoff, and return the output."""
        import aod

        files = {name: value for name, value in prep_res.items() if _is_files(value)}
        args = {name: value for name, value in prep_res.items() if name not in files}
        return with_files(aod.handoff(self.unit, args, files=files, timeout=self.timeout))

    def post(self, shared, prep_res, exec_res):
        """Put the output into the shared state."""
        if self.output_key is not None:
            shared[self.output_key] = exec_res


class ToolNode(UnitNode):
    """Runs a unit as a tool: arg_mapping are its parameters and the keys of their values."""

    def __init__(self, unit, arg_mapping=None, output_key=None, **more):
        super().__init__(unit, arg_mapping, output_key, **more)


class AgentNode(UnitNode):
    """Runs a unit as an agent: its parameter `field`, by default named as input_key, is what
    the shared state has at input_key."""

    def __init__(self, unit, input_key="input", output_key="output", *, field=None, **more):
        super().__init__(unit, {field or input_key: input_key}, output_key, **more)


class ModelNode(UnitNode):
    """Asks a model by a unit with the contract of the example `model`, and puts the text of the
    answer into shared[output_key].

    In the template {key} stands for the value of each of the input_keys: a text as it is,
    anything else as JSON. What values hold is never filled in, and other braces are text.
    """

    def __init__(self, prompt_template, input_keys=(), output_key="answer", *, unit="model", **more):
        super().__init__(unit, output_key=output_key, **more)
        self.prompt_template = prompt_template
        self.input_keys = tuple(input_keys)

    def prep(self, shared):
        """Return the prompt as the unit's argument."""
        texts = {key: _text(value_at(shared, key, self.unit)) for key in self.input_keys}
        return {"prompt": "".join(texts[part] if is_key else part for part, is_key in self.parts())}

    def parts(self):
        """Return the template's parts: texts, and keys with True."""
        keys = "|".join(re.escape(key) for key in sorted(self.input_keys, key=len, reverse=True))
        parts = re.split(r"\{(" + keys + r")\}", self.prompt_template) if keys else [self.prompt_template]
        return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]

    def post(self, shared, prep_res, exec_res):
        """Put the text into the shared state."""
        shared[self.output_key] = exec_res.get("text", "")


class UniversalModelNode(ModelNode):
    """Asks a model (specification "Universal Agents"): that of the name, by AOD's gateway; the
    unit's own without one; or an object that has process(prompt), or is called with it.

    Each {key} of the template that the shared state has may be filled in; see ModelNode.
    """

    def __init__(self, model=None, prompt_template="{input}", output_key="output", **more):
        super().__init__(prompt_template, re.findall(r"\{([A-Za-z_][\w.-]*)\}", prompt_template), output_key, unit=None, **more)
        self.model = model

    def exec(self, prep_res):
        """Ask the model, and return the text of the answer."""
        if self.model is None or isinstance(self.model, str):
            import aod

            return {"text": aod.ask(prep_res["prompt"], system="", model=self.model).text}
        return {"text": _processed(self.model, prep_res["prompt"])}


class UniversalToolNode(ToolNode):
    """Uses a tool (specification "Universal Agents"): a unit by its name, with a method_name a
    tool of that unit's or server's (see aod.mcp); or the method of an object.

    arg_mapping are keys of the shared state, and the arguments that get their values.
    """

    def __init__(self, tool, method_name=None, arg_mapping=None, output_key="output", **more):
        args = {name: key for key, name in (arg_mapping or {}).items()}
        plain = isinstance(tool, str) and method_name is None
        super().__init__(tool if plain else None, args, output_key, **more)
        self.tool = tool
        self.method_name = method_name

    def exec(self, prep_res):
        """Use the tool, and return its result."""
        if self.unit is not None:
            return super().exec(prep_res)
        if isinstance(self.tool, str):
            import aod

            result = aod.mcp(self.tool).call(self.method_name, prep_res, timeout=self.timeout)
            return result.text if result.structured is None else result.structured
        return _plain((getattr(self.tool, self.method_name) if self.method_name else self.tool)(**prep_res))


class UniversalAgentNode(AgentNode):
    """Has an agent work (specification "Universal Agents"): a unit by its name, or an object
    that has process(input), or is called with it."""

    def __init__(self, agent, input_key="input", output_key="output", **more):
        super().__init__(agent if isinstance(agent, str) else None, input_key, output_key, **more)
        self.agent = agent

    def exec(self, prep_res):
        """Have the agent work, and return its result."""
        if self.unit is not None:
            return super().exec(prep_res)
        return _processed(self.agent, *prep_res.values())


def _processed(worker, given):
    """Return what an object, or a function, makes of the input."""
    work = getattr(worker, "process", worker)
    if not callable(work):
        raise FlowError(f"a {type(worker).__name__} has no process(input), and isn't a function")
    return _plain(work(given))


def _plain(result):
    """Return a result without the log that the specification's objects give beside it."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result[0]
    return result


def call(unit, args=None, /, *, files=(), timeout=None, **more):
    """Run a unit from an async node: `result = await call("hello", name="Ada")`.

    It is aod.handoff that holds nothing up. When the one who waits is cancelled, so is the
    unit's run. Of one event loop 64 calls go on at a time.
    """
    return _Call(unit, {**(args or {}), **more}, files, timeout, address.key()).result()


class _Call:
    """A handoff in a thread of its own."""

    def __init__(self, *asked):
        self._asked = asked
        self._handle = None
        self._unwanted = False
        self._lock = threading.Lock()

    async def result(self):
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in _turns:
            _turns[loop] = asyncio.Semaphore(CALLS_AT_ONCE)
        async with _turns[loop]:
            future = loop.create_future()
            thread = threading.Thread(target=self._run, args=(loop, future), daemon=True)
            thread.start()
            try:
                result = await future
            except asyncio.CancelledError:
                threading.Thread(target=self._cancel, daemon=True).start()
                raise
            finally:
                if future.done() and not future.cancelled():
                    thread.join()  # it has nothing left to do
        return result

    def _run(self, loop, future):
        from aod import calls

        try:
            handle = calls.start(*self._asked)
            with self._lock:
                self._handle = handle
            if self._unwanted:
                self._cancel()
            settle, value = future.set_result, handle.result()
        except BaseException as error:
            settle, value = future.set_exception, error
        try:
            loop.call_soon_threadsafe(lambda: future.done() or settle(value))
        except RuntimeError:
            pass  # the loop has ended: nobody waits

    def _cancel(self):
        from aod.errors import HandoffError

        with self._lock:
            self._unwanted = True
            handle = self._handle
        try:
            if handle:
                handle.cancel()
        except HandoffError:
            pass  # it ends with the run that asked for it


def with_files(result):
    """Return the output of a Result, with Files in the place of the names of files."""
    output = copy.deepcopy(result.output)
    for file in result.files:
        if file.field:
            _put(output, file.field.split("."), file)
    return output


def value_at(shared, key, who):
    """Return what the shared state has at a key, whose dots may lead into dicts and lists."""
    value = shared
    for part in [key] if key in shared else key.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise FlowError(f"{who}: the shared state has no {key!r}; it has {', '.join(map(repr, shared)) or 'nothing'}")
    return value


def _put(value, path, file):
    """Put the file where its name stands at the path, or in the list there."""
    *parents, last = path
    for part in parents:
        value = _member(value, part)
    found = _member(value, last)
    if isinstance(found, list):
        found[:] = [file if file.is_named(each) else each for each in found]
    elif found is not None and file.is_named(found):
        value[last if isinstance(value, dict) else int(last)] = file


def _member(value, part):
    if isinstance(value, dict):
        return value.get(part)
    return value[int(part)] if isinstance(value, list) and part.isdecimal() and int(part) < len(value) else None


def _is_files(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(each, os.PathLike) for each in value)
    return isinstance(value, os.PathLike)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
