import asyncio
import contextlib
import copy
import subprocess
import sys
import threading
import time
import unittest
import warnings
from unittest import mock

from aod.flow import (
    AsyncBatchFlow, AsyncBatchNode, AsyncFlow, AsyncNode, AsyncParallelBatchFlow, AsyncParallelBatchNode, BaseNode,
    BatchFlow, BatchNode, End, Flow, FlowError, Node,
)


class Step(Node):
    """Writes down that it ran, and returns its action."""

    def __init__(self, name, action=None, **more):
        super().__init__(**more)
        self.name, self.action = name, action

    def post(self, shared, prep_res, exec_res):
        shared.setdefault("path", []).append(self.name)
        return self.action


class AsyncStep(AsyncNode):
    def __init__(self, name, action=None):
        super().__init__()
        self.name, self.action = name, action

    async def post_async(self, shared, prep_res, exec_res):
        await asyncio.sleep(0)
        shared.setdefault("path", []).append(self.name)
        return self.action


@contextlib.contextmanager
def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def texts(caught):
    return [(each.category, str(each.message)) for each in caught]


def run_any(node, shared):
    """Run a node, be it an async one or not."""
    return asyncio.run(node.run_async(shared)) if isinstance(node, AsyncNode) else node.run(shared)


class Broken(Step):
    def __init__(self, error, **more):
        super().__init__("broken", **more)
        self.error = error

    def exec(self, prep_res):
        raise self.error


class Slow(Step):
    def exec(self, prep_res):
        self.name.wait(60)
        return "late"


class Edges(unittest.TestCase):
    def test_a_flow_without_a_state_returns_the_one_that_it_made(self):
        for flow in (Flow(Step("a", "x")), AsyncFlow(AsyncStep("a", "x"))):
            self.assertEqual({"path": ["a"]}, run_any(flow, None))
            self.assertEqual("x", run_any(flow, {}))
        self.assertEqual("x", Step("a", "x").run())

    def test_an_error_takes_its_edge_and_is_in_the_state(self):
        for kind in (Flow, AsyncFlow):
            broken, mend = Broken(ValueError("no such town"), max_retries=2), Step("mend")
            broken - "error" >> mend
            with self.assertLogs("aod.flow") as logs:
                shared = run_any(kind(broken), None)
            wanted = {"node": "broken", "kind": "exception", "type": "ValueError", "message": "no such town"}
            self.assertEqual({"path": ["mend"], "error": wanted}, shared)
            self.assertNotIn("town", "".join(logs.output))
            self.assertRaises(KeyError, run_any, kind(Broken(KeyError("x"))), {})

    def test_an_error_of_a_flow_takes_the_edge_of_that(self):
        a, mend = Step("a"), Step("mend")
        a >> a
        inner = Flow(a, max_steps=2)
        inner - "error" >> mend
        self.assertEqual("FlowError", Flow(inner).run()["error"]["type"])

    def test_a_try_that_is_late_takes_the_edge_timeout_else_error(self):
        end = threading.Event()
        self.addCleanup(end.set)
        for edges, taken in ((("timeout", "error"), "timeout"), (("error",), "error")):
            slow = Slow(end, timeout=0.01, max_retries=2)
            for edge in edges:
                slow - edge >> Step(edge)
            shared = Flow(slow).run()
            self.assertEqual(([taken], "timeout", "TimeoutError"), (shared["path"], shared["error"]["kind"], shared["error"]["type"]))
        self.assertRaises(TimeoutError, Flow(Slow(end, timeout=0.01)).run)

    def test_a_late_coroutine_is_cancelled(self):
        class Sleeps(AsyncNode):
            async def exec_async(self, prep_res):
                try:
                    await asyncio.sleep(60)
                finally:
                    ended.append(True)

        async def late():
            with self.assertRaises(TimeoutError):
                await AsyncFlow(Sleeps(timeout=0.01)).run_async({})
            for _ in range(3):
                await asyncio.sleep(0)
            return list(ended)

        ended = []
        self.assertEqual([True], asyncio.run(late()))

    def test_a_timeout_that_isnt_reached_changes_nothing(self):
        node = Broken(ValueError("x"), timeout=60)
        self.assertRaises(ValueError, Flow(node).run)
        self.assertEqual({"path": ["a"]}, Flow(Step("a", timeout=60)).run())

    def test_each_step_is_logged_without_what_is_in_it(self):
        a = Step("secret", "on")
        a - "on" >> Step("b")
        with self.assertLogs("aod.flow", "DEBUG") as logs:
            Flow(a).run()
        self.assertRegex(logs.output[1], r"^INFO:aod.flow:step /step took the action on after 0\.\d+ s$")
        self.assertEqual(4, len(logs.output))
        self.assertNotIn("secret", "".join(logs.output))


