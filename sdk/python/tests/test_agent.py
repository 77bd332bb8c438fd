import base64
import json
import os
import threading
import time
from unittest import mock

import aod
from fakeapi import failed, problem, succeeded
from fakemodel import ADD, AgentTest, calls, error, final, text

CODE = "def add(a, b):\n    return {'sum': a + b}\n"
FILE = {"type": "object", "properties": {"table": {"type": "string", "format": "file_path"}}, "required": ["table"]}


class Answers(AgentTest):
    def test_a_call_of_final_answer_is_the_answer(self):
        model = self.model(final(total=3, note="x"))
        answer = aod.agent()
        self.assertEqual(({"total": 3, "note": "x"}, 1), (answer.output, answer.turns))
        self.assertEqual({"input_tokens": 10, "output_tokens": 3, "cached_tokens": 2}, answer.usage)
        self.assertEqual("small", model.requests[0]["model"])
        self.assertEqual(["final_answer"], [tool["function"]["name"] for tool in model.requests[0]["tools"]])
        self.assertEqual(("Bearer aod-test", 3), (model.headers[0]["Authorization"], len(answer.messages)))

    def test_the_prompts_hold_the_input_which_is_never_scanned_again(self):
        model = self.model(final(total=3))
        aod.agent()
        self.assertEqual([{"role": "system", "content": "You add."}, {"role": "user", "content": "Do this: $n and $$ (3)"}],
                         model.requests[0]["messages"])

    def test_a_field_of_the_input_that_was_left_out_is_empty(self):
        self.file("io/input.json", '{"message": "m"}')
        model = self.model(final(total=3))
        aod.agent()
        self.assertEqual("Do this: m ()", model.requests[0]["messages"][1]["content"])

    def test_a_name_that_is_none_of_the_inputs_is_told(self):
        self.capsule_file("src/ai/task.md", "Do $what")
        self.assertIn("no value for $what", str(self.fails("setup", lambda: self.model() and aod.agent())))

    def test_texts_that_are_given_are_filled_only_from_values_that_are_given(self):
        model = self.model(final(total=1), final(total=1))
        aod.agent("costs $5", system="plain")
        aod.agent("costs $price", values={"price": [5, "$x"]})
        self.assertEqual("costs $5", model.requests[0]["messages"][1]["content"])
        self.assertEqual("costs [5, \"$x\"]", model.requests[1]["messages"][-1]["content"])

    def test_the_schema_is_told_as_plain_json_schema(self):
        model = self.model(final(total=3))
        aod.agent()
        told = model.requests[0]["tools"][0]["function"]["parameters"]
        self.assertEqual({"type": "integer", "minimum": 0}, told["properties"]["total"])

    def test_references_are_told_as_what_they_say(self):
        node = {"type": "dict", "properties": {"next": {"$ref": "#/definitions/node"}, "definitions": {"type": "int"}}}
        schema = {"input": {"type": "object"}, "output": {"$ref": "#/definitions/node"}, "definitions": {"node": node}}
        self.capsule_file("schema.json", json.dumps(schema))
        model = self.model(calls(("final_answer", {"next": {"next": 1}, "definitions": "x"})), calls(("final_answer", {"next": {}})))
        self.assertEqual({"next": {}}, aod.agent("t").output)
        told = model.requests[0]["tools"][0]["function"]["parameters"]
        self.assertEqual({"type": "object", "properties": {"next": {}, "definitions": {"type": "integer"}}}, told)
        self.assertEqual(2, self.told(model)[0].count("\n- output."))

    def test_other_calls_beside_a_valid_answer_are_not_run(self):
        self.tools([ADD], "def add(a, b):\n    raise SystemExit(9)\n")
        self.model(calls(("add", {"a": 1}), ("final_answer", {"total": 1})))
        self.assertEqual({"total": 1}, aod.agent().output)

    def test_json_in_the_text_is_the_answer(self):
        for said in ('{"total": 4}', 'Here it is:\n```json\n{"total": 4}\n```\nBye.', 'So: {"total": 4} I think'):
            with self.subTest(said):
                self.model(text(said))
                self.assertEqual({"total": 4}, aod.agent().output)

    def test_what_it_thought_aloud_is_no_answer(self):
        for said in (
            '<think>maybe {"total": 1}</think>{"total": 4}', '\n<thinking>{"total": 1}\n```json\n{"total": 2}\n```</thinking>\n\n```json\n{"total": 4}\n```',
            'or {"total": 1}?\n</think>\n{"total": 4}', '<think>a</think> <think>{"total": 1}</think>Here: {"total": 4}',
            'Well.<think>{"total": 1}</think>{"total": 4}', '{"total": 4, "note": "<think>{}</think>"}',
            '<THINK>{"total": 1}</THINK>{"total": 4}', '[THINK]{"total": 1}[/THINK]{"total": 4}', '<thought>{"total": 1}</thought>\n{"total": 4}',
            'So. <reasoning>{"total": 1}</reasoning>{"total": 4}', '◁think▷{"total": 1}◁/think▷{"total": 4}', '<think time="1s">{"total": 1}</think>{"total": 4}',
            '{"total": 1}? No.\n</think>\n{"total": 4}', '<think>a <think>{"total": 1}</think> {"total": 2}</think>{"total": 4}',
            '<seed:think>{"total": 1}</seed:think>{"total": 4}',
        ):
            with self.subTest(said):
                model = self.model(text(said), text('{"total": 0}'))
                self.assertEqual((4, 1), ((answer := aod.agent()).output["total"], answer.turns))
                self.assertEqual(said, answer.messages[-1]["content"])
        model = self.model(text("<think>so it was cut", "length"), text("<think>a\nb</think>\n\nIn HTML, <think> and </think> aren't tags."))
        answer = aod.ask("x")
        self.assertEqual(("In HTML, <think> and </think> aren't tags.", 2), (answer.text, len(model.requests)))

    def test_json_that_is_written_oddly_is_the_answer_all_the_same(self):
        schema = {"type": "object", "properties": {"report": {"type": "string"}}, "required": ["report"], "additionalProperties": False}
        for said, want in (
            ('```JSON\r\n{"report": "a"}\r\n```', "a"), ('```json5\n{"report": "a"}\n``` or {so}', "a"), ('{"report": "a\nb"}', "a\nb"),
            ('\ufeff{"report": "a"}', "a"), ('<tool_call>\n{"name": "final_answer", "arguments": {"report": "a"}}\n</tool_call>', "a"),
            ('{"name": "final_answer", "parameters": {"report": "a"}}', "a"), ('final_answer({"report": "a"})', "a"),
        ):
            with self.subTest(said):
                model = self.model(text(said), text("x"))
                self.assertEqual(({"report": want}, 1), ((answer := aod.agent(output=schema)).output, answer.turns))
        for said in ("{'report': 'a'}", '{"report": "a",}', '{"report": "a"', '{"report": "a"} or {"report": "b"}', '```json\n{"report": "a",}\n```'):
            with self.subTest(said):
                model = self.model(text(said), final(report="b"))
                self.assertEqual(({"report": "b"}, 2), ((answer := aod.agent(output=schema)).output, answer.turns))
                self.assertEqual(2, len(model.requests))

    def test_parts_of_an_answer_that_are_no_text_are_none(self):
        said = [{"type": "reasoning", "text": '{"total": 1} '}, {"type": "thinking", "thinking": "x"}, {"type": "output_text", "text": '{"total": 4}'}]
        self.model(text(said))
        self.assertEqual({"total": 4}, aod.agent().output)
        self.model(text([{"type": "refusal", "refusal": "not that"}]))
        with self.assertRaisesRegex(aod.AgentError, "not that"):
            aod.agent()

    def test_a_text_is_the_answer_where_the_output_is_one_text(self):
        self.model(text("  It went well. {not json}\n"))
        self.assertEqual({"report": "It went well. {not json}"}, aod.agent(output={
            "type": "object", "properties": {"report": {"type": "string"}}, "required": ["report"],
        }).output)

    def test_json_that_breaks_the_contract_is_no_text_for_the_one_field(self):
        model = self.model(text('{"reprot": "x"}'), text("x"))
        schema = {"type": "object", "properties": {"report": {"type": "string"}}, "required": ["report"], "additionalProperties": False}
        self.assertEqual(({"report": "x"}, 2), ((answer := aod.agent(output=schema)).output, answer.turns))
        self.assertIn("output must contain ['report']", model.requests[1]["messages"][-1]["content"])
        self.model(text('```json\n{"reprot": "x"}\n```'), text("See {this}:\n```json\n{}\n```\n"))
        self.assertEqual("See {this}:\n```json\n{}\n```", aod.agent(output=schema).output["report"])

    def test_json_that_breaks_the_contract_is_told_with_every_finding(self):
        model = self.model(text('Here:\n```\n{"total": "x", "note": 1}\n```'), final(total=1))
        aod.agent()
        said = model.requests[1]["messages"][-1]["content"]
        self.assertIn("output.total must be integer", said)
        self.assertIn("output.note must be string", said)

    def test_ask_is_one_turn_for_a_text(self):
        self.tools([ADD], CODE)
        model = self.model(text("hello"))
        answer = aod.ask("say hello")
        self.assertEqual((None, "hello", 1), (answer.output, answer.text, answer.turns))
        self.assertNotIn("tools", model.requests[0])

    def test_ask_with_a_schema_asks_again_until_it_is_kept(self):
        model = self.model(text("blue"), text('"red"'), final(colour="red"))
        schema = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red"]}}, "required": ["colour"]}
        answer = aod.ask("colour?", output=schema)
        self.assertEqual(({"colour": "red"}, 3), (answer.output, answer.turns))
        self.assertEqual(3, len(model.requests))


