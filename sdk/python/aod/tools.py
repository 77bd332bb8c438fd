"""The tools of an agent: handoffs, functions of src/tools.py, and those of servers (served.py)."""

import copy
import json
import os
import sys

from aod import calls, judged, outgoing, paths, schema, settings, watch
from aod.errors import AgentError, ContractError, ToolError
from aod.files import places

FILE_NOTE = "The name of a file: one of the input, one that an earlier call returned, or one in the workspace."


class Tool:
    """What all kinds have: name, description, and the schema of the arguments.

    prepare and told are called by the agent's thread, in the order of the calls, and run
    by a thread of the call's own.
    """

    limit = None  # seconds for which run is waited for
    prompt = ""  # what the model is told of it before the task

    def __init__(self, entry, whole, description=""):
        self.name = entry["name"]
        self.description = entry.get("description") or description
        self.sequential = bool(entry.get("sequential"))
        self.seconds = settings.seconds(entry.get("timeout"))
        self._view = schema.inlined(whole, "input")
        self.shown = shown(self._view)

    def prepare(self, arguments, files):
        """Return the arguments as run takes them; ToolError says all that is wrong with them."""
        arguments = copy.deepcopy(arguments)  # what the model said stays as it is
        wrong = self._wrong(arguments)
        named = places(self._view, arguments)
        wrong = wrong or files.missing(named, "arguments")
        if wrong:
            raise ToolError(listed("the arguments are wrong:", wrong))
        for holder, key in named:
            holder[key] = self._file(files.find(holder[key]))
        return arguments

    def close(self):
        """Give up what it holds: the agent has ended."""

    def images(self, _result):
        """Return what of a result a model can be shown beside the text."""
        return []

    def _wrong(self, _arguments):
        return []


class Function(Tool):
    """A function of src/tools.py. It takes the arguments by their names, and files as paths."""

    def __init__(self, entry, function):
        parameters = {"input": entry.get("parameters") or {"type": "object"}}
        self._whole = schema.document(parameters, "input")
        super().__init__(entry, self._whole)
        self.limit = self.seconds
        self._function = function
        self._judge = judged.by(parameters, "input", "arguments")

    def run(self, arguments):
        """Call it and return what it returns."""
        result = self._function(**arguments)
        if not hasattr(result, "__await__"):
            return result
        import asyncio

        async def finish():
            return await result

        return asyncio.run(finish())

    def told(self, result, _files):
        """Return the text for the model."""
        return result if isinstance(result, str) else _json(result)

    def _wrong(self, arguments):
        wrong = self._judge.problems(arguments)
        if not wrong:
            schema.fill(self._whole, "input", arguments)
        return wrong

    def _file(self, path):
        return path


class Capsule(Tool):
    """A handoff. Its files are given by name, and those of its result get names."""

    def __init__(self, entry, callee):
        parameters = entry.get("parameters") or callee.get("input") or {"type": "object"}
        super().__init__(entry, schema.document({"input": parameters}, "input"), callee.get("description") or "")
        self._target = entry["capsule"]

    def run(self, arguments):
        """Have the callee run and return its Result."""
        handle = calls.start(self._target, arguments, (), self.seconds)
        try:
            return handle.result(self.seconds)
        except TimeoutError:
            handle.cancel()
            raise ToolError(f"{self._target} had no result after {self.seconds:g} s, and was cancelled") from None

    def told(self, result, files):
        """Return the text for the model."""
        names = {file.name: files.add(file) for file in result.files}
        renamed = {old: new for old, new in names.items() if old != new}
        renamed.update(("/io/output/" + old, new) for old, new in names.items())
        output = outgoing.renamed(result.output, renamed)
        rows = [{"name": names[file.name], "size": file.size_bytes} for file in result.files]
        return _json({"output": output, "files": rows})

    def _file(self, path):
        return outgoing.place(path)


