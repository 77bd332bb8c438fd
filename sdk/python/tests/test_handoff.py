import os
import threading
import time
from unittest import mock

import aod
from aod import api, calls, watch
from fakeapi import APITest, accept, failed, problem, succeeded


class Results(APITest):
    def test_a_result_has_output_files_and_id(self):
        path = self.file("io/handoff/incoming/a.csv")
        row = {"name": "a.csv", "path": path, "size_bytes": 7, "sha256": "00", "field": "report"}
        self.serve(accept(lambda *_: succeeded(0, {"report": "a.csv", "pages": [{"file": "a.csv"}]}, [row])))
        result = aod.handoff("csv", {"x": 1}, y=2)
        self.assertEqual(("h0", "a.csv"), (result.id, result.output["report"]))
        self.assertEqual(("a.csv", path, 7, "00"), (result.files[0].name, result.files[0].path, 7, "00"))
        self.assertEqual((path, path), (result.path("report"), result.path("pages.0.file")))
        with open(result.files[0]) as file:
            self.assertEqual("content", file.read())
        self.assertEqual({"target": "csv", "args": {"x": 1, "y": 2}}, self.api.requests[0].document)
        self.assertEqual("/handoff?wait=false", self.api.requests[0].path)
        self.assertIn("application/problem+json", self.api.requests[0].headers["Accept"])

    def test_a_field_without_a_file_is_a_key_error(self):
        self.serve(accept(lambda *_: succeeded(0, {"n": 1, "list": []})))
        result = aod.handoff("csv")
        for field in ("n", "missing", "list.0", "n.x", "list.-1", ""):
            with self.subTest(field=field), self.assertRaises(KeyError):
                result.path(field)

    def test_a_result_in_the_first_answer_is_taken(self):
        self.serve(lambda _: succeeded())
        self.assertEqual({"ok": True}, aod.handoff("csv").output)
        self.assertEqual(1, len(self.api.requests))

    def test_the_timeout_is_the_callees(self):
        self.serve(lambda _: succeeded())
        for timeout, sent in ((2, "2.000s"), (0.5, "0.500s"), ("1m", "1m")):
            aod.handoff("csv", timeout=timeout)
            self.assertEqual(sent, self.api.requests[-1].document["timeout"])

    def test_a_slow_callee_is_asked_for_again_and_again(self):
        with mock.patch.object(calls, "WAIT", 0.05):
            self.serve(accept(lambda *_: len(self.api.requests) > 4 and succeeded(0)))
            self.assertTrue(aod.handoff("slow").output["ok"])
        self.assertIn("/handoff/h0?wait=0.050s", [request.path for request in self.api.requests])
        self.assertGreater(len(self.api.requests), 4)

    def test_arguments_that_have_no_json_form_are_the_callers_error(self):
        with self.assertRaises(TypeError):
            aod.handoff("csv", {"x": object()})
        with self.assertRaises(ValueError):
            aod.handoff("csv", {"x": float("nan")})


class Failures(APITest):
    def test_a_callee_that_failed_is_an_error_with_its_own_words(self):
        self.serve(accept(lambda *_: failed(category="AgentError", kind="capsule_error", type="NoRows", message="empty")))
        with self.assertRaises(aod.HandoffError) as caught:
            aod.handoff("csv")
        error = caught.exception
        self.assertEqual("csv failed (capsule_error): empty", str(error))
        self.assertEqual(
            ("AgentError", "capsule_error", "NoRows", "empty", "csv", "h1"),
            (error.category, error.kind, error.type, error.message, error.target, error.result.id),
        )

    def test_a_refusal_says_which_rule_and_what_to_do(self):
        finding = {"pointer": "/n", "message": "is missing"}
        for status, code, rule in ((403, "forbidden", "grant"), (404, "not_found", ""), (409, "conflict", "cycle"),
                                   (413, "too_large", "size"), (422, "invalid_input", ""), (429, "busy", "calls"),
                                   (504, "deadline", "deadline"), (500, "internal", "")):
            with self.subTest(code=code):
                self.serve(lambda _: problem(status, code, rule=rule, hint="do this", findings=[finding]))
                with self.assertRaises(aod.HandoffRefused) as caught:
                    aod.handoff("csv")
                error = caught.exception
                self.assertEqual(f"csv was refused ({code}): it says no; do this", str(error))
                self.assertEqual(
                    (code, code, rule, status, [finding], "do this", "it says no"),
                    (error.code, error.kind, error.rule, error.status, error.findings, error.hint, error.message),
                )
                self.assertEqual(1, len(self.api.requests))

    def test_without_an_api_it_says_so_at_once(self):
        del os.environ["AOD_SOCKET"]
        with mock.patch.object(api, "SOCKET", "/nowhere/aod.sock"), self.assertRaises(aod.HandoffUnavailable) as caught:
            aod.handoff("csv")
        self.assertIn("/nowhere/aod.sock", str(caught.exception))

    def test_hostile_answers_become_errors(self):
        def with_files(*files):
            return succeeded(files=files)
        answers = {
            "no JSON": (200, b"<html>"), "half JSON": (200, b'{"handoff_id":'), "no UTF-8": (200, b"\xff\xfe\xfa"),
            "no object": (200, b"[1]"), "deep": (200, b"[" * 100000), "nothing": (200, b""), "no id": (202, {"state": "x"}),
            "an id of another type": (202, {"handoff_id": 7}), "no output": (200, {"handoff_id": "h", "success": True}),
            "output of another type": (200, {"handoff_id": "h", "success": True, "output": []}),
            "success of another type": (200, {"handoff_id": "h", "success": "yes", "output": {}}),
            "an error of another type": (200, {"handoff_id": "h", "success": False, "error": "x"}),
            "a file of another type": with_files("x"), "a file without a path": with_files({"name": "x"}),
            "a relative path": with_files({"name": "x", "path": "x"}),
            "a problem that isn't JSON": (400, b"<html>"), "a problem of other types": (400, {"detail": 1, "findings": {}}),
            "too much": (200, b" " * 2000),
        }
        for name, answer in answers.items():
            with self.subTest(name), mock.patch.object(api, "ANSWER_BYTES", 1000 if name == "too much" else api.ANSWER_BYTES):
                self.serve(lambda _: answer)
                with self.assertRaises(aod.HandoffError) as caught:
                    aod.handoff("csv")
                self.assertNotIsInstance(caught.exception, aod.HandoffUnavailable)


