import os

import aod
from fakeapi import APITest, problem


def said(n, *parts):
    return {"n": n, "id": f"m{n}", "role": "user", "parts": list(parts), "metadata": {"k": "v"}, "at": "2026-01-01T00:00:00Z"}


class Told(APITest):
    def test_messages_have_their_texts_and_data(self):
        self.serve(lambda _: (200, {"messages": [said(3, {"text": "a"}, {"data": {"x": 1}}, {"text": "b"})]}))
        [message] = aod.messages(after=2)
        self.assertEqual((3, "m3", "user", "ab", {"x": 1}, {"k": "v"}), (
            message.n, message.id, message.role, message.text, message.data, message.metadata,
        ))
        self.assertEqual("/messages?after=2&wait=0.000s", self.api.requests[0].path)

    def test_a_wait_that_is_longer_than_one_request_asks_again(self):
        answers = iter([(200, {"messages": []}), (200, {"messages": [said(1, {"text": "a"})]})])
        self.serve(lambda _: next(answers))
        self.assertEqual(["a"], [m.text for m in aod.messages(wait="1m")])
        self.assertEqual(["/messages?after=0&wait=30.000s"], [self.api.requests[0].path])
        self.assertEqual(2, len(self.api.requests))

    def test_nothing_said_is_an_empty_list(self):
        self.serve(lambda _: (200, {"messages": []}))
        self.assertEqual([], aod.messages())
        self.assertEqual(1, len(self.api.requests))

    def test_a_wait_that_is_none_is_refused(self):
        for wait in ("soon", "1h", "-1s", "s"):
            with self.assertRaises(ValueError):
                aod.messages(wait=wait)

    def test_what_is_shown_is_sent(self):
        self.serve(lambda _: (204, b""))
        aod.artifact("one ", name="story")
        aod.artifact("two", name="story", append=True, last=True)
        aod.artifact(data=[1, None], id="numbers", media_type="application/json")
        aod.artifact(file="a/chart.svg")
        aod.artifact(file=os.path.join(self.directory, "io", "output", "b.svg"))
        self.assertEqual([
            {"append": False, "last": False, "name": "story", "text": "one "},
            {"append": True, "last": True, "name": "story", "text": "two"},
            {"append": False, "last": False, "id": "numbers", "media_type": "application/json", "data": [1, None]},
            {"append": False, "last": False, "file": "a/chart.svg"},
            {"append": False, "last": False, "file": "b.svg"},
        ], [request.document for request in self.api.requests])
        self.assertEqual(5, len(set(self.api.keys())))

    def test_a_lost_connection_sends_it_again_under_its_key(self):
        answers = iter([None, (503, {}), (204, b"")])
        self.serve(lambda _: next(answers))
        aod.artifact("text")
        self.assertEqual(1, len(set(self.api.keys())))
        self.assertEqual(3, len(self.api.keys()))

    def test_what_can_not_be_shown_is_refused(self):
        self.serve(lambda _: problem(413, "too_large"))
        with self.assertRaises(aod.HandoffRefused):
            aod.artifact("text")
