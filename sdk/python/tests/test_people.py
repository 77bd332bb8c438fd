import aod
from aod import people
from fakeapi import APITest, problem


class People(APITest):
    def setUp(self):
        super().setUp()
        people.forget()

    def test_an_answer_has_who_gave_it(self):
        self.serve(lambda _: (200, {"answer": "approve", "option": "approve", "by": "ada", "note": "go"}))
        reply = aod.ask_person("May I?", kind="approval", timeout=1.5)
        self.assertEqual(("approve", "approve", "ada", "go"), (reply.answer, reply.option, reply.by, reply.note))
        self.assertEqual({"text": "May I?", "kind": "approval", "timeout": "1.500s"}, self.api.requests[0].document)
        self.assertEqual("/ask", self.api.requests[0].path)

    def test_what_is_asked_for_is_sent(self):
        self.serve(lambda _: (200, {"answer": {"n": 1}, "option": "a"}))
        schema = {"type": "object"}
        self.assertEqual({"n": 1}, aod.ask_person("Which?", options=("a", "b"), schema=schema, timeout="90s").answer)
        self.assertEqual(
            {"text": "Which?", "kind": "input", "options": ["a", "b"], "schema": schema, "timeout": "90s"},
            self.api.requests[0].document,
        )

    def test_a_question_that_is_denied_is_an_error(self):
        self.serve(lambda _: (200, {"denied": "a person said no", "by": "ada", "note": "too early"}))
        with self.assertRaises(aod.Denied) as caught:
            aod.ask_person("May I?")
        self.assertEqual("a person said no: too early", str(caught.exception))
        self.assertEqual(("ada", "too early"), (caught.exception.by, caught.exception.note))
        self.assertIsInstance(caught.exception, aod.CapsuleError)

    def test_the_same_question_has_the_same_key_in_another_attempt(self):
        self.serve(lambda _: (200, {"answer": "x"}))
        for _ in range(2):
            people.forget()
            aod.ask_person("Who?")
            aod.ask_person("Who?")
            aod.ask_person("Who?", options=["a"])
        keys = self.api.keys()
        self.assertEqual(keys[:3], keys[3:])
        self.assertEqual(3, len(set(keys)))

    def test_a_lost_connection_asks_again_under_the_key(self):
        answers = iter([None, (503, {}), (200, {"answer": "x"})])
        self.serve(lambda _: next(answers))
        self.assertEqual("x", aod.ask_person("Who?").answer)
        self.assertEqual(3, len(self.api.keys()))
        self.assertEqual(1, len(set(self.api.keys())))

    def test_what_is_no_question_is_refused(self):
        self.serve(lambda _: problem(422, "invalid_input"))
        with self.assertRaises(aod.HandoffRefused):
            aod.ask_person("")
