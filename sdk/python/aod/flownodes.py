"""Nodes of flows: what one does in a step. See aod.flow."""

import contextlib
import contextvars
import threading
import time
import warnings

from aod import address
from aod.errors import CapsuleError

_trying = contextvars.ContextVar("aod.flow.try", default=(None, 0))  # a node, and its try here


class FlowError(CapsuleError):
    """A flow that can't go on, or can't be written or read."""


class BaseNode:
    """A step of a flow: prep reads the shared state, exec works without it, and post writes
    to it and returns the action, by which the flow goes on."""

    _async = False
    _name = None  # of from_dict
    _exact = False  # likewise: flow.yaml has a map of actions
    _gives_state = False  # run without a state returns the one that it made

    def __init__(self):
        self.params = {}
        self.successors = {}

    def set_params(self, params):
        """Have the node use these params (a dict)."""
        self.params = params

    def next(self, node, action="default"):
        """Have a flow go on with that node after the action, and return that node."""
        return self._lead(node, action)

    def _lead(self, node, action):
        if not isinstance(node, BaseNode):
            raise TypeError(f"a node leads to a node, not to {type(node).__name__}")
        action = action_of(action)
        if action in self.successors:
            warnings.warn(f"Overwriting successor for action '{action}'", stacklevel=3)
        self.successors[action] = node
        return node

    def __rshift__(self, node):
        return self._lead(node, "default")

    def __sub__(self, action):
        return _Transition(self, action_of(action))

    def prep(self, shared):
        """Return what exec needs of the shared state."""

    def exec(self, prep_res):
        """Do the work, and return its result."""

    def post(self, shared, prep_res, exec_res):
        """Write to the shared state, and return the action: a text, None for "default"."""

    def run(self, shared=None):
        """Run the node alone and return what post returns."""
        self._warn_of_successors("Flow")
        state = {} if shared is None else shared
        with address.walk():
            action = self._run(state)
        return state if shared is None and self._gives_state else action

    def _warn_of_successors(self, kind):
        if self.successors:
            warnings.warn(f"Node won't run successors. Use {kind}.", stacklevel=3)

    def _run(self, shared):
        with address.inside(":prep"):
            prep_res = self.prep(shared)
        exec_res = self._exec(prep_res)
        with address.inside(":post"):
            return self.post(shared, prep_res, exec_res)

    def _exec(self, prep_res):
        with address.inside("~1"):
            return self.exec(prep_res)


class End(BaseNode):
    """Ends the flow: an action that leads to it ends it without a warning."""


class _Transition:
    """What `node - "action"` is: an edge that wants a target."""

    def __init__(self, node, action):
        self._node = node
        self._action = action

    def __rshift__(self, node):
        return self._node._lead(node, self._action)


class Node(BaseNode):
    """A node that is tried max_retries times in all, with a pause of `wait` seconds between
    two tries. cur_retry counts from 0.

    timeout is how many seconds a try may take; then it has failed with a TimeoutError. What
    exec has begun goes on in its thread, and nobody hears of it: Python can't stop it.
    """

    timeout = None  # also of classes that don't call this __init__

    def __init__(self, max_retries=1, wait=0, timeout=None):
        super().__init__()
        self.max_retries = max_retries
        self.wait = wait
        self.timeout = timeout
        self._tried = 0

    @property
    def cur_retry(self):
        """The number of the try, from 0: in parallel items that of the item."""
        node, number = _trying.get()
        return number if node is self else self._tried

    @cur_retry.setter
    def cur_retry(self, number):
        self._tried = number

    def exec_fallback(self, prep_res, exc):
        """Return the result in place of exec's, after the last try has raised exc."""
        raise exc

    def _exec(self, prep_res):
        for number in range(self.max_retries):
            with self._try(number):
                try:
                    return self._limited(prep_res)
                except Exception as error:
                    if number + 1 >= self.max_retries:
                        with address.inside(":fallback"):
                            return self.exec_fallback(prep_res, error)
            if self.wait > 0:
                time.sleep(self.wait)
        return None

    def _limited(self, prep_res):
        if self.timeout is None:
            return self.exec(prep_res)
        ended, context = [], contextvars.copy_context()

        def work():
            try:
                ended.append((context.run(self.exec, prep_res), None))
            except BaseException as error:
                ended.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(self.timeout)
        if not ended:
            raise self._late()
        result, error = ended[0]
        if error is not None:
            raise error
        return result

    def _late(self):
        return TimeoutError(f"a try of {type(self).__name__} took more than its timeout of {self.timeout:g} seconds")

    @contextlib.contextmanager
    def _try(self, number):
        self._tried = number
        token = _trying.set((self, number))
        try:
            with address.inside(f"~{number + 1}"):
                yield
        finally:
            _trying.reset(token)