class Graphs(unittest.TestCase):
    def test_a_node_is_prep_exec_post_over_the_shared_state_that_is_changed_in_place(self):
        class Add(Node):
            def prep(self, shared):
                return shared["a"]

            def exec(self, prep_res):
                return prep_res + 1

            def post(self, shared, prep_res, exec_res):
                shared["sum"] = (prep_res, exec_res)
                return "done"

        for node in (Add(), Flow(Add()), AsyncFlow(Add())):
            shared = {"a": 1}
            self.assertEqual("done", run_any(node, shared))
            self.assertEqual({"a": 1, "sum": (1, 2)}, shared)

    def test_a_base_node_does_the_same_without_tries(self):
        class Plain(BaseNode):
            def exec(self, prep_res):
                return 7

            def post(self, shared, prep_res, exec_res):
                shared["x"] = prep_res, exec_res

        shared = {}
        self.assertIsNone(Plain().run(shared))
        self.assertEqual({"x": (None, 7)}, shared)

    def test_actions_choose_the_way(self):
        for action, path in ((None, ["a", "b"]), ("", ["a", "b"]), ("default", ["a", "b"]), ("x", ["a", "c"])):
            for kind, step in ((Flow, Step), (AsyncFlow, Step), (AsyncFlow, AsyncStep)):
                a, b, c, shared = step("a", action), step("b", "last"), step("c", "other"), {}
                a >> b
                a - "x" >> c
                self.assertEqual("other" if action == "x" else "last", run_any(kind(a), shared))
                self.assertEqual(path, shared["path"])

    def test_start_next_and_the_arrows_return_the_target(self):
        a, b, c, d = (Step(name) for name in "abcd")
        flow = Flow()
        self.assertIs(a, flow.start(a))
        self.assertIs(a, flow.start_node)
        self.assertIs(b, a >> b)
        self.assertIs(c, b - "x" >> c)
        self.assertIs(d, c.next(d))
        self.assertIs(a, d.next(a, "again"))
        self.assertEqual([{"default": b}, {"x": c}, {"default": d}, {"again": a}], [each.successors for each in (a, b, c, d)])

    def test_none_and_the_empty_text_mean_default_where_a_node_is_wired(self):
        a, b, c = (Step(name) for name in "abc")
        a.next(b, "")
        b.next(c, None)
        c - "" >> a
        self.assertEqual([["default"]] * 3, [list(each.successors) for each in (a, b, c)])

    def test_wiring_an_action_twice_warns(self):
        a = Step("a")
        with warned() as caught:
            a >> Step("b")
            a - "x" >> Step("b")
            self.assertEqual([], caught)
            last = a - "x" >> Step("c")
        self.assertEqual([UserWarning], [each.category for each in caught])
        self.assertIn("'x'", str(caught[0].message))
        self.assertEqual(__file__, caught[0].filename)
        self.assertIs(last, a.successors["x"])

    def test_an_action_that_is_no_text_is_a_type_error(self):
        for action in (3, 0, False, [], {}, ("x",), b"x"):
            with self.subTest(action=action):
                for wrong in (lambda: Step("a") - action, lambda: Step("a").next(Step("b"), action)):
                    self.assertRaises(TypeError, wrong)
                for flow in (Flow(Step("a", action)), AsyncFlow(AsyncStep("a", action))):
                    self.assertRaises(TypeError, run_any, flow, {})
        self.assertRaises(TypeError, lambda: Step("a") >> "b")

    def test_an_action_without_a_successor_ends_the_flow_with_one_warning(self):
        for action, shown in (("x", "'x'"), (None, "'None'")):
            for kind, step in ((Flow, Step), (AsyncFlow, AsyncStep)):
                a, shared = step("a", action), {}
                a - "again" >> a
                a - "b" >> step("b")
                with warned() as caught:
                    self.assertEqual(action, run_any(kind(a), shared))
                self.assertEqual([(UserWarning, f"Flow ends: {shown} not found in ['again', 'b']")], texts(caught))
                self.assertEqual(["a"], shared["path"])

    def test_a_last_node_without_successors_ends_it_without_a_warning_and_so_does_end(self):
        for action in (None, "x"):
            a = Step("a")
            a >> Step("b", action)
            last = Step("a", "x")
            last - "x" >> End()
            with warned() as caught:
                self.assertEqual(action, Flow(a).run({}))
                self.assertEqual("x", Flow(last).run({}))
            self.assertEqual([], caught)

    def test_a_lone_node_that_has_successors_warns(self):
        for node in (Step("a"), AsyncStep("a"), Flow(Step("a")), AsyncFlow(Step("a"))):
            node >> Step("b")
            shared = {}
            with warned() as caught:
                run_any(node, shared)
            self.assertEqual([UserWarning], [each.category for each in caught])
            self.assertEqual(["a"], shared["path"])

    def test_a_flow_without_start_runs_nothing(self):
        for flow in (Flow(), AsyncFlow()):
            shared = {}
            self.assertIsNone(run_any(flow, shared))
            self.assertEqual({}, shared)

    def test_a_flow_is_a_node_whose_last_action_chooses_the_outer_branch(self):
        for kind, step in ((Flow, Step), (AsyncFlow, AsyncStep)):
            first, inner = step("first"), kind(step("inner", "x"))
            first >> inner
            inner >> step("wrong")
            inner - "x" >> step("right", "end")
            shared = {}
            self.assertEqual("end", run_any(kind(first), shared))
            self.assertEqual(["first", "inner", "right"], shared["path"])

    def test_the_post_of_a_flow_gets_the_last_action_and_decides(self):
        class Own(Flow):
            def prep(self, shared):
                return "prepared"

            def post(self, shared, prep_res, exec_res):
                return f"{prep_res} {exec_res}"

        self.assertEqual("prepared x", Own(Step("a", "x")).run({}))

    def test_max_steps_bounds_the_steps_of_a_walk(self):
        for kind, step in ((Flow, Step), (AsyncFlow, AsyncStep)):
            a, b = step("a"), step("b")
            a >> b
            shared = {}
            run_any(kind(a, max_steps=2), shared)
            b >> a
            self.assertEqual(["a", "b"], shared["path"])
            self.assertRaises(FlowError, run_any, kind(a, max_steps=5), shared)
            self.assertEqual(["a", "b"] * 3 + ["a"], shared["path"])
        for wrong in (0, -1, "3"):
            self.assertRaises(ValueError, Flow, None, wrong)

    def test_it_needs_nothing_but_the_standard_library(self):
        code = "import sys, aod; aod.flow.Flow().run({}); print([name for name in ('yaml', 'aod.judge', 'asyncio') if name in sys.modules])"
        self.assertEqual("[]\n", subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout)


