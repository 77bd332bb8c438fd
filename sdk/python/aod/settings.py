"""What a capsule's own files say to its agent: agent.yaml, tools.yaml, mcp.json,
src/ai, schema.json."""

import json
import os
import re
import string

import yaml

from aod import paths
from aod.errors import AgentError

PROMPTS = "src/ai"
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}

_kept = {}  # by path: what was read of a file, which never changes in an image


def agent():
    """Return agent.yaml, {} where there is none."""
    found = _kept_of("agent.yaml", _yaml)
    return found if isinstance(found, dict) else {}


def tools():
    """Return the entries of tools.yaml."""
    found = _kept_of("tools.yaml", _yaml)
    return [entry for entry in found if isinstance(entry, dict) and entry.get("name")] if isinstance(found, list) else []


def servers():
    """Return the entries of mcp.json, by name."""
    found = _kept_of("mcp.json", json.loads)
    found = found.get("mcpServers") if isinstance(found, dict) else None
    return {name: spec for name, spec in found.items() if isinstance(spec, dict)} if isinstance(found, dict) else {}


def contract():
    """Return schema.json, {} where there is none."""
    found = _kept_of("schema.json", json.loads)
    return found if isinstance(found, dict) else {}


def model():
    """Return the name of the model that is asked where the code names none."""
    settings = agent()
    name = settings.get("model") or next(iter(settings.get("models") or ()), None)
    if not name:
        raise AgentError("setup", "agent.yaml names no model", hint="add model: NAME to agent.yaml; `aod models` lists names")
    return str(name)


def prompt(name, values):
    """Return a text of src/ai with the values in the place of their $names; None if it isn't there."""
    where = f"{PROMPTS}/{name}"
    text = _kept_of(where, str)
    return None if text is None else fill(text, values, where)


def fill(text, values, where):
    """Put values into a text once. What they hold is text, whatever stands in it."""
    try:
        return string.Template(text).substitute(_Texts(values))
    except KeyError as error:
        raise AgentError("setup", f"{where}: there is no value for ${error.args[0]}") from None
    except ValueError as error:
        raise AgentError("setup", f"{where}: {error}; write $$ for a $ that stands for itself") from None


def seconds(duration):
    """Return how long a duration such as 1m30s is; None for none."""
    parts = _DURATION.findall(str(duration or ""))
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


def kept(name, make):
    """Return what make returns for the path of what has that name in the capsule: it is made once."""
    path = os.path.join(paths.capsule_dir(), name)
    if path not in _kept:
        _kept[path] = make(path)
    return _kept[path]


class _Texts:
    """Values as a template takes them: a field of the input that was left out is empty."""

    def __init__(self, values):
        self._values = values

    def __getitem__(self, name):
        if name in self._values:
            value = self._values[name]
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        half = contract().get("input")
        if isinstance(half, dict) and name in (half.get("properties") or ()):
            return ""
        raise KeyError(name)


class Loader(yaml.SafeLoader):
    """YAML as AOD reads it: a date is a text, and so are yes and no."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp", ":int"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*)$"), list("-+0123456789"),
)


def _yaml(text):
    return yaml.load(text, Loader)


def _kept_of(name, read):
    return kept(name, lambda path: _read(path, name, read))


def _read(path, name, read):
    try:
        with open(path, encoding="utf-8") as file:
            return read(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise AgentError("setup", f"{name} can't be read: {error}") from None
