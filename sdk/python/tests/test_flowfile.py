import asyncio
import json
import os
import unittest

from aod import settings
from aod.flow import (
    AgentNode, AsyncFlow, AsyncNode, BatchFlow, Declared, End, Flow, FlowError, ModelNode, Node, Scope, ToolNode, UnitNode,
    UniversalAgentNode, UniversalModelNode, UniversalToolNode, from_dict, to_dict, to_mermaid, to_yaml,
)

# What flow.yaml has beyond what Python does itself.
LETTER = r"""
nodes:
  draft:
    run: writer
    with: { topic: "${{ input.topic }}", remarks: "${{ state.remarks ?? [] }}" }
    set: { draft: "${{ out.text }}" }
    next: review
  review:
    run: critic
    timeout: 30s
    retry: { tries: 3, wait: 2s, factor: 2 }
    max_visits: 3
    with: { text: "${{ state.draft }}" }
    set: { remarks: "${{ out.remarks }}" }
    action: '${{ out.score >= 8 ? "good" : "again" }}'
    next: { good: publish, again: draft, exhausted: approve, error: approve }
  approve:
    ask: Publish "${{ input.topic }}" all the same? ${{ state.error?.message }}
    show: { draft: "${{ state.draft }}" }
    timeout: 48h
    next: { approve: publish, reject: end, timeout: end }
  publish: { run: publisher, with: { text: "${{ state.draft }}" }, fallback: { url: none }, set: { url: "${{ out.url }}" }, next: {default: end} }
max_steps: 50
start: draft
state: { url: { type: string } }
output: { url: '${{ state.url ?? "" }}' }
"""

RESEARCH = r"""
nodes:
  research:
    scope: isolated
    with: { question: "${{ state.question }}", own: "${{ state[\"a-b\"] }}" }
    flow:
      nodes:
        plan:
          run: model
          with: { prompt: "Three sources, as JSON, for: ${{ state.question }}, $${{ and so on" }
          set: { sources: "${{ out.text }}" }
          next: fetch
        fetch: { map: "${{ state.sources }}", tolerate: 100%, run: fetch-page, with: { url: "${{ item }}" }, set: { pages: "${{ out }}" }, next: {} }
    set: { report: "${{ out.report }}" }
    next: check
  check:
    flow: { nodes: { one: { run: hello, set: { said: "${{ out }}" }, retry: 2, timeout: 10s } } }
    set: { said: "${{ out.said }}" }
    next: shared
  shared: { scope: shared, flow: { start: x, nodes: { x: { set: { a: 1, b: [1, two, null] } } }, max_steps: 3 }, next: pick }
  pick: { run: '${{ state.a > 1 ? "a" : "b" }}', units: [a, b], next: pause }
  pause: { wait: 1m }
"""


class Twice(Node):
    def exec(self, prep_res):
        return 2

    def post(self, shared, prep_res, exec_res):
        shared["n"] = shared.get("n", 0) + exec_res


class Later(AsyncNode):
    async def post_async(self, shared, prep_res, exec_res):
        shared["later"] = True


class Walks(BatchFlow):
    def prep(self, shared):
        return [{}, {}, {}]


