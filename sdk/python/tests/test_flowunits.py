import asyncio
import json
import os
import threading
import time
import unittest
from unittest import mock

import aod
from aod import address, calls
from aod.flow import (
    AgentNode, AsyncFlow, AsyncNode, AsyncParallelBatchNode, BatchFlow, BatchNode, Flow, FlowError, ModelNode, Node, Scope,
    ToolNode, UnitNode, UniversalAgentNode, UniversalModelNode, UniversalToolNode, call, capsule,
)
from fakeapi import APITest, accept, failed, succeeded


class Echo(APITest):
    """An API whose units give back what they were asked for."""

    def setUp(self):
        super().setUp()
        address.forget()
        self.serve(lambda request: succeeded(0, {"unit": request.document["target"], "args": request.document["args"]}))

    def asked(self):
        return [request.document for request in self.api.requests]


class Objects(unittest.TestCase):
    """Universal nodes over plain objects of the specification's interface."""

    def test_models_tools_and_agents(self):
        class Model:
            def process(self, prompt):
                return f"<{prompt}>", {"tokens": 3}

        class Tool:
            def add(self, a, b):
                return a + b

        ask = UniversalModelNode(Model(), "Sum of {x} and {list}", "text")
        add = UniversalToolNode(Tool(), "add", {"x": "a", "y": "b"}, "sum")
        ask >> add >> UniversalAgentNode(lambda given: (given, "no log"), "text", "said")
        wanted = {"x": 1, "y": 2, "list": [1], "text": "<Sum of 1 and [1]>", "sum": 3, "said": ("<Sum of 1 and [1]>", "no log")}
        shared = {"x": 1, "y": 2, "list": [1]}
        Flow(ask).run(shared)
        self.assertEqual(wanted, shared)

    def test_what_isnt_there_is_said(self):
        self.assertRaises(AttributeError, Flow(UniversalToolNode(object(), "add")).run)
        self.assertRaisesRegex(FlowError, "no process", Flow(UniversalAgentNode(7)).run, {"input": 1})
        self.assertRaisesRegex(FlowError, "no 'input'", Flow(UniversalModelNode(print)).run)

    def test_names_of_models_and_servers_go_to_aod(self):
        shared = {"input": "hi", "q": "ferry"}
        ask = UniversalModelNode("gpt-4o")
        ask >> UniversalToolNode("notes", "search", {"q": "query"}, "found")
        with mock.patch("aod.ask") as asked, mock.patch("aod.mcp") as server:
            asked.return_value.text = "hello"
            server.return_value.call.return_value = mock.Mock(structured=None, text="page 3")
            Flow(ask).run(shared)
        asked.assert_called_once_with("hi", system="", model="gpt-4o")
        server.return_value.call.assert_called_once_with("search", {"query": "ferry"}, timeout=None)
        self.assertEqual({"input": "hi", "q": "ferry", "output": "hello", "found": "page 3"}, shared)


class UniversalUnits(Echo):
    def test_tools_and_agents_are_units(self):
        shared = {"who": "Ada", "task": "greet"}
        tool = UniversalToolNode("hello", arg_mapping={"who": "name"}, output_key="said")
        tool >> UniversalAgentNode("helper", "task", "done")
        Flow(tool).run(shared)
        self.assertEqual({"unit": "hello", "args": {"name": "Ada"}}, shared["said"])
        self.assertEqual({"unit": "helper", "args": {"task": "greet"}}, shared["done"])


class Calls(Node):
    def exec(self, prep_res):
        for n in range(2):
            aod.handoff("u", n=n)


class CallsEach(BatchNode):
    def prep(self, shared):
        return "ab"

    def exec(self, item):
        aod.handoff("u", item=item)
        if self.cur_retry == 0 and item == "b":
            raise ValueError


class CallsEverywhere(Node):
    def prep(self, shared):
        aod.start("prep")

    def exec(self, prep_res):
        aod.start("exec")
        raise ValueError

    def exec_fallback(self, prep_res, exc):
        aod.start("fallback")

    def post(self, shared, prep_res, exec_res):
        aod.start("post")
        return shared.pop("action", None)


