import json
import os
import time
import unittest
from unittest import mock

import aod
from aod import code, codechild
from fakeapi import failed, succeeded
from fakemodel import ADD, AgentTest, calls, final

CODE = "def add(a, b):\n    return {'sum': a + b}\n"


def program(text, **more):
    return calls(("python", {"code": text, **more}))


class Programs(AgentTest):
    def setUp(self):
        super().setUp()
        self.grant("kept")

    def grant(self, state):
        self.capsule_file("agent.yaml", f"name: it\nmodel: small\nloop: {{python: {state}}}\n")

    def says(self, *programs):
        """What the model is told of programs, one after the other."""
        model = self.model(*programs, final(total=1))
        self.assertEqual({"total": 1}, aod.agent().output)
        return self.told(model)

    def test_what_it_prints_and_its_last_value_are_told(self):
        self.assertEqual(["a\nb\nvalue: 42", "it printed nothing"], self.says(
            program("import sys, os\nprint('a')\nprint('b', file=sys.stderr)\n6 * 7"), program("x = 1")))

    def test_variables_are_kept_or_not_as_the_unit_says(self):
        self.assertEqual("value: 5", self.says(program("x = 2"), program("x + 3"))[1])
        self.grant("fresh")
        self.assertIn("NameError: name 'x' is not defined", self.says(program("x = 2"), program("x + 3"))[1])

    def test_without_a_grant_there_is_no_such_tool(self):
        self.capsule_file("agent.yaml", "name: it\nmodel: small\n")
        model = self.model(program("1"), final(total=1))
        aod.agent()
        self.assertEqual(["final_answer"], [tool["function"]["name"] for tool in model.requests[0]["tools"]])
        self.assertIn("there is no tool 'python'", self.told(model)[0])

    def test_tools_are_functions_in_it(self):
        self.tools([ADD], CODE)
        model = self.model(program("sum(tools.add(a=n)['sum'] for n in range(10))"), final(total=1))
        aod.agent()
        self.assertEqual(["value: 145"], self.told(model))
        about = model.requests[0]["tools"][1]["function"]["description"]
        self.assertIn("- tools.add(*, a, b=...): Adds.", about)

    def test_units_are_called_with_files_and_their_records(self):
        asked = []

        def answer(document):
            asked.append(document["args"])
            return succeeded(len(asked), {"lines": len(asked)})

        self.tools([{"name": "csv-report", "capsule": "csv-report"}])
        self.units(answer, **{"csv-report": {"type": "object", "properties": {"n": {"type": "integer"}}}})
        self.assertEqual(["value: [1, 2, 3]"], self.says(program("[tools.csv_report(n=n)['lines'] for n in (7, 8, 9)]")))
        self.assertEqual([{"n": 7}, {"n": 8}, {"n": 9}], asked)

    def test_what_a_tool_refuses_is_an_exception(self):
        self.tools([ADD, {"name": "csv-report", "capsule": "csv-report"}], CODE)
        self.units(lambda _: failed(kind="capsule_error", type="Planned", message="as it was asked for", category="Permanent"), **{"csv-report": {"type": "object"}})
        told = self.says(program(
            "def last(call):\n    try:\n        call()\n    except ToolError as error:\n        print(str(error).splitlines()[-1])\n"
            "last(lambda: tools.add(b=1))\nlast(lambda: tools.add(a='x'))\nlast(lambda: tools.csv_report())\ntools.nothing()"))[0]
        self.assertIn("a", told.splitlines()[0])
        self.assertIn("as it was asked for", told)
        self.assertIn("has no attribute 'nothing'", told)

    def test_what_is_too_long_for_a_call_is_told(self):
        self.tools([{"name": "echo", "parameters": {"type": "object", "properties": {"n": {"type": "int"}, "s": {"type": "string"}}}}],
                   "def echo(n=0, s=''):\n    return 'x' * n\n")
        with mock.patch.object(code, "MESSAGE", 1 << 16):
            told = self.says(program("tools.echo(n=1 << 17)"), program("tools.echo(s='x' * (17 << 20))"), program("len(tools.echo(n=9))"))
        self.assertIn("ToolError: it has over 0 MiB", told[0])
        self.assertIn("ToolError: it has over 16 MiB", told[1])
        self.assertEqual("value: 9", told[2])

    def test_an_error_names_its_line(self):
        told = self.says(program("def divide(n):\n    return 1 / n\n\nprint('before')\ndivide(0)"), program("if x"))
        self.assertEqual(
            'before\nTraceback (most recent call last):\n  File "<program 1>", line 5, in <module>\n    divide(0)',
            "\n".join(told[0].splitlines()[:4]))
        self.assertIn('line 2, in divide\n    return 1 / n', told[0])
        self.assertNotIn("codechild", told[0])
        self.assertIn("SyntaxError", told[1])

    def test_long_output_has_both_ends_and_a_file(self):
        told = self.says(program("for n in range(100_000): print(n)"))[0]
        self.assertTrue(told.startswith("0\n1\n2\n"))
        self.assertTrue(told.endswith("99998\n99999"))
        self.assertLess(len(told), 3 * code.SHOWN)
        name = told[told.index("results/"):].split(" ")[0]
        with open(os.path.join(self.workspace, name), encoding="utf-8") as file:
            self.assertEqual(100_000, len(file.readlines()))

    def test_files_are_where_tools_have_them(self):
        self.file("io/input/a.csv", "x\n1\n")
        told = self.says(program(f"open('{self.io}/output/b.txt', 'w').write(open(path('a.csv')).read())\npath('nothing')"))[0]
        self.assertIn("FileNotFoundError: nothing", told)
        with open(f"{self.io}/output/b.txt", encoding="utf-8") as file:
            self.assertEqual("x\n1\n", file.read())


