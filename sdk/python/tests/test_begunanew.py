"""An agent that begins anew asks for the same under the same keys."""

import aod
from aod import calls
from fakeapi import problem, succeeded
from fakemodel import AgentTest, calls as says, final

UNIT = {"type": "object", "properties": {"n": {"type": "integer"}}}
FUNCTION = "import aod\ndef twice(n):\n    return [aod.handoff('count', n=n).output, aod.handoff('count', n=n + 1).output]\n"
PROGRAM = "[tools.count(n=n)['n'] for n in (5, 6)]"


class BegunAnew(AgentTest):
    def setUp(self):
        super().setUp()
        calls.forget()
        self.capsule_file("agent.yaml", "name: it\nmodel: small\nloop: {python: kept}\n")
        self.tools([{"name": "count", "capsule": "count"}, {"name": "twice", "parameters": {"type": "object", "properties": {"n": {"type": "int"}}}}], FUNCTION)
        self.answers = []
        self.units(self.answer, count=UNIT)

    def answer(self, document):
        self.answers.append(document["args"]["n"])
        return succeeded(len(self.answers), {"n": document["args"]["n"]})

    def attempt(self, answer=None):
        """Have the agent run once, and return the keys of its calls and what the model was told."""
        if answer:
            self.api.answer, normal = lambda request: answer(request) or normal(request), self.api.answer
        before = len(self.api.requests)
        model = self.model(says(("count", {"n": 1}), ("twice", {"n": 2})), says(("python", {"code": PROGRAM})), final(total=1))
        self.assertEqual({"total": 1}, aod.agent().output)
        made = [request for request in self.api.requests[before:] if request.path.startswith("/handoff?")]
        return {request.headers["Idempotency-Key"]: request for request in made}, self.told(model)

    def test_calls_are_recalled_by_where_they_stand(self):
        first, told = self.attempt()
        self.assertEqual(
            ["agent:1/turn:1/call:1/1", "agent:1/turn:1/call:2/1", "agent:1/turn:1/call:2/2", "agent:1/turn:2/call:1/1", "agent:1/turn:2/call:1/2"],
            sorted(first))
        self.assertEqual({"/handoff?wait=false&recall=true"}, {request.path for request in first.values()})
        calls.forget()
        again, told_again = self.attempt()
        self.assertEqual(sorted(first), sorted(again))
        self.assertEqual(told, told_again)

    def test_a_second_agent_of_a_run_has_keys_of_its_own(self):
        first, _ = self.attempt()
        second, _ = self.attempt()
        self.assertFalse(set(first) & set(second))

    def test_where_the_conversation_takes_another_way_the_call_is_made(self):
        def other(request):
            if request.headers.get("Idempotency-Key") == "agent:1/turn:1/call:2/1":
                return problem(422, "invalid_input", rule="recall")

        made, told = self.attempt(other)
        self.assertIn('"n": 2', told[1])
        self.assertEqual(6, len(made))
        self.assertEqual(["/handoff?wait=false"], [request.path for key, request in made.items() if not key.startswith("agent:")])

    def test_other_refusals_are_told(self):
        def refused(request):
            if request.path.startswith("/handoff?"):
                return problem(422, "invalid_input", rule="size")

        made, told = self.attempt(refused)
        self.assertEqual(3, len(made))  # whoever makes two gives up after the first
        self.assertIn("it says no", told[0])