def load(wanted):
    """Return the tools: of tools.yaml and mcp.json all, or those whose names are wanted, and entries that are given."""
    wanted, own = _own(wanted)
    entries, capsules = _entries(wanted), {}
    if any(entry.get("capsule") for entry in entries):
        capsules = watch.capsules("json")
    from_servers = [entry for entry in entries if _is_served(entry, capsules)]
    if from_servers:
        from aod import served
        served.start(from_servers)
    try:
        known = [tool for entry in entries for tool in _tools(entry, capsules)]
    except ContractError as error:
        raise AgentError("setup", f"the parameters of a tool can't be read: {error}") from None
    if "python" in own:
        from aod import code
        known.append(code.Code(known, own["python"]))
    if "skill" in own:
        from aod import skills
        known += skills.load(own["skill"], bool(_loop().get("scripts")), [tool.name for tool in known])
    twice = {tool.name for tool in known if sum(other.name == tool.name for other in known) > 1}
    if twice:
        raise AgentError("setup", f"two tools have the name {min(twice)}")
    return known


def functions():
    """Return the module src/tools.py, None where there is none."""
    capsule = paths.capsule_dir()
    if not os.path.isfile(os.path.join(capsule, "src", "tools.py")):
        return None
    for path in (os.path.join(capsule, "src"), capsule):
        if path not in sys.path:
            sys.path.insert(0, path)
    __import__("src.tools")
    return sys.modules["src.tools"]


def shown(view):
    """Return an inlined schema as a model is told it: plain JSON Schema of an object, without nulls."""
    view = schema.without_nulls(view)
    return {**_shown(view), "type": "object", "properties": _shown(view.get("properties") or {})}


def listed(heading, problems):
    """Return problems below one another."""
    return "\n".join([heading, *(f"- {problem}" for problem in problems)])


def clip(text, most):
    """Return a text of at most so many bytes."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def clean(text):
    """Return a text that has a form in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _shown(value):
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if not isinstance(value, dict):
        return value
    told = {key: _shown(item) for key, item in value.items()}
    if value.get("format") == "file_path":
        del told["format"]
        told["description"] = f"{value['description']} ({FILE_NOTE})" if value.get("description") else FILE_NOTE
    return told


def skills():
    """Return the skills of src/ai/skills, by name."""
    if not os.path.isdir(os.path.join(paths.capsule_dir(), "src", "ai", "skills")):
        return []
    from aod import skills
    return skills.found()


def _loop():
    return settings.agent().get("loop") or {}


def _own(wanted):
    """Return what else is wanted, and of the loop's own tools those that are wanted and granted, with what they are made of."""
    there = {name: made_of for name, made_of in {"python": _loop().get("python"), "skill": skills()}.items() if made_of}
    if wanted is None:
        return None, there
    others = [item for item in wanted if not (isinstance(item, str) and item in there)]
    return others, {name: there[name] for name in there if name in wanted}


def _entries(wanted):
    declared, served = settings.tools(), settings.servers()
    if wanted is None:
        return [*declared, *(_of_server(name) for name in served)]
    by_name = {entry["name"]: entry for entry in declared}
    return [_entry(item, by_name, served) if isinstance(item, str) else item for item in wanted]


def _entry(name, declared, served):
    server, _, tool = name.partition("__")
    if name in declared:
        return declared[name]
    if name in served:
        return _of_server(name)
    if server in served:
        return {**_of_server(server), "shown": name}
    raise AgentError("setup", f"neither tools.yaml nor mcp.json has a tool {name!r}")


def _of_server(name):
    return {"name": name, "server": True}


def _is_served(entry, capsules):
    callee = capsules.get(entry.get("capsule"))
    return bool(entry.get("server")) or bool(callee) and callee.get("kind") == "mcp"


def _tools(entry, capsules):
    if not _is_served(entry, capsules):
        return [_tool(entry, capsules)]
    from aod import served
    found = served.tools(entry)
    if not found and entry.get("shown"):
        raise AgentError("setup", f"the server {entry['name']} has no tool {entry['shown']!r}")
    return found


def _tool(entry, capsules):
    name, target = entry["name"], entry.get("capsule")
    if target:
        if target not in capsules:
            raise AgentError("setup", f"the tool {name} calls {target}, which isn't there or may not be called")
        return Capsule(entry, capsules[target])
    function = entry.get("function") or getattr(functions(), name.replace("-", "_"), None)
    if not callable(function):
        raise AgentError("setup", f"src/tools.py has no function {name.replace('-', '_')}, which tools.yaml declares")
    return Function(entry, function)


def _json(value):
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"what the tool returned has no JSON form: {error}") from None