class Keys(Echo):
    def keys_of(self, node, shared=None):
        """Run it as each of two attempts does, and return the keys, which are the same."""
        found = []
        for _ in range(2):
            address.forget()
            before = len(self.api.requests)
            shared_now = dict(shared or {})
            asyncio.run(node.run_async(shared_now)) if node._async else node.run(shared_now)
            found.append(self.api.keys()[before:])
            self.assertEqual({"/handoff?wait=false&recall=true"}, {request.path for request in self.api.requests[before:]})
        self.assertEqual(*found)
        self.assertEqual(len(found[0]), len(set(found[0])))
        return found[0]

    def test_outside_of_flows_a_key_is_chance_and_nothing_is_recalled(self):
        aod.handoff("u")
        self.assertEqual("/handoff?wait=false", self.api.requests[0].path)
        self.assertRegex(self.api.keys()[0], "^[0-9a-f]{32}$")

    def test_keys_are_made_of_node_and_number(self):
        first, second = Calls(), Calls()
        first >> second
        self.assertEqual(
            ["flow/1/calls~1.1", "flow/1/calls~1.2", "flow/1/calls-2~1.1", "flow/1/calls-2~1.2"], self.keys_of(Flow(first)),
        )

    def test_keys_are_made_of_item_and_try(self):
        keys = ["flow/1/calls-each[0]~1.1", "flow/1/calls-each[1]~1.1", "flow/1/calls-each[1]~2.1"]
        self.assertEqual(keys, self.keys_of(Flow(CallsEach(max_retries=2))))

    def test_keys_are_made_of_visit_and_phase(self):
        node = CallsEverywhere()
        node - "again" >> node
        with self.assertWarns(UserWarning):
            keys = self.keys_of(Flow(node), {"action": "again"})
        one = ["flow/1/calls-everywhere" + part for part in (":prep.1", "~1.1", "~1:fallback.1", ":post.1")]
        self.assertEqual(one + [key.replace("everywhere", "everywhere#2") for key in one], keys)

    def test_keys_are_made_of_the_flows_around(self):
        class Walks(BatchFlow):
            def prep(self, shared):
                return [{}, {}]

        inner = Walks(UnitNode("hello"))
        inner >> Scope(Flow(UnitNode("hello")))
        self.assertEqual(
            ["flow/1/walks[0]/hello~1.1", "flow/1/walks[1]/hello~1.1", "flow/1/scope/hello~1.1"], self.keys_of(Flow(inner)),
        )

    def test_flows_of_one_run_are_numbered_also_those_that_nodes_run(self):
        class Runs(Node):
            def exec(self, prep_res):
                for _ in range(2):
                    Flow(UnitNode("u")).run({})

        class Twice(Node):
            def exec(self, prep_res):
                pass

        Flow(UnitNode("u")).run({})
        Flow(Runs()).run({})
        UnitNode("u").run({})
        self.assertEqual(["flow/1/u~1.1", "flow/2/runs~1/1/u~1.1", "flow/2/runs~1/2/u~1.1", "flow/3~1.1"], self.api.keys())

    def test_calls_of_async_nodes_have_keys_in_the_order_of_the_program(self):
        class Gathers(AsyncNode):
            async def exec_async(self, prep_res):
                return await asyncio.gather(*(call("u", n=n) for n in range(5)))

        class Items(AsyncParallelBatchNode):
            async def prep_async(self, shared):
                return range(3)

            async def exec_async(self, item):
                await call("u", item=item)

        def by_argument(name):
            return [request.headers["Idempotency-Key"] for request in sorted(self.api.requests, key=lambda r: r.document["args"][name])]

        asyncio.run(AsyncFlow(Gathers()).run_async({}))
        self.assertEqual([f"flow/1/gathers~1.{n}" for n in range(1, 6)], by_argument("n"))
        self.api.requests.clear()
        asyncio.run(AsyncFlow(Items()).run_async({}))
        self.assertEqual([f"flow/2/items[{n}]~1.1" for n in range(3)], by_argument("item"))

    def test_a_long_address_makes_a_key_that_is_short_enough(self):
        node = UnitNode("u")
        for _ in range(60):
            node = Flow(node)
        (key,) = self.keys_of(node)
        self.assertRegex(key, "^flow/[0-9a-f]{64}$")

    def test_in_another_thread_nothing_is_recalled(self):
        thread = threading.Thread(target=Flow(UnitNode("u")).run, args=({},))
        thread.start()
        thread.join()
        self.assertRegex(self.api.keys()[0], "^[0-9a-f]{32}$")

    def test_after_a_flow_handoffs_are_as_before_it(self):
        Flow(UnitNode("u")).run({})
        with self.assertRaises(FlowError):
            Flow(UnitNode("u", {"x": "missing"})).run({})
        aod.handoff("u")
        self.assertRegex(self.api.keys()[-1], "^[0-9a-f]{32}$")