class Flaky(Node):
    """Fails the first so many times for each item; tells its tries and pauses."""

    def __init__(self, failures, **more):
        super().__init__(**more)
        self.failures, self.tries = failures, []

    def exec(self, item):
        self.tries.append((item, self.cur_retry))
        if self.cur_retry < self.failures:
            raise ValueError(f"{item} {self.cur_retry}")
        return item

    def post(self, shared, prep_res, exec_res):
        shared["result"] = exec_res


class Falling(Flaky):
    def exec_fallback(self, prep_res, exc):
        return f"instead of {prep_res}: {exc}"


class FlakyBatch(Falling, BatchNode):
    def prep(self, shared):
        return shared["items"]


class AsyncFlaky(AsyncNode):
    def __init__(self, failures, **more):
        super().__init__(**more)
        self.failures, self.tries = failures, []

    async def prep_async(self, shared):
        return shared.get("items")

    async def exec_async(self, item):
        number = self.cur_retry
        self.tries.append((item, number))
        for _ in range(5):
            await asyncio.sleep(0)
        assert number == self.cur_retry
        if number < self.failures:
            raise ValueError(f"{item} {number}")
        return item

    async def post_async(self, shared, prep_res, exec_res):
        shared["result"] = exec_res


class AsyncFalling(AsyncFlaky):
    async def exec_fallback_async(self, prep_res, exc):
        return f"instead of {prep_res}: {exc}"