class Connections(APITest):
    def lose_first(self, broken, then):
        seen = []

        def answer(request):
            seen.append(request)
            return broken if len(seen) == 1 else then(request)
        self.serve(answer)

    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self):
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"
        for name, broken in {
            "no answer": None, "half a line": [b"HTTP/1."], "half the headers": [whole[:19]], "half a header": [whole[:30]], "no body": [whole],
            "half the body": [whole, b'{"handoff_id":'], "half a chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"],
            "no HTTP": [b"hello\r\n\r\n"], "not available": problem(503, "unavailable"),
        }.items():
            with self.subTest(name):
                self.lose_first(broken, accept(lambda *_: succeeded(0)))
                self.assertTrue(aod.handoff("csv").output["ok"])
                keys = self.api.keys()
                self.assertEqual(2, len(keys))
                self.assertEqual(1, len(set(keys)))
                self.assertRegex(keys[0], "^[0-9a-f]{32}$")

    def test_each_call_has_a_key_of_its_own(self):
        self.serve(lambda _: succeeded())
        aod.handoff("csv")
        aod.handoff("csv")
        self.assertEqual(2, len(set(self.api.keys())))

    def test_a_lost_answer_of_a_wait_is_asked_for_again(self):
        answer, lost = accept(lambda *_: succeeded(0)), []

        def lose_gets(request):
            if request.command == "GET" and len(lost) < 3:
                return lost.append(1)
            return answer(request)
        self.serve(lose_gets)
        self.assertTrue(aod.handoff("csv").output["ok"])
        self.assertEqual((1, 3), (len(self.api.keys()), len(lost)))

    def test_an_api_that_comes_back_at_the_same_path_is_found(self):
        self.serve(accept(lambda *_: succeeded(0))).stop()
        back = threading.Timer(0.2, self.serve, [accept(lambda *_: succeeded(0))])
        back.start()
        self.addCleanup(back.join)
        self.assertTrue(aod.handoff("csv").output["ok"])

    def test_an_api_that_stays_away_is_unavailable(self):
        with mock.patch.object(api, "PATIENCE", 0.2), self.assertRaises(aod.HandoffUnavailable):
            api.request("GET", "/run", patience=0.2)

    def test_the_url_is_the_way_where_there_is_no_socket(self):
        self.serve(lambda _: succeeded())
        os.environ["AOD_URL"] = "http://127.0.0.1:1"
        self.assertTrue(aod.handoff("csv").output["ok"], "the socket comes first")
        os.environ["AOD_SOCKET"] = self.socket + ".none"
        with self.assertRaises(api.Lost):
            api.Exchange("GET", "/run")
        for url in ("https://aod", "nonsense", "http://", "http://a:port"):
            os.environ["AOD_URL"] = url
            with self.subTest(url), self.assertRaises(aod.HandoffUnavailable):
                aod.handoff("csv")


