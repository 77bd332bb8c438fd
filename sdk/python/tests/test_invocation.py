import os
import signal
import threading
import time
from unittest import mock

from aod import invocation
from aod.errors import CapsuleError
from fakeapi import APITest, FakeAPI, problem
from harness import CapsuleTest

ECHO = "def execute(payload):\n    return payload"
INVOCATION = 200, {"run": "r", "input": {"n": 1}}


class Handshake(CapsuleTest):
    """A capsule in a process of its own, with a capsule API."""

    def setUp(self):
        super().setUp()
        self.socket = os.path.join(os.path.dirname(self.io), "aod.sock")
        self.apis = []

    def environment(self):
        return {**super().environment(), "AOD_SOCKET": self.socket}

    def serve(self, answer):
        api = FakeAPI(self.socket, answer)
        self.apis.append(api)
        self.addCleanup(self.stop, api)
        return api

    def stop(self, api):
        if api in self.apis:
            self.apis.remove(api)
            api.stop()
            os.unlink(self.socket)

    def park(self, main=ECHO):
        """Start a capsule that has no input yet."""
        process = self.start_ahead(main)
        self.addCleanup(process.kill)
        return process

    def claim(self):
        self.write(self.io, "input.part", '{"n": 1}')
        os.replace(self.io + "/input.part", self.io + "/input.json")  # whoever finds it finds it whole

    def ends(self, process, output, status=0):
        stdout, stderr = process.communicate(timeout=180)
        self.assertEqual((output, status, "", ""), (self.read_output(), process.returncode, stdout, stderr))

    def until(self, condition):
        end = time.monotonic() + 180
        while not condition():
            self.assertLess(time.monotonic(), end, "it doesn't come")
            time.sleep(0.005)