class Units(Echo):
    def test_a_unit_node_is_a_handoff_with_what_the_keys_have(self):
        shared = {"who": "Ada", "deep": {"list": [1, {"n": 2}]}, "a.b": 3}
        node = UnitNode("hello", {"name": "who", "n": "deep.list.1.n", "dot": "a.b"}, "said", timeout=3)
        self.assertIsNone(Flow(node).run(shared))
        args = {"name": "Ada", "n": 2, "dot": 3}
        self.assertEqual({"target": "hello", "args": args, "timeout": "3.000s"}, self.asked()[0])
        self.assertEqual({"unit": "hello", "args": args}, shared["said"])

    def test_without_an_output_key_nothing_is_set(self):
        shared = {}
        UnitNode("hello").run(shared)
        self.assertEqual(({}, {}), (shared, self.asked()[0]["args"]))

    def test_a_key_that_isnt_there_is_told_with_those_that_are(self):
        for key in ("nobody", "who.x", "list.5", "list.-1"):
            with self.assertRaisesRegex(FlowError, f"hello: the shared state has no '{key}'; it has 'who', 'list'"):
                UnitNode("hello", {"name": key}).run({"who": "Ada", "list": [1]})
        self.assertEqual([], self.api.requests)

    def test_it_is_tried_again_with_a_pause_as_every_node_is(self):
        answers = [failed(category="AgentError", kind="x", message="no"), succeeded(0, {"n": 1})]
        self.serve(lambda request: answers.pop(0))
        shared = {}
        UnitNode("hello", output_key="out", max_retries=2, wait=0.01).run(shared)
        self.assertEqual({"out": {"n": 1}}, shared)
        self.assertEqual(2, len(set(self.api.keys())))

    def test_files_go_along_and_come_back_and_go_on(self):
        def answer(request):
            rows = [{"name": name, "path": path, "size_bytes": 7, "sha256": "00", "field": field}
                    for name, path, field in (("c.svg", chart, "chart"), ("p/1", page, "report.pages"))]
            return succeeded(0, {"chart": "c.svg", "title": "c.svg", "report": {"pages": ["p/1", "none"]}}, rows)

        chart, page = self.file("io/handoff/incoming/c.svg", "chart"), self.file("io/handoff/incoming/p/1", "page")
        self.serve(answer)
        source = self.file("table.csv", "rows")
        first = UnitNode("csv", {"title": "title"}, "report", files={"table": "path", "more": "paths"})
        first >> UnitNode("svg", {"picture": "report.chart", "pages": "picked"})
        shared = {"title": "May", "path": source, "paths": [source]}

        class Pick(Node):
            def post(self, shared, prep_res, exec_res):
                shared["picked"] = shared["report"]["report"]["pages"][:1]

        first.successors["default"], last = Pick(), first.successors["default"]
        first.successors["default"] >> last
        Flow(first).run(shared)
        self.assertEqual({"title": "May", "table": "table.csv", "more": ["table.csv"]}, self.asked()[0]["args"])
        self.assertEqual({"picture": "c.svg", "pages": ["1"]}, self.asked()[1]["args"])
        with open(shared["report"]["chart"]) as file:
            self.assertEqual("chart", file.read())
        self.assertEqual(("c.svg", "none"), (shared["report"]["title"], shared["report"]["report"]["pages"][1]))
        self.assertEqual(["1", "c.svg", "table.csv"], sorted(os.listdir(self.outgoing)))

    def test_tool_and_agent_nodes_name_their_arguments(self):
        shared = {"q": "why", "input": {"x": 1}}
        ToolNode("search", {"query": "q"}, "found").run(shared)
        AgentNode("writer", "q", "text").run(shared)
        AgentNode("planner", field="task").run(shared)
        self.assertEqual([{"query": "why"}, {"q": "why"}, {"task": {"x": 1}}], [each["args"] for each in self.asked()])
        self.assertEqual(["search", "writer", "planner"], [shared[key]["unit"] for key in ("found", "text", "output")])

    def test_a_model_node_fills_its_template_once(self):
        self.serve(lambda request: succeeded(0, {"text": request.document["args"]["prompt"], "tokens": {}}))
        shared = {"topic": "{n} $n", "n": [1, "é"], "secret": "x"}
        node = ModelNode('About {topic} ({n}): {"as": "json", "{secret}": {}}', ["topic", "n"], "answer")
        node.run(shared)
        self.assertEqual('About {n} $n ([1, "é"]): {"as": "json", "{secret}": {}}', shared["answer"])
        self.assertEqual("model", self.asked()[0]["target"])
        ModelNode("as it is {x}", output_key="a", unit="other").run(shared)
        self.assertEqual(("as it is {x}", "other"), (shared["a"], self.asked()[1]["target"]))