class Tools(AgentTest):
    def test_a_function_is_called_by_the_names_of_its_arguments_and_defaults(self):
        self.tools([ADD], CODE)
        model = self.model(calls(("add", {"a": 1})), final(total=11))
        self.assertEqual(({"total": 11}, 2), ((answer := aod.agent()).output, answer.turns))
        self.assertEqual(['{"sum": 11}'], self.told(model))
        self.assertEqual('{"a": 1}', model.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"])

    def test_a_default_of_null_is_filled_in_and_not_shown(self):
        parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"], "default": None}}}
        self.tools([{**ADD, "parameters": parameters}], "def add(a, b):\n    return {'b': b}\n")
        model = self.model(calls(("add", {"a": 1})), final(total=11))
        aod.agent()
        self.assertEqual(['{"b": null}'], self.told(model))
        shown = model.requests[0]["tools"][0]["function"]["parameters"]
        self.assertEqual({"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}}, shown["properties"])

    def test_parallel_calls_are_answered_in_their_order_whatever_ends_first(self):
        self.tools([{**ADD, "name": name} for name in ("slow", "quick")],
                   "import threading\nended = threading.Event()\n"
                   "def slow(a, b):\n    return 'slow' if ended.wait(30) else 'alone'\n"
                   "def quick(a, b):\n    ended.set()\n    return 'quick'\n")
        self.units(None)
        model = self.model(calls(("slow", {"a": 1}), ("quick", {"a": 1})), final(total=1))
        aod.agent()
        self.assertEqual(["slow", "quick"], self.told(model))
        self.assertEqual(["turn 1: slow, quick"], self.steps)

    def test_no_more_than_parallel_run_at_once(self):
        self.tools([ADD], "import threading, time\nlock, now, most, three = threading.Lock(), [0], [0], threading.Barrier(3, timeout=30)\n"
                   "def add(a, b):\n    with lock:\n        now[0] += 1\n        most[0] = max(most[0], now[0])\n"
                   "    three.wait()\n    time.sleep(0.02)\n    with lock:\n        now[0] -= 1\n    return most[0]\n")
        model = self.model(calls(*[("add", {"a": n}) for n in range(9)]), final(total=1))
        aod.agent(parallel=3)
        self.assertEqual(3, max(map(int, self.told(model))))

    def test_a_sequential_tool_runs_alone(self):
        self.tools([{**ADD, "sequential": True}, {**ADD, "name": "other"}],
                   "import time\nrunning = []\n"
                   "def add(a, b):\n    return enter('add')\n"
                   "def other(a, b):\n    return enter('other')\n"
                   "def enter(name):\n    beside = [*running]\n    running.append(name)\n    time.sleep(0.1)\n"
                   "    running.remove(name)\n    return 'beside add' if 'add' in beside or name == 'add' and beside else 'fine'\n")
        order = ("other", "add", "add", "other", "other", "add")
        model = self.model(calls(*[(name, {"a": 1}) for name in order]), final(total=1))
        aod.agent()
        self.assertEqual(["fine"] * 6, self.told(model))

    def test_an_unknown_tool_is_told_with_those_that_there_are(self):
        self.tools([ADD], CODE)
        model = self.model(calls(("sub", {"a": 1})), final(total=1))
        aod.agent()
        self.assertEqual(["there is no tool 'sub' now; there are: add"], self.told(model))

    def test_broken_arguments_are_told_and_do_not_go_back(self):
        self.tools([ADD], CODE)
        for said in ('{"a": 1', '[1]', '"a"', "nonsense"):
            with self.subTest(said):
                model = self.model(calls(("add", said)), final(total=1))
                aod.agent()
                self.assertIn("the arguments aren't", self.told(model)[0])
                self.assertEqual("{}", model.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"])

    def test_a_tool_that_takes_nothing_is_called_with_nothing(self):
        self.tools([{"name": "now", "description": "d", "parameters": {"type": "object", "properties": {}}}], "def now():\n    return 'noon'\n")
        for said in (None, "null", " null ", "", {}, "{}", [], "[]"):
            with self.subTest(said):
                model = self.model(calls(("now", said)), final(total=1))
                aod.agent()
                self.assertEqual(["noon"], self.told(model))
                self.assertEqual("{}", model.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"])
        model = self.model(calls(("now", None)), final(total=1), facts={"dialects": ["messages"]})
        aod.agent()
        self.assertEqual("noon", model.requests[1]["messages"][2]["content"][0]["content"])

    def test_arguments_that_are_written_oddly_are_taken(self):
        self.tools([{"name": "say", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}], "def say(x):\n    return x\n")
        for dialect, said in (("chat", '{"x": "a\nb"}'), ("messages", '{"x": "a\nb"}'), ("messages", {"x": "a\nb"})):
            with self.subTest(dialect):
                model = self.model(calls(("say", said)), final(total=1), facts={"dialects": [dialect]})
                aod.agent()
                content = model.requests[1]["messages"][-1]["content"]
                self.assertEqual("a\nb", content if dialect == "chat" else content[0]["content"])
                self.assertNotIn('"input": "', json.dumps(model.requests[1]))
        model = self.model(calls(("say", '{"x": NaN}')), final(total=1))
        aod.agent()
        self.assertIn("NaN isn't a number", self.told(model)[0])

    def test_arguments_against_the_schema_are_told_with_every_finding(self):
        self.tools([ADD], CODE)
        model = self.model(calls(("add", {"a": "x", "b": "y", "c": 1})), final(total=1))
        aod.agent()
        told = self.told(model)[0]
        for finding in ("arguments.a must be integer", "arguments.b must be integer", "'c'"):
            self.assertIn(finding, told)

    def test_an_exception_is_told_by_type_and_message_and_its_traceback_is_logged(self):
        self.tools([ADD], "def add(a, b):\n    raise KeyError('gone')\n")
        model = self.model(calls(("add", {"a": 1})), final(total=1))
        with mock.patch("sys.stderr") as log:
            aod.agent()
        self.assertEqual(["KeyError: 'gone'"], self.told(model))
        self.assertIn("Traceback", "".join(call.args[0] for call in log.write.call_args_list))

    def test_a_tool_error_is_told_as_it_is_and_not_logged(self):
        self.tools([ADD], "import aod\ndef add(a, b):\n    raise aod.ToolError('too big: ' + 'x' * 9999)\n")
        model = self.model(calls(("add", {"a": 1})), final(total=1))
        with mock.patch("sys.stderr") as log:
            aod.agent()
        self.assertTrue(self.told(model)[0].startswith("too big: xxx"))
        self.assertEqual((4096, 0), (len(self.told(model)[0]), log.write.call_count))

    def test_a_capsule_error_ends_the_run(self):
        self.tools([ADD], "import aod\nclass Closed(aod.CapsuleError): pass\ndef add(a, b):\n    raise Closed('shop')\n")
        model = self.model(calls(("add", {"a": 1})))
        with self.assertRaises(aod.CapsuleError) as caught:
            aod.agent()
        self.assertEqual(("Closed", "shop", 1), (type(caught.exception).__name__, str(caught.exception), len(model.requests)))

    def test_a_result_without_a_form_in_json_is_told(self):
        self.tools([ADD], "def add(a, b):\n    return {1, 2}\n")
        model = self.model(calls(("add", {"a": 1})), final(total=1))
        with mock.patch("sys.stderr"):
            aod.agent()
        self.assertIn("has no JSON form", self.told(model)[0])

    def test_a_result_of_a_mebibyte_is_cut_and_the_whole_is_a_file_that_can_be_named(self):
        self.tools([ADD, {"name": "size", "description": "d", "parameters": FILE}],
                   "import os\ndef add(a, b):\n    return 'é' * (1 << 19)\ndef size(table):\n    return os.path.getsize(table)\n")
        name = []

        def ask(request):
            told = request["messages"][-1]["content"]
            name.append(told.rpartition(" ")[2].rstrip("]"))
            return calls(("size", {"table": name[0]}))

        model = self.model(calls(("add", {"a": 1})), ask, final(total=1))
        aod.agent()
        cut, size = self.told(model)
        self.assertIn("\n[cut: it has 1048576 bytes; the whole is the file results/add-", cut)
        self.assertEqual(("1048576", 32 << 10), (size, len(cut.partition("\n[cut")[0].encode())))
        self.assertTrue(os.path.isfile(os.path.join(self.workspace, name[0])))

    def test_a_tool_that_takes_too_long_is_not_waited_for(self):
        self.tools([{**ADD, "timeout": "50ms"}], "import threading\nend = threading.Event()\ndef add(a, b):\n    end.wait(30)\n")
        model = self.model(calls(("add", {"a": 1}), ("add", {"a": 2})), final(total=1))
        aod.agent()
        import src.tools

        src.tools.end.set()
        self.assertEqual(["it had no result after 0.05 s"] * 2, self.told(model))

    def test_async_functions_are_awaited(self):
        self.tools([ADD], "async def add(a, b):\n    return a\n")
        model = self.model(calls(("add", {"a": 7})), final(total=1))
        aod.agent()
        self.assertEqual(["7"], self.told(model))

    def test_tools_can_be_chosen_and_given(self):
        self.tools([ADD, {**ADD, "name": "other"}], CODE)
        model = self.model(calls(("twice", {"a": 2})), final(total=1))
        aod.agent(tools=["add", {**ADD, "name": "twice", "function": lambda a, b: 2 * a}])
        self.assertEqual(["add", "twice", "final_answer"], [tool["function"]["name"] for tool in model.requests[0]["tools"]])
        self.assertEqual(["4"], self.told(model))

    def test_a_function_that_is_declared_and_not_there_is_told_before_the_first_question(self):
        self.tools([ADD], "def sub(a, b): pass\n")
        model = self.model()
        self.assertIn("no function add", str(self.fails("setup", aod.agent)))
        self.assertEqual([], model.requests)

    def test_yaml_is_read_as_aod_reads_it(self):
        self.tools([])
        self.capsule_file("tools.yaml", "- name: add\n  description: on\n  parameters:\n    type: object\n"
                          "    properties: {a: {type: string, enum: [yes, no, 2024-01-01, 1:30, 0o7]}, b: {default: 0x10, const: true}}\n")
        self.capsule_file("src/tools.py", CODE)
        model = self.model(final(total=1))
        aod.agent()
        told = model.requests[0]["tools"][0]["function"]["parameters"]["properties"]
        self.assertEqual((["yes", "no", "2024-01-01", "1:30", "0o7"], 16, True), (told["a"]["enum"], told["b"]["default"], told["b"]["const"]))


class JudgedByAOD(AgentTest):
    """What an answer and arguments are held against where AOD validates."""

    def setUp(self):
        super().setUp()
        os.environ["AOD_VALIDATES"] = "1"  # the environment is put back after each test
        self.asked, self.answers = [], []
        self.serve(self.judge)

    def judge(self, request):
        if request.path != "/validate":
            return 204, b""
        self.asked.append(request.document)
        return self.answers.pop(0)

    def test_an_answer_is_held_against_the_contract_by_it(self):
        finding = {"pointer": "/total", "message": "is not one of the allowed values: 1, 2"}
        self.answers = [(200, {"valid": False, "findings": [finding]}), (200, {"valid": True, "findings": []})]
        model = self.model(final(total=True), final(total=2))
        self.assertEqual({"total": 2}, aod.agent().output)
        with open(self.capsule + "/schema.json") as file:
            self.assertEqual({"schema": json.load(file), "side": "output", "value": {"total": True}}, self.asked[0])
        self.assertIn("output/total: is not one of the allowed values: 1, 2", self.told(model, 1)[0])

    def test_arguments_are_held_against_the_tools_schema_and_get_its_defaults(self):
        self.tools([ADD], CODE)
        self.answers = [(200, {"valid": True, "findings": []})] * 2
        model = self.model(calls(("add", {"a": 1})), final(total=1))
        aod.agent()
        self.assertEqual({"schema": ADD["parameters"], "value": {"a": 1}}, self.asked[0])
        self.assertEqual(['{"sum": 11}'], self.told(model))

    def test_a_schema_that_cannot_be_used_ends_the_agent(self):
        self.answers = [problem(422, "invalid_input", findings=[{"pointer": "/type", "message": "isn't a type"}])] * 2
        self.model(final(total=1))
        self.assertIn("/type: isn't a type", str(self.fails("setup", aod.agent)))
        self.tools([ADD], CODE)
        self.model(calls(("add", {"a": 1})))
        self.fails("setup", aod.agent)

    def test_a_value_that_it_cannot_read_is_told(self):
        self.answers = [problem(400, "bad_request"), (200, {"valid": True, "findings": []})]
        model = self.model(final(total=1), calls(("final_answer", '{"total": 1e999}')), final(total=1))
        self.assertEqual(({"total": 1}, 3), ((answer := aod.agent()).output, answer.turns))
        self.assertIn("it says no", self.told(model, 1)[0])
        self.assertIn("has no JSON form", self.told(model, 2)[-1])


class Setups(AgentTest):
    def test_a_schema_that_only_aod_can_judge_is_told_before_the_first_question(self):
        strange = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^\p{L}+$"}}}
        model = self.model()
        self.assertIn("run the unit with aod", str(self.fails("setup", lambda: aod.ask("x", output=strange))))
        self.tools([{**ADD, "parameters": strange}], CODE)
        self.assertIn("run the unit with aod", str(self.fails("setup", aod.agent)))
        self.assertEqual([], model.requests)


class Handoffs(AgentTest):
    REPORT = [{"name": "report", "capsule": "csv-report", "description": "Reports."}, {"name": "text", "capsule": "pdf-text"}]

    def test_a_capsule_is_a_tool_with_its_own_schema(self):
        self.tools(self.REPORT)
        self.units(lambda document: succeeded(1, {"lines": 2}), **{"csv-report": FILE, "pdf-text": {"type": "object"}})
        self.file("io/input/a.csv")
        model = self.model(calls(("report", {"table": "a.csv"})), final(total=1))
        aod.agent()
        report, pdf, _ = [tool["function"] for tool in model.requests[0]["tools"]]
        self.assertEqual(("Reports.", "About pdf-text."), (report["description"], pdf["description"]))
        self.assertEqual({"type": "string", "description": mock.ANY}, report["parameters"]["properties"]["table"])
        self.assertEqual(['{"output": {"lines": 2}, "files": []}'], self.told(model))
        self.assertEqual("/capsules?schema=json", self.listing)

    def test_files_go_through_three_tools_by_their_names(self):
        self.tools([*self.REPORT, {"name": "count", "description": "Counts.", "parameters": FILE}],
                   "def count(table):\n    import pathlib\n    return pathlib.Path(table).read_text()\n")
        seen = []

        def run(document):
            seen.append(document)
            place = os.path.join(self.outgoing, document["args"]["table"])
            with open(place) as file:
                content = file.read()
            path = self.file(f"io/handoff/incoming/{len(seen)}/out.txt", content + "!")
            row = {"name": "out.txt", "path": path, "size_bytes": len(content) + 1, "sha256": content, "field": "f"}
            return succeeded(len(seen), {"f": "out.txt"}, [row])

        self.units(run, **{"csv-report": FILE, "pdf-text": FILE})
        self.file("io/input/deep/a.csv", "a")
        model = self.model(
            calls(("report", {"table": "deep/a.csv"})), calls(("text", {"table": "out.txt"})),
            calls(("count", {"table": "out-2.txt"})), final(total=1),
        )
        aod.agent()
        self.assertEqual([
            '{"output": {"f": "out.txt"}, "files": [{"name": "out.txt", "size": 2}]}',
            '{"output": {"f": "out-2.txt"}, "files": [{"name": "out-2.txt", "size": 3}]}', "a!!",
        ], self.told(model))
        self.assertEqual(["csv-report", "pdf-text"], [document["target"] for document in seen])

    def test_a_file_that_is_not_there_is_told_with_those_that_are(self):
        self.tools(self.REPORT)
        self.units(None, **{"csv-report": FILE, "pdf-text": FILE})
        self.file("io/input/a.csv")
        os.symlink("/etc/passwd", self.io + "/input/link")
        for name in ("b.csv", "../../etc/passwd", "/etc/passwd", "link", ""):
            with self.subTest(name):
                model = self.model(calls(("report", {"table": name})), final(total=1))
                aod.agent()
                self.assertIn("there is no file", self.told(model)[0])
                self.assertIn("a.csv", self.told(model)[0])

    def test_a_refused_call_is_told_with_findings_and_hint(self):
        self.tools(self.REPORT)
        finding = {"pointer": "/rows", "message": "must be at least 1", "hint": "write 1"}
        self.units(lambda _: problem(422, "invalid_input", findings=[finding], hint="look at the schema"),
                   **{"csv-report": {"type": "object"}, "pdf-text": FILE})
        model = self.model(calls(("report", {"rows": 0})), final(total=1))
        aod.agent()
        self.assertEqual(["csv-report was refused (invalid_input): it says no; look at the schema\n"
                          "- /rows: must be at least 1 (write 1)"], self.told(model))

    def test_a_failed_call_is_told(self):
        self.tools(self.REPORT)
        self.units(lambda _: failed(kind="capsule_error", message="NoRows: empty"), **{"csv-report": {}, "pdf-text": {}})
        model = self.model(calls(("report", {})), final(total=1))
        aod.agent()
        self.assertEqual(["csv-report failed (capsule_error): NoRows: empty"], self.told(model))

    def test_a_unit_that_may_not_be_called_is_told_before_the_first_question(self):
        self.tools(self.REPORT)
        self.units(None, **{"csv-report": {}})
        self.assertIn("pdf-text", str(self.fails("setup", lambda: self.model() and aod.agent())))


class Files(AgentTest):
    def setUp(self):
        super().setUp()
        self.capsule_file("schema.json", json.dumps({"input": {"type": "object"}, "output": FILE}))

    def test_a_file_of_the_answer_comes_to_the_output_wherever_it_lay(self):
        self.file("workspace/charts/c.svg", "svg")
        self.model(final(table="charts/c.svg"))
        self.assertEqual({"table": "charts/c.svg"}, aod.agent("t").output)
        with open(self.io + "/output/charts/c.svg") as file:
            self.assertEqual("svg", file.read())

    def test_a_file_that_lies_there_is_named_as_it_is(self):
        self.file("io/output/c.svg", "svg")
        self.model(final(table=self.io + "/output/c.svg"))
        self.assertEqual({"table": "c.svg"}, aod.agent("t").output)

    def test_a_file_that_is_nowhere_is_a_finding(self):
        model = self.model(final(table="c.svg"), final(table="d.svg"), final(table="e.svg"))
        self.assertIn("there is no file 'e.svg'", self.fails("invalid_output", lambda: aod.agent("t")).findings[0])
        self.assertEqual(([], 3), (os.listdir(self.io + "/output"), len(model.requests)))

    def test_images_are_sent_as_data(self):
        self.file("io/input/a.png", "\x89PNG")
        with open(self.io + "/input/a.png", "wb") as file:
            file.write(b"\x89PNG...")
        model = self.model(text("a cat"), text("a cat"))
        aod.ask("what?", images=["a.png"])
        data = base64.b64encode(b"\x89PNG...").decode()
        self.assertEqual([{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}}],
                         model.requests[0]["messages"][1]["content"])


class Endings(AgentTest):
    def setUp(self):
        super().setUp()
        self.tools([ADD], CODE)

    def test_two_repairs_and_then_right(self):
        model = self.model(final(total=-1, extra=1), text("I'd say 3"), final(total=3))
        answer = aod.agent()
        self.assertEqual(({"total": 3}, 3), (answer.output, answer.turns))
        self.assertIn("output.total", self.told(model, 1)[0])
        self.assertIn("extra", self.told(model, 1)[0])
        self.assertIn("no JSON object that keeps the schema", model.requests[2]["messages"][-1]["content"])

    def test_two_repairs_and_then_wrong(self):
        model = self.model(*[final(total=-1)] * 4)
        error = self.fails("invalid_output", aod.agent)
        self.assertEqual((3, 3, 30), (len(model.requests), error.turns, error.usage["input_tokens"]))
        self.assertIn("output.total must be bigger than or equal to 0", error.findings)
        self.assertEqual("assistant", error.messages[-1]["role"])

    def test_repairs_can_be_more_or_none(self):
        self.fails("invalid_output", lambda: self.model(final()) and aod.agent(repairs=0))
        self.capsule_file("agent.yaml", "model: small\nloop: {repairs: 3}\n")
        model = self.model(*[final(total="x")] * 3, final(total=1))
        self.assertEqual(4, aod.agent().turns)
        self.assertEqual(4, len(model.requests))

    def test_the_same_calls_with_the_same_results_are_noted_and_then_ended(self):
        model = self.model(*[calls(("add", {"a": 1}))] * 9)
        error = self.fails("no_progress", aod.agent)
        self.assertEqual((5, 5), (error.turns, len(model.requests)))
        self.assertEqual("tool", model.requests[2]["messages"][-1]["role"])
        self.assertIn("three times in a row", model.requests[3]["messages"][-1]["content"])
        self.assertEqual("tool", model.requests[4]["messages"][-1]["role"])

    def test_the_same_calls_with_other_results_go_on(self):
        self.tools([ADD], "seen = []\ndef add(a, b):\n    seen.append(a)\n    return len(seen)\n")
        self.model(*[calls(("add", {"a": 1}))] * 6, final(total=6))
        self.assertEqual(7, aod.agent().turns)

    def test_the_last_turn_offers_the_answer_alone_and_says_so(self):
        model = self.model(calls(("add", {"a": 1})), calls(("add", {"a": 2})), final(total=1))
        self.assertEqual({"total": 1}, aod.agent(max_turns=3).output)
        self.assertEqual([2, 2, 1], [len(request["tools"]) for request in model.requests])
        self.assertIn("the last turn", model.requests[2]["messages"][-1]["content"])

    def test_who_has_no_answer_in_the_last_turn_gets_none(self):
        model = self.model(*[calls(("add", {"a": n})) for n in range(5)])
        error = self.fails("max_turns", lambda: aod.agent(max_turns=3))
        self.assertEqual((3, 3), (error.turns, len(model.requests)))

    def test_a_broken_answer_in_the_last_turn_may_still_be_mended(self):
        model = self.model(final(total=-1), final(total=1))
        self.assertEqual(2, aod.agent(max_turns=1).turns)
        self.assertEqual(2, len(model.requests))

    def test_what_is_too_long_is_made_shorter_once(self):
        self.tools([ADD], "def add(a, b):\n    return str(a) * 5000\n")
        long = error(400, message="too long", code="context_length_exceeded")
        model = self.model(calls(("add", {"a": 1})), calls(("add", {"a": 2})), long, final(total=1))
        self.assertEqual({"total": 1}, aod.agent().output)
        self.assertEqual(["[5000 characters were left out here to make room]", "2" * 5000], self.told(model))
        self.assertEqual(4, len(model.requests))

    def test_what_stays_too_long_is_an_end(self):
        self.tools([ADD], "def add(a, b):\n    return str(a) * 5000\n")
        long = error(400, message="prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")
        model = self.model(calls(("add", {"a": 1})), calls(("add", {"a": 2})), long, long, final(total=1))
        self.assertEqual(2, self.fails("context_length", aod.agent).turns - 1)
        self.assertEqual(4, len(model.requests))
        model = self.model(long, final(total=1))
        self.fails("context_length", aod.agent)
        self.assertEqual(1, len(model.requests))

    def test_room_is_made_only_once(self):
        self.tools([ADD], "def add(a, b):\n    return str(a) * 5000\n")
        long = error(400, message="this model's maximum context length is 8 tokens")
        turns = [calls(("add", {"a": n})) for n in range(4)]
        model = self.model(*turns[:2], long, turns[2], long, final(total=1))
        self.fails("context_length", aod.agent)
        self.assertEqual(5, len(model.requests))

    def test_a_refusal_is_an_end(self):
        for answer in (text(None, refusal="I won't."), text("", "content_filter"), error(400, message="no", code="content_filter")):
            self.model(answer)
            self.fails("refusal", aod.agent)

    def test_a_budget_that_is_spent_in_mid_turn_is_an_end_with_what_there_was(self):
        model = self.model(calls(("add", {"a": 1})), error(402, message="the tokens are spent", rule="tokens", hint="raise budgets.tokens"))
        error_ = self.fails("budget", aod.agent)
        self.assertEqual(("tokens", 402, 2), (error_.rule, error_.status, error_.turns))
        self.assertEqual("budget: the tokens are spent; raise budgets.tokens", str(error_))
        self.assertEqual((2, "tool"), (len(model.requests), error_.messages[-1]["role"]))

    def test_a_hint_that_the_message_has_too_is_told_once(self):
        self.model(error(404, message="there is no model x (add it)", rule="model", hint="add it"))
        self.assertEqual("model: there is no model x; add it", str(self.fails("model", aod.agent)))

    def test_what_the_gateway_refuses_is_an_end(self):
        for status in (400, 401, 403, 404, 413, 429, 500, 502, 503, 504):
            with self.subTest(status):
                model = self.model(error(status, message="no", rule="model"))
                self.assertEqual(status, self.fails("model", aod.agent).status)
                self.assertEqual(1, len(model.requests))

    def test_an_answer_that_was_cut_off_is_asked_for_again(self):
        model = self.model(text("It is a long st", "length"), calls(("final_answer", '{"total": '), reason="length"), final(total=1))
        self.assertEqual({"total": 1}, aod.agent().output)
        self.assertIn("cut off", model.requests[1]["messages"][-1]["content"])
        self.assertIn("cut off", self.told(model)[0])
        self.model(text("a long st", "length"), text("short"))
        self.assertEqual("short", aod.ask("t").text)

    def test_an_empty_answer_is_none(self):
        self.model(text(""), text(None), text("x"))
        self.assertEqual(3, aod.ask("t").turns)

    def test_without_a_gateway_or_a_model_it_says_what_is_missing(self):
        self.assertIn("OPENAI_BASE_URL", str(self.fails("setup", aod.agent)))
        self.model()
        self.capsule_file("agent.yaml", "name: it\n")
        self.assertIn("names no model", str(self.fails("setup", aod.agent)))
        os.environ["OPENAI_BASE_URL"] = "ftp://x"
        self.fails("setup", lambda: aod.ask("t", model="m"))

    def test_a_gateway_that_stays_away_is_an_end(self):
        self.model()
        os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
        with mock.patch("aod.api.PATIENCE", 0), mock.patch("aod.api.Retry.__init__.__defaults__", (0, "")):
            self.fails("model", aod.agent)


class Wire(AgentTest):
    def setUp(self):
        super().setUp()
        self.tools([ADD], "def add(a, b):\n    return 'r' * 300 + str(a)\n")

    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self):
        model = self.model(None, None, calls(("add", {"a": 1})), None, final(total=1))
        self.assertEqual(2, aod.agent().turns)
        keys = [headers["Idempotency-Key"] for headers in model.headers]
        self.assertEqual((3, 2), (keys.count(keys[0]), keys.count(keys[3])))

    def test_equal_questions_have_keys_of_their_own(self):
        model = self.model(text("a"), text("b"))
        aod.ask("t"), aod.ask("t")
        first, second = [headers["Idempotency-Key"] for headers in model.headers]
        self.assertEqual((first[:-1], "1", "2"), (second[:-1], first[-1], second[-1]))

    def test_what_is_sent_is_the_same_in_every_run(self):
        script = (calls(("add", {"a": 1}), ("add", {"a": "x"}), ("nope", {})), text("no"), final(total="x"), final(total=1))

        def sent():
            from aod import model as asking

            asking.forget()
            model = self.model(*script)
            aod.agent()
            return [(*body, headers["Idempotency-Key"]) for body, headers in zip(model.bodies, model.headers)]

        self.assertEqual(sent(), sent())

    def test_agents_beside_one_another_send_the_same_in_every_run(self):
        def sent():
            from aod import model as asking

            asking.forget()
            model = self.model(*[text("x")] * 8)
            threads = [threading.Thread(target=aod.ask, args=(f"t{n % 2}",)) for n in range(8)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            return sorted((body, headers["Idempotency-Key"]) for (_, body), headers in zip(model.bodies, model.headers))

        self.assertEqual(sent(), sent())

    def test_messages_where_a_model_speaks_only_that(self):
        facts = {"dialects": ["messages"], "max_output": 4096}
        model = self.model(calls(("add", {"a": 1}), content="Let me add."), calls(("add", {"a": "x"})), final(total=1), facts=facts)
        answer = aod.agent()
        self.assertEqual(({"total": 1}, {"input_tokens": 30, "output_tokens": 9, "cached_tokens": 12}), (answer.output, answer.usage))
        self.assertEqual(["/v1/messages"] * 3, [path for path, _ in model.bodies])
        self.assertEqual("2023-06-01", model.headers[0]["anthropic-version"])
        first, second, third = model.requests
        self.assertEqual(("You add.", 4096), (first["system"], first["max_tokens"]))
        self.assertEqual(["add", "final_answer"], [tool["name"] for tool in first["tools"]])
        self.assertEqual([{"type": "text", "text": mock.ANY, "cache_control": {"type": "ephemeral"}}], first["messages"][0]["content"])
        self.assertEqual(["text", "tool_use"], [block["type"] for block in second["messages"][1]["content"]])
        self.assertEqual({"type": "tool_result", "tool_use_id": "c0", "content": "r" * 300 + "1",
                          "cache_control": {"type": "ephemeral"}}, second["messages"][2]["content"][0])
        self.assertTrue(third["messages"][4]["content"][0]["is_error"])
        self.assertEqual(1, json.dumps(third).count("cache_control"))
        self.assertEqual({"a": 1}, second["messages"][1]["content"][1]["input"])

    def test_messages_end_as_chat_does(self):
        facts = {"dialects": ["messages"]}
        self.model(text("", "refusal"), facts=facts)
        self.fails("refusal", aod.agent)
        self.model(error(402, message="spent", rule="cost"), facts=facts)
        self.assertEqual("cost", self.fails("budget", aod.agent).rule)
        long = error(400, message="prompt is too long: 9 tokens > 8 maximum", type="invalid_request_error")
        model = self.model(calls(("add", {"a": 1})), calls(("add", {"a": 2})), long, text('{"total": 1}'), facts=facts)
        self.assertEqual({"total": 1}, aod.agent().output)
        self.assertIn("left out", model.requests[3]["messages"][2]["content"][0]["content"])
        model = self.model(text("", "end_turn"), text("x", "max_tokens"), final(total=1), facts=facts)
        self.assertEqual(3, aod.agent().turns)

    def test_a_model_that_speaks_neither_is_told(self):
        self.model(facts={"dialects": ["embeddings"]})
        self.assertIn("embeddings", str(self.fails("setup", aod.agent)))

    def test_a_model_for_which_chat_is_translated_is_asked_so(self):
        facts = {"dialects": ["responses"], "translated": ["chat", "messages"]}
        model = self.model(final(total=1), facts=facts)
        aod.agent()
        self.assertEqual("/v1/chat/completions", model.bodies[0][0])

    def test_a_gateway_that_says_nothing_of_models_is_asked_in_chat(self):
        model = self.model(final(total=1), facts="?")
        aod.agent()
        self.assertEqual("/v1/chat/completions", model.bodies[0][0])

    def test_the_temperature_is_the_capsules_and_is_not_sent_without(self):
        model = self.model(text("x"), text("x"))
        aod.ask("t")
        self.capsule_file("agent.yaml", "model: small\ntemperature: 0\nmax_tokens: 9\n")
        aod.ask("t")
        self.assertEqual([None, 0], [request.get("temperature") for request in model.requests])
        self.assertNotIn("max_tokens", model.requests[1])
