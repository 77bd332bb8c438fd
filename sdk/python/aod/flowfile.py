"""Flows as documents: the form of flow.yaml. See aod.flow.

What Python can do by itself has classes: units, models, scopes, flows. The rest of flow.yaml
(maps, questions, expressions) is a Declared node: it stands in the graph as it was written, and
AOD runs it. Nodes that are code are {code: "module:Class"}, which AOD refuses in a flow.yaml:
they become capsules (aod.flow.capsule) first.
"""

import importlib
import json
import re

from aod.flownodes import AsyncNode, BaseNode, End, FlowError, Node
from aod.flowscope import Scope
from aod.flowunits import ModelNode, UnitNode
from aod.flowwalk import AsyncFlow, Flow, Names

_OUT, _TEXT = "${{ out }}", "${{ out.text }}"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")  # a path in an expression
_OF_STATE = re.compile(r"\$\{\{ (state|out)(?:\.([A-Za-z0-9_.]+)|\[(\"(?:[^\"\\]|\\.)*\")\]) \}\}")
_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}  # in some YAML or other
_OF_SCOPE = {"start", "nodes", "max_steps"}


class Declared(BaseNode):
    """A node of flow.yaml that AOD runs, and Python doesn't: spec is what the file says of it."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec

    def _run(self, shared):
        raise FlowError(f"the node {self._name or ''} ({', '.join(self.spec)}) is run by AOD alone: write the flow to a flow.yaml")


def to_dict(flow):
    """Return the flow in the form of flow.yaml, as JSON has it.

    A node's name is the one that it had in from_dict, else made of its unit or class. Raises
    FlowError for what has no such form.
    """
    return {**_scope_of(flow), **(flow._around or {})}


def from_dict(document):
    """Return the Flow of such a document: what to_dict gave, or a flow.yaml that was parsed.

    Nodes of code are imported: take documents that you trust. Raises FlowError for what is no
    flow; `aod validate` says more.
    """
    flow = _flow_of(document, "the flow")
    flow._around = {key: value for key, value in document.items() if key not in _OF_SCOPE}
    return flow


def to_yaml(flow):
    """Return to_dict as YAML: block style, with JSON's texts where a plain word won't do."""
    return "\n".join(_yaml_of(to_dict(flow), "")) + "\n"


def _scope_of(flow):
    if flow.start_node is None:
        raise FlowError("a flow without a start has no nodes")
    names = Names(flow.start_node)
    nodes = {names.of(node): {**_spec_of(node), **_next_of(node, names)} for node in list(names.nodes)}
    scope = {} if flow._starts_itself else {"start": names.of(flow.start_node)}
    if flow.max_steps is not None:
        scope["max_steps"] = flow.max_steps
    return {**scope, "nodes": nodes}


def _next_of(node, names):
    targets = {action: "end" if isinstance(target, End) else names.of(target) for action, target in node.successors.items()}
    if not targets and not node._exact:
        return {}
    if list(targets) == ["default"] and not node._exact:
        return {"next": targets["default"]}
    if not node._exact:
        targets.setdefault("default", "end")  # Python ends the flow there, and AOD wants an edge
    return {"next": targets}


def _spec_of(node):
    if isinstance(node, Declared):
        return node.spec
    if type(node) in (Flow, AsyncFlow):
        return {"scope": "shared", "flow": _scope_of(node)}
    if type(node) is Scope:
        return _scoped(node)
    if isinstance(node, UnitNode) and _is_ours(node):
        return _unit_spec(node)
    return _code_spec(node)


def _is_ours(node):
    return type(node).__module__ == UnitNode.__module__


def _scoped(node):
    if type(node.flow) not in (Flow, AsyncFlow):
        raise FlowError(f"a Scope around {type(node.flow).__name__} has no form in flow.yaml")
    spec = {"flow": _scope_of(node.flow)}
    if node.inputs is not None:
        spec = {"scope": "isolated", "with": {name: _of("state", key) for name, key in node.inputs.items()}, **spec}
    if node.outputs:
        spec["set"] = {key: _of("out", name) for key, name in node.outputs.items()}
    return spec


def _unit_spec(node):
    if node.unit is None:
        raise FlowError(f"{type(node).__name__} works without a unit, and has no form in flow.yaml: make it a unit")
    spec = {"run": node.unit}
    if isinstance(node, ModelNode):
        parts = (_of("state", part) if is_key else part.replace("${{", "$${{") for part, is_key in node.parts())
        spec["with"] = {"prompt": "".join(parts)}
        spec["set"] = {node.output_key: _TEXT}
    else:
        given = {**node.args, **node.files}
        spec |= {"with": {name: _of("state", key) for name, key in given.items()}} if given else {}
        spec |= {"set": {node.output_key: _OUT}} if node.output_key is not None else {}
    return {**spec, **_timeout_of(node), **_retry_of(node)}


def _timeout_of(node):
    if node.timeout is None:
        return {}
    return {"timeout": node.timeout if isinstance(node.timeout, str) else f"{node.timeout:g}s"}


def _retry_of(node):
    if node.wait:
        return {"retry": {"tries": node.max_retries, "wait": f"{node.wait:g}s"}}
    return {"retry": node.max_retries} if node.max_retries != 1 else {}


def _code_spec(node):
    kind = type(node)
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        raise FlowError(f"{kind.__qualname__} can't be named from elsewhere: move the class to the top of a module")
    spec = {"code": f"{kind.__module__}:{kind.__qualname__}"}
    if isinstance(node, Flow):
        return {**spec, "flow": _scope_of(node)} if node.start_node is not None else spec
    return {**spec, **_timeout_of(node), **_retry_of(node)} if isinstance(node, Node) else spec


def _of(root, key):
    return f"${{{{ {root}.{key} }}}}" if _PLAIN.fullmatch(key) else f"${{{{ {root}[{json.dumps(key)}] }}}}"


def _flow_of(document, where):
    specs = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(specs, dict) or not specs or not all(isinstance(spec, dict) for spec in specs.values()):
        raise FlowError(f"{where} has no nodes: it wants {{nodes: {{NAME: {{…}}}}}}")
    nodes = {name: _node_of(name, spec) for name, spec in specs.items()}
    for name, node in nodes.items():
        _wire(node, specs[name].get("next"), nodes, f"{where}, node {name}")
    start = document.get("start", _sole_start(nodes))
    if not isinstance(start, str) or start not in nodes:
        raise FlowError(f"{where} wants a start, one of {', '.join(nodes)}")
    kind = AsyncFlow if any(node._async for node in nodes.values()) else Flow
    flow = kind(nodes[start], document.get("max_steps"))
    flow._starts_itself = "start" not in document
    lost = set(nodes) - {node._name for node in Names(flow.start_node).nodes}
    if lost:
        raise FlowError(f"{where}: no way leads from {start} to {', '.join(sorted(lost))}")
    return flow


def _sole_start(nodes):
    targets = {id(target) for node in nodes.values() for target in node.successors.values() if target is not node}
    starts = [name for name, node in nodes.items() if id(node) not in targets]
    return starts[0] if len(starts) == 1 else None


def _wire(node, leads, nodes, where):
    node._exact = isinstance(leads, dict)
    for action, target in (leads if node._exact else {"default": leads}).items():
        if target is None and not node._exact:
            return
        if target != "end" and (not isinstance(target, str) or target not in nodes):
            raise FlowError(f"{where}: next leads to {target!r}, which is none of {', '.join(nodes)}")
        node.next(End() if target == "end" else nodes[target], action)


def _node_of(name, spec):
    rest = {key: value for key, value in spec.items() if key != "next"}
    if "code" in rest:
        node = _code_of(rest, name)
    else:
        node = next((each for each in _readings(rest) if _spec_of(each) == rest), None) or Declared(rest)
    node._name = name
    return node


def _readings(spec):
    """Yield the nodes that may be what the spec says: those that say the same are."""
    given, kept = spec.get("with", {}), spec.get("set", {})
    if not isinstance(given, dict) or not isinstance(kept, dict):
        return
    if isinstance(spec.get("flow"), dict) and set(spec) <= {"flow", "scope", "with", "set"}:
        inner = _flow_of(spec["flow"], "an inner flow")
        yield inner
        yield Scope(inner, _keys(given, "state") if "with" in spec else None, _keys(kept, "out"))
    unit, timeout = spec.get("run"), spec.get("timeout")
    if isinstance(unit, str) and "${{" not in unit and len(kept) <= 1 and isinstance(timeout, (str, type(None))):
        more = {"timeout": timeout, **_tries(spec.get("retry"))}
        key = next(iter(kept), None)
        yield UnitNode(unit, _keys(given, "state"), key, **more)
        if isinstance(given.get("prompt"), str):
            yield _model_of(unit, given["prompt"], key, more)


def _keys(fields, root):
    """Return the keys that the expressions of the fields are, as far as they are such."""
    found = {}
    for name, text in fields.items():
        match = _OF_STATE.fullmatch(text) if isinstance(text, str) else None
        if match and match[1] == root:
            found[name] = match[2] or json.loads(match[3])
    return found


def _model_of(unit, prompt, key, more):
    matches = [match for match in _OF_STATE.finditer(prompt) if match[1] == "state"]
    keys = {match[0]: match[2] or json.loads(match[3]) for match in matches}
    for text, name in keys.items():
        prompt = prompt.replace(text, "{" + name + "}")
    return ModelNode(prompt.replace("$${{", "${{"), keys.values(), key, unit=unit, **more)


def _tries(retry):
    wait = 0
    if isinstance(retry, dict):
        retry, wait = retry.get("tries"), _seconds(retry.get("wait")) or 0
    return {"max_retries": retry, "wait": wait} if isinstance(retry, int) else {}


def _seconds(text):
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", str(text))
    return float(match[1]) if match else None


def _code_of(spec, name):
    if not isinstance(spec["code"], str) or not _CODE.fullmatch(spec["code"]):
        raise FlowError(f"the node {name}: code is \"module:Class\"")
    module, _, path = spec["code"].partition(":")
    kind = importlib.import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part, None)
    if not isinstance(kind, type) or not issubclass(kind, BaseNode):
        raise FlowError(f"the node {name}: {spec['code']} isn't a class of a node")
    node = kind()
    if isinstance(node, Flow) and "flow" in spec:
        inner = _flow_of(spec["flow"], f"the node {name}")
        node.start_node, node.max_steps = inner.start_node, inner.max_steps
    limit = {"timeout": _seconds(spec["timeout"])} if "timeout" in spec else {}
    for attribute, value in {**_tries(spec.get("retry")), **limit}.items():
        setattr(node, attribute, value)
    return node


def _yaml_of(value, indent):
    """Return the lines of a value that isn't empty."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", each, indent + "  ")
    else:
        for each in value:
            yield from _entry(f"{indent}-", each, indent + "  ")


def _entry(head, value, indent):
    if isinstance(value, (dict, list, tuple)) and value:
        yield head
        yield from _yaml_of(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value):
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)e", r"\1.0e", text)  # what has no dot is a text to some
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