class Waiting(APITest):
    def test_calls_of_an_async_node_are_under_way_at_once(self):
        all_are_there = threading.Barrier(5, timeout=30)

        def answer(request):
            all_are_there.wait()
            return succeeded(request.document["args"]["n"], {"n": request.document["args"]["n"]})

        class Gathers(AsyncNode):
            async def exec_async(self, prep_res):
                return await asyncio.gather(*(call("u", {"n": n}, timeout=9) for n in range(5)))

            async def post_async(self, shared, prep_res, exec_res):
                shared["all"] = [result.output["n"] for result in exec_res]

        self.serve(answer)
        shared = {}
        before = threading.active_count()
        asyncio.run(AsyncFlow(Gathers()).run_async(shared))
        self.assertEqual([0, 1, 2, 3, 4], shared["all"])
        self.assertEqual("9.000s", self.api.requests[0].document["timeout"])
        until = time.monotonic() + 30  # the threads of the server's answers end a moment later
        while threading.active_count() > before and time.monotonic() < until:
            time.sleep(0.01)
        self.assertLessEqual(threading.active_count(), before)

    def test_a_call_that_fails_raises_what_a_handoff_does(self):
        self.serve(lambda request: failed(category="AgentError", kind="x", message="no"))

        async def calls():
            await call("u")

        self.assertRaises(aod.HandoffError, asyncio.run, calls())

    def test_a_call_that_nobody_waits_for_any_more_is_cancelled(self):
        asked, cancelled = threading.Event(), threading.Event()

        def ended(number, age):
            asked.set()
            return succeeded(0) if cancelled.is_set() else None

        answer = accept(ended)

        def serve(request):
            if request.command == "DELETE":
                cancelled.set()
                return 202, {"handoff_id": "h0", "state": "running"}
            return answer(request)

        async def give_up():
            task = asyncio.ensure_future(call("u"))
            await asyncio.to_thread(asked.wait, 30)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.serve(serve)
        asyncio.run(give_up())
        self.assertTrue(cancelled.wait(30))


class Scopes(unittest.TestCase):
    class Inner(Node):
        def post(self, shared, prep_res, exec_res):
            shared["seen"] = sorted(shared)
            shared["a"] = "inner"
            shared["made"] = {"deep": 1}
            return "x"

    class AsyncInner(AsyncNode):
        async def post_async(self, shared, prep_res, exec_res):
            return Scopes.Inner.post(self, shared, prep_res, exec_res)

    def run_scope(self, *args):
        results = []
        for flow in (Flow(self.Inner()), self.Inner(), AsyncFlow(self.AsyncInner()), self.AsyncInner()):
            shared, scope = {"a": 1, "b": 2}, Scope(flow, *args)
            for node in (scope, AsyncFlow(scope) if flow._async else Flow(scope)):
                shared = {"a": 1, "b": 2}
                self.assertEqual("x", asyncio.run(node.run_async(shared)) if flow._async else node.run(shared))
                results.append(shared)
        self.assertTrue(all(each == results[0] for each in results), results)
        return results[0]

    def test_without_inputs_it_sees_all_and_keeps_its_writes(self):
        self.assertEqual({"a": 1, "b": 2, "saw": ["a", "b"]}, self.run_scope(None, {"saw": "seen"}))
        self.assertEqual({"a": 1, "b": 2}, self.run_scope())

    def test_with_inputs_it_sees_these_alone(self):
        self.assertEqual({"a": 1, "b": 2, "seen": ["x"], "n": 1}, self.run_scope({"x": "b"}, {"seen": "seen", "n": "made.deep"}))
        self.assertEqual({"a": "inner", "b": 2, "seen": ["a"]}, self.run_scope(["a"], ["seen", "a"]))

    def test_an_output_that_isnt_there_is_told_and_nothing_is_set(self):
        shared = {"a": 1}
        with self.assertRaisesRegex(FlowError, "no 'nothing'"):
            Scope(self.Inner(), outputs={"a": "seen", "b": "nothing"}).run(shared)
        self.assertEqual({"a": 1}, shared)

    def test_an_async_one_has_no_run(self):
        self.assertRaises(RuntimeError, Scope(self.AsyncInner()).run, {})

    def test_params_go_in(self):
        class Tells(Node):
            def post(self, shared, prep_res, exec_res):
                shared["params"] = self.params

        shared, flow = {}, Flow(Scope(Flow(Tells()), outputs=["params"]))
        flow.set_params({"p": 1})
        flow.run(shared)
        self.assertEqual({"params": {"p": 1}}, shared)


