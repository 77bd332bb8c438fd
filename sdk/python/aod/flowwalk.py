"""Flows: walks from node to node, by actions. See aod.flow."""

import collections
import copy
import logging
import re
import time
import warnings

from aod import address
from aod.flownodes import AsyncNode, BaseNode, End, FlowError, action_of, all_of

_log = logging.getLogger("aod.flow")
_NAME_CHARACTERS = 34  # of a node's own name, so that there is room for a number


class Flow(BaseNode):
    """A graph of nodes over one shared state, that is a node itself. Its post gets the last
    action of the walk as exec_res, and returns that. With max_steps one step more than that
    is a FlowError.

    run(shared) returns what post does, and run() the state that the walk has made. An error of
    a node takes its edge "error" (of a TimeoutError "timeout", if there is one), with what it
    was in shared["error"]; without such an edge it is raised. The logger "aod.flow" has each
    step: its place, action and time.
    """

    _gives_state = True

    _around = None  # of from_dict: what stands beside the nodes of a whole flow
    _starts_itself = False  # likewise: without `start`

    def __init__(self, start=None, max_steps=None):
        super().__init__()
        if max_steps is not None and (not isinstance(max_steps, int) or max_steps < 1):
            raise ValueError(f"max_steps is a whole number from 1, not {max_steps!r}")
        self.start_node = start
        self.max_steps = max_steps

    def start(self, node):
        """Have the flow begin with that node, and return it."""
        self.start_node = node
        return node

    def post(self, shared, prep_res, exec_res):
        """Return the last action."""
        return exec_res

    def to_dict(self):
        """See aod.flow.to_dict."""
        from aod import flowfile

        return flowfile.to_dict(self)

    def to_yaml(self):
        """See aod.flow.to_yaml."""
        from aod import flowfile

        return flowfile.to_yaml(self)

    def to_mermaid(self):
        """See aod.flow.to_mermaid."""
        from aod import flowpicture

        return flowpicture.to_mermaid(self)

    def _exec(self, prep_res):
        raise FlowError("a flow has no exec: it walks")

    def _run(self, shared):
        with address.inside(":prep"):
            prep_res = self.prep(shared)
        last = self._walk(shared, {**self.params})
        with address.inside(":post"):
            return self.post(shared, prep_res, last)

    def _walk(self, shared, params):
        walk = _Walk(self, params)
        while (step := walk.begin()) is not None:
            try:
                with address.inside(walk.place):
                    action = step._run(shared)
            except Exception as error:
                action = walk.diverted(step, error, shared)
            walk.end(step, action)
        return walk.action


class BatchFlow(Flow):
    """A flow that is walked once for each map of params that prep gives, one after the other."""

    def _run(self, shared):
        with address.inside(":prep"):
            prep_res = list(self.prep(shared) or ())
        for index, params in enumerate(prep_res):
            with address.inside(f"[{index}]"):
                self._walk(shared, {**self.params, **params})
        with address.inside(":post"):
            return self.post(shared, prep_res, None)


class AsyncFlow(Flow, AsyncNode):
    """A flow whose nodes may be async ones."""

    def _run(self, shared):
        return AsyncNode._run(self, shared)

    async def _run_async(self, shared):
        with address.inside(":prep"):
            prep_res = await self.prep_async(shared)
        last = await self._walk_async(shared, {**self.params})
        with address.inside(":post"):
            return await self.post_async(shared, prep_res, last)

    async def _walk_async(self, shared, params):
        walk = _Walk(self, params)
        while (step := walk.begin()) is not None:
            try:
                with address.inside(walk.place):
                    action = await step._run_async(shared) if step._async else step._run(shared)
            except Exception as error:
                action = walk.diverted(step, error, shared)
            walk.end(step, action)
        return walk.action