class Hostile(AgentTest):
    def setUp(self):
        super().setUp()
        self.capsule_file("agent.yaml", "name: it\nmodel: small\nloop: {python: kept}\n")

    def after(self, text, **more):
        """What is told of a program, and of one after it in which everything works."""
        model = self.model(program(text, **more), program("print('still there')"), final(total=1))
        began = time.monotonic()
        self.assertEqual({"total": 1}, aod.agent().output)
        self.assertLess(time.monotonic() - began, 30)
        told = self.told(model)
        self.assertEqual("still there", told[1])
        return told[0]

    def test_what_takes_too_long_is_ended_with_all_that_it_started(self):
        self.assertEqual("it was ended after 1 s: variables are lost", self.after(
            "import subprocess\nsubprocess.Popen(['sleep', '600'])\nwhile True: pass", seconds=1))

    def test_a_process_that_dies_is_told(self):
        for text in ("import os; os._exit(3)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "import ctypes; ctypes.string_at(0)"):
            with self.subTest(text):
                self.assertIn("the process ended with", self.after(text))

    def test_what_ends_itself_is_not_the_end(self):
        self.assertEqual("it ended itself with 7", self.after("raise SystemExit(7)"))

    def test_what_holds_its_output_open_isnt_waited_for(self):
        self.assertEqual("value: 1", self.after("import subprocess\nsubprocess.Popen(['sleep', '20'])\n1"))

    def test_what_prints_without_end_is_bounded(self):
        with mock.patch.object(code, "KEPT", 1 << 20):
            told = self.after("while True: print('x' * 1000)", seconds=1)
        self.assertLess(len(told), 3 * code.SHOWN)

    def test_lies_on_the_channel_end_the_process(self):
        channel = "import gc, socket\nown = [s for s in gc.get_objects() if isinstance(s, socket.socket)][0]\n"
        for lie in ("own.sendall(b'\\xff' * 100)", "own.sendall(b'\\0\\0\\0\\4nope')", "own.sendall(b'\\0\\0\\0\\4[{}]')", "own.close()"):
            with self.subTest(lie):
                self.assertRegex(self.after(channel + lie), "the process (broke its connection|ended with)")

    def test_a_program_that_lies_in_the_workspace_isnt_ours(self):
        with open(os.path.join(self.workspace, "json.py"), "w", encoding="utf-8") as file:
            file.write("raise SystemExit(9)")
        self.assertEqual("value: 2", self.after("1 + 1"))

    def test_wrong_arguments_are_told(self):
        for arguments, said in (({}, "code has to be"), ({"code": 1}, "code has to be"), ({"code": "1", "seconds": 0}, "from 1 to 600"), ({"code": "1", "seconds": "2"}, "from 1 to")):
            with self.subTest(arguments):
                model = self.model(calls(("python", arguments)), final(total=1))
                aod.agent()
                self.assertIn(said, self.told(model)[0])


class Values(unittest.TestCase):
    def test_a_value_is_json_where_that_can_say_it(self):
        for value in (7, 0.5, "a", [1, {"a": None}], (1, 2), True):
            self.assertEqual(json.loads(json.dumps(value)), codechild.execute("v", "<p>", {"v": value})["json"])
        circle = []
        circle.append(circle)
        for value in (10 ** 400, float("nan"), circle, {1, 2}, object(), "x" * (code.JSON + 1)):
            done = codechild.execute("v", "<p>", {"v": value})
            self.assertNotIn("json", done)
            self.assertLessEqual(len(done["value"]), code.SHOWN + 10)
        self.assertEqual({}, codechild.execute("None", "<p>", {}))
