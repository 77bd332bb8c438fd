"""Capsules without code, run the way that the sandbox runs them."""

import json
import os
import signal
import threading

from fakemodel import ADD, OUTPUT, FakeModel, calls, error, final, text
from harness import CapsuleTest

SCHEMA = {
    "input": {"type": "object", "properties": {"message": {"type": "string", "default": "hello"}}},
    "output": OUTPUT,
}


class WithoutCode(CapsuleTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.capsule + "/src/ai")
        self.workspace = os.path.join(self.io, "workspace")
        os.mkdir(self.workspace)
        self.write(self.capsule, "agent.yaml", "model: small\n")
        self.write(self.capsule, "src/ai/task.md", "Count $message\n")

    def model(self, *answers):
        found = FakeModel(answers)
        self.addCleanup(found.stop)
        self.variables.update(OPENAI_BASE_URL=found.url, AOD_WORKSPACE=self.workspace, AOD_SOCKET=self.io + "/none")
        return found

    def tools(self, code):
        self.write(self.capsule, "tools.yaml", json.dumps([ADD]))
        self.write(self.capsule, "src/tools.py", code)

    def test_the_task_is_the_program(self):
        model = self.model(final(total=5))
        self.run_capsule(None, {}, SCHEMA)
        self.assertEqual(({"total": 5}, 0, ""), (self.output, self.status, self.stderr))
        self.assertEqual([{"role": "user", "content": "Count hello"}], model.requests[0]["messages"])

    def test_functions_of_its_own_find_their_neighbours(self):
        self.write(self.capsule, "src/numbers_.py", "ONE = 1\n")
        self.tools("from numbers_ import ONE\nfrom .numbers_ import ONE as one\ndef add(a, b):\n    return a + ONE + one\n")
        model = self.model(calls(("add", {"a": 1})), final(total=3))
        self.run_capsule(None, {}, SCHEMA)
        self.assertEqual({"total": 3}, self.output)
        self.assertEqual("3", model.requests[1]["messages"][-1]["content"])

    def test_an_end_without_an_answer_is_the_runs_error_without_a_traceback(self):
        self.model(error(402, message="the tokens are spent", rule="tokens"))
        self.run_capsule(None, {}, SCHEMA)
        self.assert_error("AgentError", "budget: the tokens are spent")
        self.assertNotIn("Traceback", self.stderr)

    def test_without_a_model_it_says_what_to_do(self):
        self.variables["OPENAI_BASE_URL"] = ""
        self.run_capsule(None, {}, SCHEMA)
        self.assert_error("AgentError", "setup: there is no model to ask")

    def test_code_comes_first_and_may_ask_too(self):
        model = self.model(text("blue"))
        self.run_capsule("import aod\ndef execute(p):\n    return {'total': len(aod.ask().text)}", {}, SCHEMA)
        self.assertEqual({"total": 4}, self.output)
        self.assertEqual("Count hello", model.requests[0]["messages"][0]["content"])

    def test_neither_code_nor_a_task_is_an_error_that_names_both(self):
        os.unlink(self.capsule + "/src/ai/task.md")
        self.run_capsule(None, {}, SCHEMA)
        self.assert_breach("src/main.py is missing, and so is src/ai/task.md")

    def test_a_tool_that_exits_ends_the_run(self):
        self.tools("import sys\ndef add(a, b):\n    sys.exit(7)\n")
        self.model(calls(("add", {"a": 1})))
        self.run_capsule(None, {}, SCHEMA)
        self.assertEqual(7, self.status)

    def test_the_end_of_its_time_ends_a_question_at_once(self):
        asked, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)
        self.model(lambda _: asked.set() or over.wait(60) and None)
        self.ends_at_once(asked)

    def test_the_end_of_its_time_ends_a_tool_at_once(self):
        fifo = os.path.join(self.workspace, "begun")
        os.mkfifo(fifo)
        self.tools(f"import time\ndef add(a, b):\n    open({fifo!r}, 'w').close()\n    while True:\n        time.sleep(0.01)\n")
        self.model(calls(("add", {"a": 1}), ("add", {"a": 2})))
        begun = threading.Event()
        threading.Thread(target=self.await_writer, args=(fifo, begun), daemon=True).start()
        self.ends_at_once(begun)

    def await_writer(self, fifo, begun):
        with open(fifo):
            begun.set()

    def ends_at_once(self, begun):
        process = self.start(None, {}, SCHEMA)
        self.assertTrue(begun.wait(60))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=180)
        self.assertEqual((143, None), (process.returncode, self.read_output()))