class AsyncBatchFlow(AsyncFlow, BatchFlow):
    """An async flow that is walked once for each map of params, one after the other."""

    async def _run_async(self, shared):
        with address.inside(":prep"):
            prep_res = list(await self.prep_async(shared) or ())
        await self._walk_each(shared, prep_res)
        with address.inside(":post"):
            return await self.post_async(shared, prep_res, None)

    async def _walk_each(self, shared, maps):
        for index, params in enumerate(maps):
            await self._walk_one(shared, index, params)

    async def _walk_one(self, shared, index, params):
        with address.inside(f"[{index}]"):
            await self._walk_async(shared, {**self.params, **params})


class AsyncParallelBatchFlow(AsyncBatchFlow):
    """An async flow that is walked for all maps of params at once. After an error the others
    run on, then it is raised."""

    async def _walk_each(self, shared, maps):
        await all_of(self._walk_one(shared, index, params) for index, params in enumerate(maps))


class Names:
    """The names of a graph's nodes: those of from_dict, else made of their classes."""

    def __init__(self, start):
        self._names, self._taken = {}, set()
        self.nodes = []  # as they are found from the start
        waiting = collections.deque([start])
        while waiting:
            node = waiting.popleft()
            if node is not None and not isinstance(node, End) and id(node) not in self._names:
                self.of(node)
                waiting.extend(node.successors.values())

    def of(self, node):
        """Return the node's name, [a-z][a-z0-9_-]*; no other node has it."""
        if id(node) not in self._names:
            self._names[id(node)] = self._free(node._name or _own_name(node))
            self.nodes.append(node)
        return self._names[id(node)]

    def _free(self, name):
        numbers = range(2, len(self._taken) + 3)
        free = next(each for each in (name, *(f"{name}-{n}" for n in numbers)) if each not in self._taken)
        self._taken.add(free)
        return free


class _Walk:
    """One walk through a flow: the node that comes, its place, and the last action."""

    def __init__(self, flow, params):
        self.action = None
        self.place = ""
        self._node = flow.start_node
        self._params = params
        self._most = flow.max_steps
        self._names = Names(flow.start_node)
        self._visits = collections.Counter()

    def begin(self):
        """Return the copy of the next node that runs, None where the walk ends."""
        if self._node is None or isinstance(self._node, End):
            return None
        if self._most is not None and self._visits.total() >= self._most:
            raise FlowError(f"the flow has made {self._most} steps, its max_steps, and hasn't ended")
        name = self._names.of(self._node)
        self._visits[name] += 1
        self.place = f"/{name}" if self._visits[name] == 1 else f"/{name}#{self._visits[name]}"
        step = copy.copy(self._node)
        step.set_params(self._params)
        self._began = time.monotonic()
        _log.debug("step %s begins", self.place)
        return step

    def diverted(self, step, error, shared):
        """Return the edge that the step's error takes, or raise it."""
        late = isinstance(error, TimeoutError) or getattr(error, "kind", "") == "timeout"
        edges = [edge for edge in ("timeout", "error")[not late:] if edge in step.successors]
        spent = time.monotonic() - self._began
        if not edges:
            _log.info("step %s failed with %s after %.3f s", self.place, type(error).__name__, spent)
            raise error
        _log.warning("step %s failed with %s, and takes its edge %s", self.place, type(error).__name__, edges[0])
        kind = getattr(error, "kind", "") or ("timeout" if late else "exception")
        shared["error"] = {"node": self.place[1:], "kind": kind, "type": type(error).__name__, "message": str(error)}
        return edges[0]

    def end(self, step, action):
        """Go on after the step, by its action."""
        _log.info("step %s took the action %s after %.3f s", self.place, action_of(action), time.monotonic() - self._began)
        self._node = step.successors.get(action_of(action))
        self.action = action
        if self._node is None and step.successors:
            warnings.warn(f"Flow ends: '{action}' not found in {list(step.successors)}", stacklevel=4)


def _own_name(node):
    name = re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", getattr(node, "unit", None) or type(node).__name__).lower()
    name = re.sub("[^a-z0-9_-]", "", name).lstrip("0123456789_-")[:_NAME_CHARACTERS]
    return "end-node" if name == "end" else name or "node"