class Capsules(APITest):
    class Changes(Node):
        def post(self, shared, prep_res, exec_res):
            shared["list"].append(self.params.get("p"))
            shared["new"] = True
            shared["one"] = 1.0
            del shared["gone"]
            shared["same"] = dict(shared["same"])
            return "x"

    def test_a_node_is_a_whole_capsule(self):
        given = {"list": [1], "gone": 1, "kept": [1, 2], "same": {"a": 1}, "one": 1}
        execute = capsule(self.Changes())
        for _ in range(2):
            self.assertEqual(
                {"set": {"list": [1, 5], "new": True, "gone": None, "one": 1.0}, "action": "x"},
                execute({"shared": given, "params": {"p": 5}}),
            )
        self.assertEqual([1], given["list"])
        self.assertEqual({"set": {}, "action": "default"}, capsule(Node())({"shared": {}}))

    def test_so_are_flows_and_async_nodes(self):
        given = {"list": [], "gone": 1, "same": {}}
        self.assertEqual([None], capsule(Flow(self.Changes()))({"shared": given})["set"]["list"])

        class Waits(AsyncNode):
            async def post_async(self, shared, prep_res, exec_res):
                await asyncio.sleep(0)
                shared["n"] = self.params["n"]

        for node in (Waits(), AsyncFlow(Waits())):
            if isinstance(node, AsyncFlow):
                node.start_node = Scope(Waits(), outputs=["n"])
            self.assertEqual({"set": {"n": 2}, "action": "default"}, asyncio.run(capsule(node)({"shared": {}, "params": {"n": 2}})))

    def test_files_become_files_of_the_result(self):
        class Makes(Node):
            def post(self, shared, prep_res, exec_res):
                from pathlib import Path
                shared["files"] = [Path(self.params["path"])] * 2

        path = self.file("elsewhere/a.txt", "text")
        got = capsule(Makes())({"shared": {}, "params": {"path": path}})
        self.assertEqual({"set": {"files": ["a.txt", "a-2.txt"]}, "action": "default"}, json.loads(json.dumps(got)))
        with open(aod.output_path("a-2.txt")) as file:
            self.assertEqual("text", file.read())

    def test_what_isnt_so_is_told(self):
        for payload in ({}, {"shared": []}):
            self.assertRaises(FlowError, capsule(Node()), payload)

        class Wrong(Node):
            def post(self, shared, prep_res, exec_res):
                return 5

        self.assertRaises(TypeError, capsule(Wrong()), {"shared": {}})

    def test_it_runs_as_an_execute_does(self):
        from aod import bridge
        self.assertEqual({"set": {}, "action": "default"}, bridge.call(capsule(AsyncFlow()), {"shared": {}}))
        self.assertEqual({"set": {}, "action": "default"}, bridge.call(capsule(Flow()), {"shared": {}}))

    def test_its_handoffs_have_keys(self):
        address.forget()
        self.serve(lambda request: succeeded(0))
        capsule(UnitNode("u"))({"shared": {}})
        self.assertEqual(["flow/1~1.1"], self.api.keys())


class Agents(Echo):
    def test_what_a_model_has_called_isnt_recalled(self):
        class Asks(Node):
            def exec(self, prep_res):
                calls.start("tool", {}, (), None).result()

        Flow(Asks()).run({})
        self.assertEqual("/handoff?wait=false", self.api.requests[0].path)