class Cold(Handshake):
    def test_a_cold_start_asks_once_and_goes_on(self):
        api = self.serve(lambda _: INVOCATION)
        self.run_capsule(ECHO, {"n": 1})
        self.assertEqual(({"n": 1}, 0, ""), (self.output, self.status, self.stderr))
        self.until(lambda: api.requests)  # a slow API isn't waited for
        self.assertEqual([("GET", "/invocation")], [(request.command, request.path) for request in api.requests])

    def test_any_refusal_is_a_cold_start(self):
        for status in (400, 403, 404, 429, 500, 503):
            with self.subTest(status=status):
                api = self.serve(lambda _: problem(status, "code"))
                self.run_capsule(ECHO, {"n": status})
                self.until(lambda: api.requests)
                self.assertEqual(({"n": status}, 0, 1), (self.output, self.status, len(api.requests)))
                self.stop(api)

    def test_without_an_api_the_input_that_is_there_is_taken(self):
        self.run_capsule(ECHO, {"n": 1})
        self.assertEqual(({"n": 1}, 0, ""), (self.output, self.status, self.stderr))

    def test_no_answer_that_can_be_read_is_no_reason_to_fail(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for name, answer in {
            "nothing": None, "no HTTP": [b"hello\r\n\r\n"], "half a line": [b"HTTP/1."], "half a head": [head], "a short line": [b"HTTP/1.1\r\n\r\n"],
            "half a body": [head + b"Content-Length: 9\r\n\r\n{"], "no end": [b"x" * (1 << 20)], "odd length": [head + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"],
            "no length": [head + b"\r\n", b"{}"], "bytes": [head[:5], head[5:], b"content-LENGTH:  2\r", b"\n\r\n{", b"}"],
        }.items():
            with self.subTest(name):
                api = self.serve(lambda _: answer)
                self.run_capsule(ECHO, {"n": 1})
                self.until(lambda: api.requests)
                self.assertEqual(({"n": 1}, 0, "", 1), (self.output, self.status, self.stderr, len(api.requests)))
                self.stop(api)

    def test_logic_that_does_not_load_asks_for_nothing(self):
        api = self.serve(lambda _: INVOCATION)
        self.run_capsule("raise ValueError('first')")
        self.assertEqual((1, []), (self.status, api.requests))


class Parked(Handshake):
    def setUp(self):
        super().setUp()
        self.claimed = threading.Event()
        self.addCleanup(self.claimed.set)

    def held(self, _request):
        self.claimed.wait(30)  # a signal just before the client waits is seen after it
        return INVOCATION

    def test_it_waits_for_its_run_with_the_logic_loaded(self):
        api = self.serve(self.held)
        process = self.park(f"open({self.io + '/loaded'!r}, 'w').close()\n" + ECHO)
        self.until(lambda: api.requests)
        self.assertTrue(os.path.exists(self.io + "/loaded"))
        self.assertIsNone(process.poll())
        self.claim()
        self.claimed.set()
        self.ends(process, {"n": 1})
        self.assertEqual(1, len(api.requests))

    def test_an_api_that_restarts_is_asked_again(self):
        self.claimed.set()
        process = self.park()  # there is no socket yet
        first = self.serve(lambda _: None)
        self.until(lambda: first.requests)
        self.stop(first)
        second = self.serve(lambda _: problem(503, "unavailable"))
        self.until(lambda: len(second.requests) > 1)
        self.assertIsNone(process.poll())
        self.stop(second)
        third = self.serve(lambda request: self.claim() or self.held(request))
        self.ends(process, {"n": 1})
        self.assertEqual(1, len(third.requests))

    def test_a_run_that_came_before_the_answer_broke_off_is_served(self):
        api = self.serve(lambda _: self.claim())
        self.ends(self.park(), {"n": 1})
        self.assertEqual(1, len(api.requests))

    def test_a_slow_answer_is_waited_for(self):
        def slow(_request):
            self.claim()
            time.sleep(0.3)
            return [b"HTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n\r\n", b"{}"]
        self.serve(slow)
        self.ends(self.park(), {"n": 1})

    def test_signals_end_it_at_once(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(number=number):
                api = self.serve(self.held)
                process = self.park()
                self.until(lambda: api.requests)
                process.send_signal(number)
                self.ends(process, None, status)
                self.claimed.set()
                self.stop(api)
                self.claimed.clear()  # for the next one

    def test_a_signal_ends_it_while_the_api_is_away(self):
        api = self.serve(lambda _: None)
        process = self.park()
        self.until(lambda: api.requests)
        self.stop(api)
        process.terminate()
        self.ends(process, None, 143)


class Patience(APITest):
    """The wait alone, in this process."""

    def wait(self, while_idle=lambda: None):
        invocation.wait(while_idle)

    def test_what_can_wait_is_done_where_no_answer_comes_and_only_there(self):
        idle = threading.Event()
        self.serve(lambda _: idle.wait(180) and INVOCATION)
        self.wait(idle.set)
        self.assertTrue(idle.is_set())
        with mock.patch.object(invocation, "IDLE_SECONDS", 180):
            self.wait(self.fail)

    def test_without_a_socket_there_is_nothing_to_wait_for(self):
        del os.environ["AOD_SOCKET"]
        with mock.patch.object(invocation, "SOCKET", self.socket):
            self.wait()
            api = self.serve(lambda _: INVOCATION)
            self.wait()
        self.assertEqual(1, len(api.requests))

    def test_an_api_that_stays_away_ends_it(self):
        with mock.patch.multiple(invocation, PATIENCE=0.2, PAUSES=(0.01, 0.05)), self.assertRaises(CapsuleError) as caught:
            self.wait()
        self.assertEqual(2, caught.exception.exit_code)
        self.assertIn("no run has come", str(caught.exception))

    def test_an_api_that_held_the_request_renews_patience(self):
        holds = []

        def hold(_request):
            holds.append(1)
            time.sleep(0.1)
            return None if len(holds) < 5 else INVOCATION
        self.serve(hold)
        with mock.patch.multiple(invocation, PATIENCE=0.02, PAUSES=(0.01, 0.05)):
            self.wait()
        self.assertEqual(5, len(holds))

    def test_an_api_that_never_answers_does_not_hold_up_a_cold_start(self):
        quiet = threading.Event()
        self.addCleanup(quiet.set)
        self.serve(lambda _: quiet.wait(180) and None)
        self.file("io/input.json", "{}")
        begin = time.monotonic()
        with mock.patch.object(invocation, "ANSWER_SECONDS", 0.2):
            self.wait()
        self.assertLess(time.monotonic() - begin, 60)