class AsyncFlakyBatch(AsyncFalling, AsyncBatchNode):
    pass


class ParallelFlaky(AsyncFalling, AsyncParallelBatchNode):
    pass


class Tries(unittest.TestCase):
    def run_counted(self, node, shared):
        """Run it and return how long it paused, each time."""
        pauses = []

        async def nap(seconds, sleep=asyncio.sleep):
            pauses.extend([seconds] if seconds else [])
            await sleep(0)

        with mock.patch.object(time, "sleep", pauses.append), mock.patch.object(asyncio, "sleep", nap):
            try:
                run_any(node, shared)
            finally:
                self.pauses = pauses
        return pauses

    def test_max_retries_are_tries_in_all_with_pauses_between_them_only(self):
        for kind in (Flaky, AsyncFlaky):
            for failures, pauses in ((0, []), (1, [2]), (2, [2, 2])):
                node, shared = kind(failures, max_retries=3, wait=2), {}
                self.assertEqual(pauses, self.run_counted(node, shared))
                self.assertEqual([(None, n) for n in range(failures + 1)], node.tries)
                self.assertEqual(failures, node.cur_retry)
                self.assertEqual({"result": None}, shared)

    def test_without_a_fallback_the_last_error_is_raised(self):
        for kind in (Flaky, AsyncFlaky):
            node, shared = kind(9, max_retries=3, wait=2), {}
            with self.assertRaisesRegex(ValueError, "None 2"):
                self.run_counted(node, shared)
            self.assertEqual([2, 2], self.pauses)
            self.assertEqual({}, shared)
            self.assertEqual([(None, 0)], self.tries_of(kind(9)))

    def tries_of(self, node):
        self.assertRaises(ValueError, run_any, node, {})
        return node.tries

    def test_the_fallbacks_value_goes_to_post_after_the_last_try(self):
        for kind in (Falling, AsyncFalling):
            node, shared = kind(9, max_retries=2), {}
            self.assertEqual([], self.run_counted(node, shared))
            self.assertEqual({"result": "instead of None: None 1"}, shared)
            self.assertEqual(2, len(node.tries))

    def test_a_fallback_without_async_serves_an_async_node(self):
        class Mixed(AsyncFlaky):
            def exec_fallback(self, prep_res, exc):
                return "plain"

        shared = {}
        run_any(Mixed(1), shared)
        self.assertEqual({"result": "plain"}, shared)

    def test_with_no_tries_exec_never_runs_and_the_result_is_none(self):
        for kind, result in ((Flaky, None), (Falling, None), (AsyncFalling, None), (FlakyBatch, [None, None]),
                             (AsyncFlakyBatch, [None, None]), (ParallelFlaky, [None, None])):
            node, shared = kind(9, max_retries=0, wait=2), {"items": [1, 2]}
            self.assertEqual([], self.run_counted(node, shared))
            self.assertEqual((result, []), (shared["result"], node.tries))

    def test_in_batches_tries_and_fallback_are_each_items_and_results_keep_the_order(self):
        class Some:
            def exec_of(self, item):
                self.tries.append((item, self.cur_retry))
                if item == "bad" or self.cur_retry == 0:
                    raise ValueError(f"{item} {self.cur_retry}")
                return item

        class Plain(Some, FlakyBatch):
            exec = Some.exec_of

        class Async(AsyncFlakyBatch, Some):
            async def exec_async(self, item):
                await asyncio.sleep(0)
                return self.exec_of(item)

        class Parallel(ParallelFlaky, Some):
            async def exec_async(self, item):
                for _ in range({"a": 9, "bad": 1, "c": 4}[item]):
                    await asyncio.sleep(0)
                return self.exec_of(item)

        for kind in (Plain, Async, Parallel):
            node, shared = kind(0, max_retries=2, wait=3), {"items": ["a", "bad", "c"]}
            self.assertEqual([3, 3, 3], self.run_counted(node, shared))
            self.assertEqual(["a", "instead of bad: bad 1", "c"], shared["result"])
            self.assertEqual([(item, n) for item in ("a", "bad", "c") for n in (0, 1)], sorted(node.tries))

    def test_each_item_that_runs_in_parallel_has_its_own_number_of_tries(self):
        node, shared = ParallelFlaky(2, max_retries=3), {"items": list("abc")}  # exec_async holds cur_retry against what it was
        run_any(node, shared)
        self.assertEqual(list("abc"), shared["result"])
        self.assertEqual([(item, n) for item in "abc" for n in range(3)], sorted(node.tries))

    def test_none_is_an_empty_batch(self):
        for kind in (FlakyBatch, AsyncFlakyBatch, ParallelFlaky):
            for items in (None, [], ()):
                node, shared = kind(0), {"items": items}
                run_any(node, shared)
                self.assertEqual(([], []), (shared["result"], node.tries))

    def test_what_is_no_exception_isnt_tried_again(self):
        class Ends(Node):
            tries = 0

            def exec(self, prep_res):
                Ends.tries += 1
                raise KeyboardInterrupt

        self.assertRaises(KeyboardInterrupt, Ends(max_retries=3).run, {})
        self.assertEqual(1, Ends.tries)


