"""Pictures of flows. See aod.flow."""

from aod.flownodes import End
from aod.flowscope import Scope
from aod.flowwalk import Flow, Names


def to_mermaid(flow):
    """Return the flow as a Mermaid flowchart: flows in it are subgraphs, units have their name."""
    lines = ["flowchart TD"]
    _graph(flow, "n", lines, "    ")
    return "\n".join(lines) + "\n"


def _graph(flow, prefix, lines, indent):
    names = Names(flow.start_node)
    ids = {id(node): f"{prefix}{number}" for number, node in enumerate(names.nodes)}
    for node in names.nodes:
        _node(node, names.of(node), ids[id(node)], lines, indent)
    for node in names.nodes:
        for action, target in node.successors.items():
            lines.append(indent + _edge(ids[id(node)], action, _target(target, ids, prefix, lines, indent)))


def _node(node, name, own, lines, indent):
    inner = node.flow if isinstance(node, Scope) else node
    if isinstance(inner, Flow):
        lines.append(f'{indent}subgraph {own}["{name}"]')
        _graph(inner, own + "_", lines, indent + "    ")
        lines.append(f"{indent}end")
        return
    unit = getattr(node, "unit", None)
    label = f"{name}: {unit}" if unit and unit != name else name
    lines.append(f'{indent}{own}["{_text(label)}"]')


def _target(target, ids, prefix, lines, indent):
    if isinstance(target, End) and id(target) not in ids:
        ids[id(target)] = f"{prefix}end{len(ids)}"
        lines.append(f'{indent}{ids[id(target)]}(("end"))')
    return ids[id(target)]


def _edge(source, action, target):
    return f"{source} --> {target}" if action == "default" else f'{source} -->|"{_text(action)}"| {target}'


def _text(text):
    for character, code in (("#", "35"), (";", "59"), ('"', "quot"), ("<", "lt"), (">", "gt"), ("&", "amp")):
        text = text.replace(character, f"\0{code}\1")
    return " ".join(text.replace("\0", "#").replace("\1", ";").split())
