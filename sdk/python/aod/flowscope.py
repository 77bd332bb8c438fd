"""A state of its own for a flow, and a node as a whole capsule. See aod.flow."""

import copy
import os
import shutil

from aod import address
from aod.flownodes import BaseNode, FlowError, action_of
from aod.flowunits import value_at


class Scope(BaseNode):
    """Runs a flow, or a node, over a state of its own.

    inputs are its keys and those of the state around it that they begin with; without inputs
    it begins with all that is there (a shallow copy). outputs are keys of the state around it
    and the keys inside from which they are set at the end; nothing else goes out. Of a list
    of keys each has the same name on both sides. The action is the inner one.
    """

    def __init__(self, flow, inputs=None, outputs=None):
        super().__init__()
        self.flow = flow
        self.inputs = None if inputs is None else _pairs(inputs)
        self.outputs = _pairs(outputs or ())

    @property
    def _async(self):
        return self.flow._async

    def _run(self, shared):
        inner = self._enter(shared)
        return self._leave(shared, inner, self._step()._run(inner))

    async def _run_async(self, shared):
        inner = self._enter(shared)
        return self._leave(shared, inner, await self._step()._run_async(inner))

    async def run_async(self, shared=None):
        """See AsyncNode.run_async."""
        self._warn_of_successors("AsyncFlow")
        with address.walk():
            return await self._run_async({} if shared is None else shared)

    def _step(self):
        step = copy.copy(self.flow)
        step.set_params(self.params)
        return step

    def _enter(self, shared):
        if self.inputs is None:
            return dict(shared)
        return {name: value_at(shared, key, "a Scope") for name, key in self.inputs.items()}

    def _leave(self, shared, inner, action):
        found = {key: value_at(inner, name, "a Scope's end") for key, name in self.outputs.items()}
        shared.update(found)
        return action


def capsule(node):
    """Return an execute(payload) that runs the node, or flow, once: the whole of a capsule.

    The payload is {"shared": ..., "params": ...}; the result is {"set": ..., "action": ...}:
    what the node has changed in the shared state (None for what it has removed), and its
    action. Path-like values in it, such as Files, become files of the result: their schema
    says file_path. In a flow.yaml the node is

        {run: NAME, with: {shared: "${{ state }}"}, set: "${{ out.set }}", action: "${{ out.action }}"}
    """
    if node._async:
        async def execute(payload):
            step, shared = _begin(node, payload)
            with address.walk():
                return _result(payload, shared, await step._run_async(shared))
    else:
        def execute(payload):
            step, shared = _begin(node, payload)
            with address.walk():
                return _result(payload, shared, step._run(shared))
    return execute


def _begin(node, payload):
    shared = payload.get("shared")
    if not isinstance(shared, dict):
        raise FlowError('the input has no "shared" that is an object')
    step = copy.copy(node)
    step.set_params(dict(payload.get("params") or {}))
    return step, copy.deepcopy(shared)


def _result(payload, shared, action):
    before = payload["shared"]
    changed = {key: value for key, value in shared.items() if key not in before or not _same(before[key], value)}
    removed = {key: None for key in before if key not in shared}
    return {"set": _with_names({**changed, **removed}), "action": action_of(action)}


def _same(before, after):
    """Say whether two JSON values are the same; to Python 1, 1.0 and True are equal."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return before == after


def _with_names(value):
    """Return the value with files, which are copied to the output, by their names there."""
    if isinstance(value, os.PathLike):
        return _deliver(value)
    if isinstance(value, dict):
        return {key: _with_names(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_names(each) for each in value]
    return value


def _deliver(path):
    from aod.paths import output_path

    stem, extension = os.path.splitext(os.path.basename(os.fspath(path)))
    number, name = 1, stem + extension
    while os.path.lexists(output_path(name)):
        number += 1
        name = f"{stem}-{number}{extension}"
    shutil.copyfile(path, output_path(name))
    return name


def _pairs(names):
    return dict(names) if hasattr(names, "keys") else {name: name for name in names}