class Together(AsyncNode):
    """Counts how many of its kind work at once, until so many do."""

    def __init__(self, wanted, **more):
        super().__init__(**more)
        self.wanted, self.now, self.most, self.all = wanted, [], [0], asyncio.Event()

    async def meet(self):
        self.now.append(1)
        self.most[0] = max(self.most[0], len(self.now))
        if len(self.now) == self.wanted:
            self.all.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.all.wait(), 30 if self.wanted > 1 else 0.01)
        self.now.pop()


class Parallel(unittest.TestCase):
    def test_all_items_of_a_parallel_batch_are_worked_on_at_once_and_of_another_one(self):
        class Meeting(Together):
            async def prep_async(self, shared):
                return range(5)

            async def exec_async(self, item):
                await self.meet()

        class AllAtOnce(Meeting, AsyncParallelBatchNode):
            pass

        class OneByOne(Meeting, AsyncBatchNode):
            pass

        for kind, wanted in ((AllAtOnce, 5), (OneByOne, 1)):
            node = kind(wanted)
            asyncio.run(node.run_async({}))
            self.assertEqual([wanted], node.most)

    def test_all_walks_of_a_parallel_batch_flow_are_under_way_at_once_and_of_another_one(self):
        class Meeting(Together):
            async def exec_async(self, prep_res):
                await self.meet()

        for kind, wanted in ((AsyncParallelBatchFlow, 5), (AsyncBatchFlow, 1)):
            class Walks(kind):
                async def prep_async(self, shared):
                    return [{"n": n} for n in range(5)]

            node = Meeting(wanted)
            asyncio.run(Walks(node).run_async({}))
            self.assertEqual([wanted], node.most)

    def test_after_an_error_the_others_run_on_and_then_it_is_raised(self):
        ended = []

        async def work(item):
            for _ in range(item):
                await asyncio.sleep(0)
            if item in (0, 3):
                raise ValueError(f"{item} fails")
            ended.append(item)

        class Items(AsyncParallelBatchNode):
            async def prep_async(self, shared):
                return range(6)

            async def exec_async(self, item):
                await work(item)

        class One(AsyncNode):
            async def exec_async(self, prep_res):
                await work(self.params["n"])

        class Walks(AsyncParallelBatchFlow):
            async def prep_async(self, shared):
                return [{"n": n} for n in range(6)]

        for node in (Items(), Walks(One())):
            ended.clear()
            with self.assertRaisesRegex(ValueError, "0 fails"):
                asyncio.run(node.run_async({}))
            self.assertEqual([1, 2, 4, 5], ended)