class Many(APITest):
    def test_they_come_in_the_order_of_their_ends(self):
        over = set()
        self.serve(accept(lambda n, _: n in over and succeeded(n)))
        found = aod.as_completed([aod.start("csv") for _ in range(3)], timeout=30)
        for n in (1, 2, 0):
            over.add(n)
            self.assertEqual(f"h{n}", next(found).id)
        self.assertEqual([], list(found))

    def test_twenty_at_once_do_not_wait_for_one_another(self):
        asked = set()  # none ends before all have been asked for

        def ended(n, _age):
            asked.add(n)
            return len(asked) == 20 and succeeded(n, {"n": n})
        self.serve(accept(ended))
        handles = [aod.start("csv") for _ in range(20)]
        self.assertEqual(set(range(20)), {handle.result().output["n"] for handle in aod.as_completed(handles, timeout=120)})

    def test_more_than_connections_take_turns(self):
        ids = []
        with mock.patch.multiple(calls, AT_ONCE=4, TURN=0.02):
            self.serve(accept(lambda n, _: (n > 8 or len(ids) > 2) and succeeded(n)))
            for handle in aod.as_completed([aod.start("csv") for _ in range(12)], timeout=30):
                ids.append(handle.id)
        self.assertEqual((12, {"h9", "h10", "h11"}), (len(set(ids)), set(ids[:3])))

    def test_lost_connections_and_failures_disturb_only_their_own(self):
        lost = []

        def ended(n, _age):
            if n == 1 and not lost:
                lost.append(1)
                return [b"HTTP/1."]
            return problem(404, "not_found") if n == 2 else succeeded(n)
        self.serve(accept(ended))
        handles = [aod.start("csv") for _ in range(4)]
        self.assertEqual({"h0", "h1", "h2", "h3"}, {handle.id for handle in aod.as_completed(handles)})
        with self.assertRaises(aod.HandoffRefused):
            handles[2].result()
        self.assertTrue(handles[1].result().output["ok"])

    def test_those_that_take_too_long_are_a_timeout(self):
        self.serve(accept(lambda n, _: n == 0 and succeeded(n)))
        handles, now = [aod.start("csv") for _ in range(3)], [0]
        with mock.patch.object(calls, "time", mock.Mock(monotonic=lambda: now[0])):
            found = aod.as_completed(handles, timeout=120)
            self.assertEqual("h0", next(found).id)
            now[0] = 119.9  # what is left for the others is a tenth of a second
            with self.assertRaises(TimeoutError):
                next(found)

    def test_ended_ones_and_doubles_come_once_and_nothing_from_nothing(self):
        self.serve(accept(lambda n, _: succeeded(n)))
        first, second = aod.start("csv"), aod.start("csv")
        first.result()
        self.assertEqual([first, second], list(aod.as_completed([second, first, first, second])))
        self.assertEqual([], list(aod.as_completed([])))

    def test_a_wait_that_is_too_short_leaves_the_handoff_running(self):
        over = []
        self.serve(accept(lambda n, _: over and succeeded(n)))
        handle = aod.start("csv")
        with self.assertRaises(TimeoutError):
            handle.result(timeout=0.05)
        self.assertFalse(handle.done())
        over.append(True)
        self.assertTrue(handle.result(timeout=30).output["ok"])
        self.assertTrue(handle.done())

    def test_a_silent_api_does_not_stretch_a_timeout(self):
        quiet = threading.Event()
        self.addCleanup(quiet.set)
        self.serve(lambda request: (202, {"handoff_id": "h"}) if request.command == "POST" else quiet.wait(180) and None)
        begin, handle = time.monotonic(), aod.start("csv")
        with self.assertRaises(TimeoutError):
            handle.result(timeout=0.2)
        self.assertLess(time.monotonic() - begin, 60)

    def test_cancel_asks_once_and_spares_those_that_have_ended(self):
        self.serve(lambda request: (202, {"handoff_id": "a/b"}) if request.command != "GET" else succeeded("a/b"))
        handle = aod.start("csv")
        handle.cancel()
        self.assertEqual(("DELETE", "/handoff/a%2Fb"), (self.api.requests[-1].command, self.api.requests[-1].path))
        handle.result()
        handle.cancel()
        self.assertEqual(1, sum(request.command == "DELETE" for request in self.api.requests))


class Watching(APITest):
    def test_progress_is_sent_within_its_bounds(self):
        self.serve(lambda _: (204, b""))
        with mock.patch.object(watch, "PROGRESS_SECONDS", 60):  # or a slow machine's word is lost
            aod.progress(250, "é" * 1000, "m")
            aod.progress(step="only")
        self.assertEqual({"percent": 100, "step": "é" * 512, "message": "m"}, self.api.requests[0].document)
        self.assertEqual({"step": "only"}, self.api.requests[1].document)

    def test_progress_never_raises_and_never_blocks_for_long(self):
        aod.progress(1)
        quiet = threading.Event()
        self.addCleanup(quiet.set)
        self.serve(lambda _: quiet.wait(180) and None)
        begin = time.monotonic()
        aod.progress(2)
        self.assertLess(time.monotonic() - begin, 60)
        aod.progress(object(), object(), object())
        aod.progress(float("nan"))
        del os.environ["AOD_SOCKET"]
        aod.progress(3)

    def test_what_may_be_called_and_what_runs(self):
        names = {"csv": {"description": "d", "input": {}, "output": {}}}
        self.serve(lambda request: (200, {"capsules": names} if request.path == "/capsules" else {"run": "r", "depth": 1}))
        self.assertEqual((names, "r"), (aod.capsules(), aod.run_info()["run"]))