class Documents(unittest.TestCase):
    def same_both_ways(self, document):
        """The document is the same graph as JSON, as YAML, and as Python."""
        flow = from_dict(json.loads(json.dumps(document)))
        self.assertEqual(document, to_dict(flow))
        self.assertEqual(document, settings._yaml(flow.to_yaml()))
        self.assertEqual(document, from_dict(settings._yaml(to_yaml(flow))).to_dict())
        return flow

    def test_what_flow_yaml_says_is_the_same_there_and_back(self):
        for text in (LETTER, RESEARCH):
            self.same_both_ways(settings._yaml(text))

    def test_what_python_can_do_itself_has_its_classes(self):
        flow = self.same_both_ways(settings._yaml(RESEARCH))
        research = flow.start_node
        check = research.successors["default"]
        shared = check.successors["default"]
        pick = shared.successors["default"]
        plan = research.flow.start_node
        self.assertEqual([Scope, Scope, Flow, Declared, ModelNode], [type(each) for each in (research, check, shared, pick, plan)])
        self.assertEqual(({"question": "question", "own": "a-b"}, {"report": "report"}), (research.inputs, research.outputs))
        self.assertEqual(("Three sources, as JSON, for: {question}, ${{ and so on", ("question",)), (plan.prompt_template, plan.input_keys))
        self.assertEqual((None, {"said": "said"}), (check.inputs, check.outputs))
        one = check.flow.start_node
        self.assertEqual((UnitNode, "hello", "said", 2, "10s"), (type(one), one.unit, one.output_key, one.max_retries, one.timeout))
        self.assertEqual((Declared, 3), (type(shared.start_node), shared.max_steps))

    def test_an_end_that_isnt_wired_is_kept(self):
        a = UnitNode("hello", {"name": "name"}, "said")
        a - "retry" >> a
        written = to_dict(Flow(a))
        self.assertEqual({"retry": "hello", "default": "end"}, written["nodes"]["hello"]["next"])
        self.assertEqual(written, to_dict(from_dict(written)))
        self.assertIn('default: end', to_yaml(Flow(a)))
        as_read = {"start": "a", "nodes": {"a": {"run": "x", "next": {"y": "a"}}}}
        self.assertEqual(as_read, to_dict(from_dict(as_read)))

    def test_the_timeout_of_a_node_of_code_is_kept(self):
        written = to_dict(Flow(Twice(timeout=1.5)))
        self.assertEqual("1.5s", written["nodes"]["twice"]["timeout"])
        self.assertEqual(1.5, from_dict(written).start_node.timeout)

    def test_universal_nodes_over_units_are_written_and_those_over_objects_arent(self):
        tool = UniversalToolNode("hello", arg_mapping={"who": "name"}, output_key="said")
        tool >> UniversalAgentNode("helper", "task", "text")
        nodes = to_dict(Flow(tool))["nodes"]
        self.assertEqual({"run": "hello", "with": {"name": "${{ state.who }}"}, "set": {"said": "${{ out }}"}, "next": "helper"}, nodes["hello"])
        self.assertEqual({"run": "helper", "with": {"task": "${{ state.task }}"}, "set": {"text": "${{ out }}"}}, nodes["helper"])
        for node in (UniversalModelNode("gpt"), UniversalToolNode(print), UniversalAgentNode(print)):
            self.assertRaisesRegex(FlowError, "no form in flow.yaml", to_dict, Flow(node))

    def test_a_graph_made_in_python_has_the_form_of_flow_yaml(self):
        first = UnitNode("csv-report", {"group_by": "by", "x": "a.b"}, "report", files={"table": "table"}, timeout=30, max_retries=3, wait=1.5)
        tool, agent = ToolNode("search", {"query": "report.title", "odd": "a-b"}), AgentNode("search", "task", "text")
        first >> tool
        tool - "no" >> End()
        tool - "yes" >> agent
        agent >> Scope(Flow(ModelNode("Say {x}", ["x"], "y")), {"x": "text"}, {"z": "y"}) >> Flow(UnitNode("End"), max_steps=2)
        document = {
            "start": "csv-report",
            "max_steps": 9,
            "nodes": {
                "csv-report": {
                    "run": "csv-report",
                    "with": {"group_by": "${{ state.by }}", "x": "${{ state.a.b }}", "table": "${{ state.table }}"},
                    "set": {"report": "${{ out }}"}, "timeout": "30s", "retry": {"tries": 3, "wait": "1.5s"}, "next": "search",
                },
                "search": {
                    "run": "search", "with": {"query": "${{ state.report.title }}", "odd": '${{ state["a-b"] }}'},
                    "next": {"no": "end", "yes": "search-2", "default": "end"},
                },
                "search-2": {"run": "search", "with": {"task": "${{ state.task }}"}, "set": {"text": "${{ out }}"}, "next": "scope"},
                "scope": {
                    "scope": "isolated", "with": {"x": "${{ state.text }}"}, "set": {"z": "${{ out.y }}"}, "next": "flow",
                    "flow": {"start": "model", "nodes": {"model": {
                        "run": "model", "with": {"prompt": "Say ${{ state.x }}"}, "set": {"y": "${{ out.text }}"},
                    }}},
                },
                "flow": {"scope": "shared", "flow": {"start": "end-node", "max_steps": 2, "nodes": {"end-node": {"run": "End"}}}},
            },
        }
        self.assertEqual(document, to_dict(Flow(first, max_steps=9)))
        self.same_both_ways(document)

    def test_its_yaml_is_what_aod_is_known_to_take(self):
        first = UnitNode("csv-report", {"group_by": "by"}, "report", files={"table": "table"}, timeout=30, max_retries=3, wait=1.5)
        first >> AgentNode("writer", "task", "text") >> Scope(Flow(ModelNode("Say {x} $x ${{ y", ["x"], "y")), {"x": "text"}, {"z": "y"}) \
            >> Flow(UnitNode("hello"), max_steps=2) >> Scope(Flow(ToolNode("search", {"o": "a-b"}, "found")), outputs=["found"]) >> End()
        with open(os.path.join(os.path.dirname(__file__), "written.yaml")) as file:  # a test in Go reads it, too
            self.assertEqual(file.read(), to_yaml(Flow(first, max_steps=9)))

    def test_code_goes_by_the_name_of_its_class(self):
        first = Twice(max_retries=2)
        first >> Walks(Twice()) >> Twice()
        document = to_dict(Flow(first))
        self.assertEqual({
            "start": "twice",
            "nodes": {
                "twice": {"code": __name__ + ":Twice", "retry": 2, "next": "walks"},
                "walks": {"code": __name__ + ":Walks", "flow": {"start": "twice", "nodes": {"twice": {"code": __name__ + ":Twice"}}}, "next": "twice-2"},
                "twice-2": {"code": __name__ + ":Twice"},
            },
        }, document)
        shared, flow = {}, self.same_both_ways(document)
        flow.run(shared)
        self.assertEqual((10, 2, Flow), (shared["n"], flow.start_node.max_retries, type(flow)))
        shared, flow = {}, self.same_both_ways(to_dict(AsyncFlow(Later())))
        asyncio.run(flow.run_async(shared))
        self.assertEqual({"later": True}, shared)

    def test_what_has_no_form_is_told(self):
        class Local(Node):
            pass

        for flow in (Flow(), Flow(Local()), Flow(Scope(Walks(Twice())))):
            self.assertRaises(FlowError, to_dict, flow)

    def test_what_aod_alone_runs_python_refuses_to(self):
        with self.assertRaisesRegex(FlowError, r"the node draft \(run, with, set\) is run by AOD alone"):
            from_dict(settings._yaml(LETTER)).run({})

    def test_documents_that_are_no_flows_are_told(self):
        one = {"run": "hello"}
        for document in (
            None, [], {}, {"nodes": {}}, {"nodes": []}, {"nodes": {"a": 1}}, {"start": "b", "nodes": {"a": one}}, {"start": [], "nodes": {"a": one}},
            {"nodes": {"a": one, "b": one}}, {"start": "a", "nodes": {"a": one, "b": one}}, {"nodes": {"a": {**one, "next": "b"}}},
            {"nodes": {"a": {**one, "next": {"x": ["a"]}}}}, {"nodes": {"a": {**one, "next": 7}}}, {"nodes": {"a": {"code": "os"}}},
            {"nodes": {"a": {"code": "os:system"}}}, {"nodes": {"a": {"code": "os:nothing.at.all"}}}, {"nodes": {"a": {"code": 3}}},
            {"nodes": {"a": {"flow": {}}}},
        ):
            with self.subTest(document=document), self.assertRaises(FlowError):
                from_dict(document)

    def test_odd_nodes_stay_as_they_are(self):
        for spec in (
            {}, {"run": 7}, {"run": "x", "retry": "3"}, {"run": "x", "retry": {"tries": [1]}}, {"run": "x", "retry": True}, {"run": "x", "timeout": [3]},
            {"run": "x", "with": []}, {"run": "x", "set": "${{ out }}"}, {"run": "x", "with": {}}, {"run": "x", "with": {"a": "${{ input.b }}"}},
            {"run": "x", "with": {"prompt": "{a} ${{ state.a }}"}, "set": {"b": "${{ out.text }}"}}, {"run": "x", "description": "why"},
            {"run": "${{ state.unit }}"}, {"scope": "shared", "flow": {"nodes": {"a": {}}, "more": 1}},
        ):
            with self.subTest(spec=spec):
                self.assertIsInstance(self.same_both_ways({"nodes": {"a": spec}}).start_node, Declared)

    def test_yaml_keeps_every_text(self):
        texts = [
            "", " ", "a b", "yes", "No", "null", "~", "1", "0x1f", "1e3", "2026-11-23", "a: b", "- a", "# x", "a #b", "'", '"', "\\", "\n", "a\nb\n", "\t",
            "${{ a }}", "%", "&a", "*a", "!a", "é", "😀", "\x7f", "\x85", "\u2028", "\ufeff", "end", "a-b_c", "-", "y", "=", "<<",
        ]
        values = [None, True, False, 0, -3, 1.5, 1e300, [], {}, [[]], [[1, [2]], {"a": {"b": []}}], 2**53]
        document = {"nodes": {"a": {"set": {"texts": texts, "values": values, **{text: text for text in texts}}}}}
        self.same_both_ways(document)


class Pictures(unittest.TestCase):
    def test_a_flow_is_drawn_with_its_flows_inside(self):
        first = Twice()
        first - 'say "no"; <b>' >> Flow(UnitNode("hello")) >> End()
        first >> UnitNode("Big One")
        self.assertEqual("""flowchart TD
    n0["twice"]
    subgraph n1["flow"]
        n1_0["hello"]
    end
    n2["bigone: Big One"]
    n0 -->|"say #quot;no#quot;#59; #lt;b#gt;"| n1
    n0 --> n2
    nend3(("end"))
    n1 --> nend3
""", to_mermaid(Flow(first)))
        self.assertEqual("flowchart TD\n", Flow().to_mermaid())