class Seen(Node):
    def post(self, shared, prep_res, exec_res):
        shared.setdefault("seen", []).append(copy.copy(self.params))


class Params(unittest.TestCase):
    def test_each_step_runs_a_copy_of_its_node_with_the_flows_params_in_place_of_its_own(self):
        class Marked(Seen):
            def exec(self, prep_res):
                self.mark = "written"

        node, shared = Marked(), {}
        node.set_params({"own": 1})
        for flow in (Flow(node), AsyncFlow(node)):
            run_any(flow, shared)
            flow.set_params({"of": "flow"})
            run_any(flow, shared)
        self.assertEqual([{}, {"of": "flow"}] * 2, shared["seen"])
        self.assertEqual({"own": 1}, node.params)
        self.assertFalse(hasattr(node, "mark"))

    def test_inner_flows_get_the_params_of_outer_ones(self):
        outer, shared = Flow(Flow(Seen())), {}
        outer.set_params({"a": 1})
        outer.run(shared)
        self.assertEqual([{"a": 1}], shared["seen"])

    def test_batch_flows_walk_once_for_each_map_merged_over_their_own_params(self):
        for kind in (BatchFlow, AsyncBatchFlow, AsyncParallelBatchFlow):
            class Walks(kind):
                def prep(self, shared):
                    return shared["maps"]

                def post(self, shared, prep_res, exec_res):
                    return prep_res, exec_res

            first, shared = Seen(), {"maps": [{"a": 1}, {"b": 2, "own": "other"}]}
            first >> Step("second")
            flow = Walks(first)
            flow.set_params({"own": "mine"})
            self.assertEqual((shared["maps"], None), run_any(flow, shared))
            self.assertEqual([{"own": "mine", "a": 1}, {"own": "other", "b": 2}], shared["seen"])
            self.assertEqual(["second"] * 2, shared["path"])
            self.assertEqual({"own": "mine"}, flow.params)
            self.assertEqual(([], None), run_any(flow, {"maps": None}))

    def test_without_a_post_of_their_own_they_return_none(self):
        for kind in (BatchFlow, AsyncBatchFlow, AsyncParallelBatchFlow):
            class Walks(kind):
                def prep(self, shared):
                    return [{}]

            self.assertIsNone(run_any(Walks(Step("a", "x")), {}))

    def test_an_error_of_one_walk_is_raised_and_later_ones_dont_begin(self):
        class Fails(Seen):
            def exec(self, prep_res):
                if self.params["n"] == 1:
                    raise ValueError("1")

        for kind in (BatchFlow, AsyncBatchFlow):
            class Walks(kind):
                def prep(self, shared):
                    return [{"n": n} for n in range(3)]

            shared = {}
            self.assertRaises(ValueError, run_any, Walks(Fails()), shared)
            self.assertEqual([{"n": 0}], shared["seen"])

    def test_batch_flows_nest(self):
        class Outer(BatchFlow):
            def prep(self, shared):
                return [{"x": 1}, {"x": 2}]

        class Inner(BatchFlow):
            def prep(self, shared):
                return [{"y": self.params["x"] * n} for n in (1, 2)]

        shared = {}
        Outer(Inner(Seen())).run(shared)
        self.assertEqual([{"x": 1, "y": 1}, {"x": 1, "y": 2}, {"x": 2, "y": 2}, {"x": 2, "y": 4}], shared["seen"])


class Async(unittest.TestCase):
    def test_sync_nodes_may_sit_in_async_flows(self):
        a, shared = Step("a"), {}
        a >> AsyncStep("b") >> Flow(Step("c")) >> Step("d", "x")
        self.assertEqual("x", asyncio.run(AsyncFlow(a).run_async(shared)))
        self.assertEqual(list("abcd"), shared["path"])

    def test_run_of_an_async_node_is_a_runtime_error(self):
        for node in (AsyncStep("a"), AsyncFlow(Step("a")), AsyncBatchFlow(), AsyncParallelBatchFlow(), AsyncBatchNode(),
                     AsyncParallelBatchNode(), Flow(AsyncStep("a"))):
            shared = {}
            self.assertRaises(RuntimeError, node.run, shared)
            self.assertEqual({}, shared)
