"""What a run keeps is worked for once."""

import json
import threading
import urllib.parse

import aod
from aod import address, calls
from fakeapi import APITest, problem, succeeded


class Memory(APITest):
    def setUp(self):
        super().setUp()
        calls.forget()
        self.kept, self.worked = {}, []
        self.serve(self.answer)

    def answer(self, request):
        if request.path.startswith("/handoff"):
            return succeeded(len(self.api.requests))
        key = urllib.parse.parse_qs(request.path.partition("?")[2])["key"][0]
        if request.command == "PUT":
            self.kept.setdefault(key, request.document["value"])
        return (200, {"value": self.kept[key]}) if key in self.kept else problem(404, "not_found")

    def work(self, value):
        self.worked.append(value)
        return value

    def test_a_result_is_worked_for_once(self):
        for value in (None, 0, "é", [1, {"a": None}]):
            key = f"a b/..//{json.dumps(value)}&?"
            self.assertEqual([value, value], [aod.remember(key, lambda value=value: self.work(value)) for _ in range(2)])
        self.assertEqual(4, len(self.worked))

    def test_it_is_the_same_at_first_as_later(self):
        self.assertEqual([[1, 2]] * 2, [aod.remember("pair", lambda: (1, 2)) for _ in range(2)])

    def test_another_process_was_faster(self):
        def slow():
            self.kept["k"] = "theirs"
            return "ours"
        self.assertEqual("theirs", aod.remember("k", slow))

    def test_what_fails_or_is_no_json_is_not_kept(self):
        def fail():
            raise LookupError("no")
        self.assertRaises(LookupError, aod.remember, "k", fail)
        self.assertRaises(TypeError, aod.remember, "k", object)
        self.assertRaises(ValueError, aod.remember, "k", lambda: float("nan"))
        self.assertEqual({}, self.kept)
        self.assertEqual(1, aod.remember("k", lambda: 1))

    def test_of_two_at_once_one_works(self):
        entered, go = threading.Event(), threading.Event()

        def slow():
            entered.set()
            go.wait(10)
            return self.work("one")
        came = []
        threads = [threading.Thread(target=lambda: came.append(aod.remember("k", slow)))]
        threads[0].start()
        entered.wait(10)
        threads.append(threading.Thread(target=lambda: came.append(aod.remember("k", lambda: self.work("two")))))
        threads[1].start()
        self.assertEqual("other", aod.remember("other", lambda: "other"))
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual((["one"], ["one", "one"]), (self.worked, came))

    def test_a_full_memory_says_so(self):
        self.api.answer = lambda request: problem(413, "too_large") if request.command == "PUT" else problem(404, "not_found")
        with self.assertRaises(aod.HandoffRefused) as caught:
            aod.remember("k", lambda: 1)
        self.assertEqual("too_large", caught.exception.code)

    def test_calls_behind_it_have_the_same_places_whether_it_is_kept_or_not(self):
        def attempt():
            calls.forget()
            calls.place.enter("agent:1/turn:1/call:1")
            before = len(self.api.requests)
            aod.remember("a", lambda: aod.handoff("count").output)
            aod.handoff("count")
            calls.place.enter("")
            made = [request for request in self.api.requests[before:] if request.path.startswith("/handoff?")]
            return [request.headers["Idempotency-Key"] for request in made]
        self.assertEqual(["agent:1/turn:1/call:1/1/1", "agent:1/turn:1/call:1/2"], attempt())
        self.assertEqual(["agent:1/turn:1/call:1/2"], attempt())

    def test_so_do_agents_and_steps(self):
        def attempt():
            calls.forget()
            address.forget()
            with address.walk():
                aod.remember("a", lambda: self.work((calls.agent(), address.key())))
                return calls.agent(), address.key()
        self.assertEqual(("agent:1", "flow/1.2"), attempt())
        self.assertEqual(("agent:1", "flow/1.2"), attempt())
        self.assertEqual([("kept:1/1", "flow/1.1.1")], self.worked)