class BatchNode(Node):
    """A node whose exec takes one item of what prep gives, one after the other. Tries and
    fallback are each item's own."""

    def _exec(self, prep_res):
        results = []
        for index, item in enumerate(_items(prep_res)):
            with address.inside(f"[{index}]"):
                results.append(super()._exec(item))
        return results


class AsyncNode(Node):
    """A node with coroutines: prep_async, exec_async, exec_fallback_async, post_async."""

    _async = True

    async def prep_async(self, shared):
        """See prep."""
        return self.prep(shared)

    async def exec_async(self, prep_res):
        """See exec."""
        return self.exec(prep_res)

    async def exec_fallback_async(self, prep_res, exc):
        """See exec_fallback."""
        return self.exec_fallback(prep_res, exc)

    async def post_async(self, shared, prep_res, exec_res):
        """See post."""
        return self.post(shared, prep_res, exec_res)

    async def run_async(self, shared=None):
        """See run."""
        self._warn_of_successors("AsyncFlow")
        state = {} if shared is None else shared
        with address.walk():
            action = await self._run_async(state)
        return state if shared is None and self._gives_state else action

    def _run(self, shared):
        raise RuntimeError(f"{type(self).__name__} is async: use run_async, and an AsyncFlow around it")

    async def _run_async(self, shared):
        with address.inside(":prep"):
            prep_res = await self.prep_async(shared)
        exec_res = await self._exec_async(prep_res)
        with address.inside(":post"):
            return await self.post_async(shared, prep_res, exec_res)

    async def _exec_async(self, prep_res):
        import asyncio

        for number in range(self.max_retries):
            with self._try(number):
                try:
                    return await self._limited_async(prep_res)
                except Exception as error:
                    if number + 1 >= self.max_retries:
                        with address.inside(":fallback"):
                            return await self.exec_fallback_async(prep_res, error)
            if self.wait > 0:
                await asyncio.sleep(self.wait)
        return None


    async def _limited_async(self, prep_res):
        if self.timeout is None:
            return await self.exec_async(prep_res)
        import asyncio

        work = asyncio.ensure_future(self.exec_async(prep_res))
        try:
            done, _ = await asyncio.wait([work], timeout=self.timeout)
        finally:
            work.cancel()  # without effect where it has ended
        if not done:
            raise self._late()
        return work.result()


class AsyncBatchNode(AsyncNode, BatchNode):
    """An async node whose exec_async takes one item after the other."""

    async def _exec_async(self, prep_res):
        return [await self._exec_item(index, item) for index, item in enumerate(_items(prep_res))]

    async def _exec_item(self, index, item):
        with address.inside(f"[{index}]"):
            return await AsyncNode._exec_async(self, item)


class AsyncParallelBatchNode(AsyncBatchNode):
    """An async node whose exec_async takes all items at once. After an error the others run
    on, then it is raised."""

    async def _exec_async(self, prep_res):
        return await all_of(self._exec_item(index, item) for index, item in enumerate(_items(prep_res)))


def action_of(action):
    """Return an action as a text: None and "" mean "default"."""
    if action is None or action == "":
        return "default"
    if not isinstance(action, str):
        raise TypeError(f"an action is a text, not {type(action).__name__}")
    return action


async def all_of(coroutines):
    """Run all at once to their ends, and return their results in order, or raise the first error."""
    import asyncio

    tasks = [asyncio.ensure_future(each) for each in coroutines]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


def _items(prep_res):
    return () if prep_res is None else prep_res
