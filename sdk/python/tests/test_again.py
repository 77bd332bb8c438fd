import os
import threading
import time
from unittest import mock

from aod import again, invocation
from fakeapi import APITest, problem
from test_invocation import Handshake
from test_mcp import config

ECHO = "def execute(payload):\n    return payload"
LEFT = 1 << 20


class Several(Handshake):
    """A process that may serve several runs, and an API that gives them to it."""

    def setUp(self):
        super().setUp()
        self.scratch = os.path.join(os.path.dirname(self.io), "scratch")
        os.makedirs(self.scratch)
        self.inputs, self.posted, self.remaining = [], [], LEFT

    def environment(self):
        return {**super().environment(), "AOD_SCRATCH_DIRS": self.scratch}

    def api(self, *inputs, answer=None):
        """Serve these inputs; what comes after them waits."""
        self.inputs = list(inputs)
        self.over = threading.Event()
        self.addCleanup(self.over.set)

        def answers(request):
            if request.command == "POST":
                self.posted.append(request.document)
                return answer or (204, b"")
            if not self.inputs:
                self.over.wait(30)
                return None
            self.claim_with(self.inputs.pop(0))
            self.run = f"r{len(self.posted)}"
            head = f"HTTP/1.1 200 OK\r\nAOD-Remaining: {self.remaining}\r\naod-run: {self.run}\r\nContent-Length: 2\r\n\r\n"
            return [head.encode() + b"{}"]
        return self.serve(answers)

    def claim_with(self, text):
        self.write(self.io, "input.json", text)

    def streams(self, process, runs):
        """End the process and return what it wrote, without the lines that end runs."""
        self.until(lambda: len(self.posted) == runs or process.poll() is not None)
        process.terminate()
        shares = []
        for text in process.communicate(timeout=180):
            for number in range(runs):
                share, end, text = text.partition(f"\x1eaod-end r{number}\x1e\n")
                self.assertTrue(end, text)
                shares.append(share)
            shares.append(text)
        return shares

    def test_one_process_serves_one_run_after_the_other(self):
        self.api('{"n": 1}', '{"n": 2}', '{"n": 3}')
        process = self.park("count = 0\ndef execute(payload):\n    global count\n    count += 1\n    print('run', count)\n    return {**payload, 'count': count}")
        self.assertEqual(["run 1\n", "run 2\n", "run 3\n", "", "", "", "", ""], self.streams(process, 3))
        self.assertEqual([{"n": n, "count": n} for n in (1, 2, 3)], self.posted)
        self.assertEqual((None, False), (self.read_output(), os.path.exists(self.io + "/input.json")))

    def test_the_places_of_flows_are_counted_anew_in_each_run(self):
        self.api("{}", "{}")
        process = self.park("""
            from aod import address
            from aod.flow import Flow, Node

            class Tells(Node):
                def post(self, shared, prep_res, exec_res):
                    shared["key"] = address.key()

            def execute(payload):
                Flow(Tells()).run(payload)
                return payload
        """)
        self.streams(process, 2)
        self.assertEqual([{"key": "flow/1/tells:post.1"}] * 2, self.posted)

    def test_servers_of_tools_end_with_their_run(self):
        self.api("{}", "{}")
        self.write(self.capsule, "mcp.json", config(notes="new"))
        process = self.park("import aod\ndef execute(payload):\n    return {'pid': aod.mcp('notes').call('pid').text}")
        self.streams(process, 2)
        first, second = (int(answer["pid"]) for answer in self.posted)
        self.assertNotEqual(first, second)
        self.assertRaises(ProcessLookupError, os.kill, first, 0)

    def test_the_next_run_finds_everything_as_the_first_one_did(self):
        self.api("{}", "{}")
        process = self.park(f"""
            import os, signal, sys
            def execute(payload):
                seen = [os.getcwd(), dict(os.environ), sys.argv[:], os.listdir({self.scratch!r}), str(signal.getsignal(signal.SIGUSR1)), os.umask(0o7), signal.getitimer(signal.ITIMER_REAL)]
                sys.stdout.write('no end of the line')
                os.makedirs({self.scratch!r} + '/a/b')
                open({self.scratch!r} + '/a/b/c', 'w').close()
                os.symlink({self.io!r}, {self.scratch!r} + '/link')
                os.chmod({self.scratch!r} + '/a', 0)
                os.chdir('/')
                os.environ['LEFT'] = 'over'
                del os.environ['PATH']
                sys.argv.append('more')
                signal.signal(signal.SIGUSR1, lambda *_: None)
                signal.alarm(600)
                sys.stderr = open({self.io!r} + '/err', 'a')
                return {{'seen': seen}}
        """)
        self.assertEqual(["no end of the line"] * 2, self.streams(process, 2)[:2])
        first, second = self.posted
        self.assertEqual(first, second)
        self.assertEqual([], first["seen"][3])
        self.assertTrue(os.path.isdir(self.io))

    def test_the_last_run_ends_as_one_alone_does(self):
        self.remaining = 0
        self.api('{"n": 1}')
        self.ends(self.park(), {"n": 1})
        self.assertEqual([], self.posted)

    def test_a_run_that_fails_ends_the_process(self):
        self.api('{"n": 1}', '{"n": 2}')
        process = self.park("def execute(payload):\n    if payload['n'] == 2: raise ValueError('two')\n    return payload")
        process.communicate(timeout=30)
        self.assertEqual((1, [{"n": 1}], "two"), (process.returncode, self.posted, self.read_output()["error"]["message"]))

    def test_a_run_of_which_something_goes_on_is_the_last(self):
        for name, left in {
            "a thread": "import threading, time\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
            "a child": "import subprocess\n    subprocess.Popen(['sleep', '60'])",
            "closed output": "import sys\n    sys.stdout.close()",
        }.items():
            with self.subTest(name):
                api = self.api('{"n": 1}')
                process = self.park(f"def execute(payload):\n    {left}\n    return payload")
                self.assertEqual(0, process.wait(timeout=30))
                self.assertEqual(({"n": 1}, []), (self.read_output(), self.posted))
                self.stop(api)
                os.unlink(self.io + "/output.json")
                process.communicate(timeout=90) if name != "a child" else process.stdout.close() or process.stderr.close()

    def test_a_result_that_is_not_taken_is_written(self):
        self.api('{"n": 1}', answer=problem(413, "too_large"))
        process = self.park()
        process.communicate(timeout=30)
        self.assertEqual(({"n": 1}, 0), (self.read_output(), process.returncode))


class Post(APITest):
    def test_it_says_whether_the_result_is_there(self):
        for answer, there in (((204, b""), True), (problem(409, "conflict"), False), (None, False), ([b"HTTP/1.1 2"], False)):
            with self.subTest(answer=answer):
                self.serve(lambda _: answer)
                self.assertEqual(there, invocation.post(b'{"n": 1}'))
                self.assertEqual([("POST", "/invocation/result", {"n": 1})], [(r.command, r.path, r.document) for r in self.api.requests])

    def test_without_an_api_it_is_not(self):
        self.assertFalse(invocation.post(b"{}"))

    def test_an_api_that_does_not_answer_is_not_waited_for(self):
        self.serve(lambda _: time.sleep(1))
        with mock.patch.object(invocation, "POST_SECONDS", 0.05):
            self.assertFalse(invocation.post(b"{}"))


class Scratch(APITest):
    def test_outside_a_sandbox_nothing_is_emptied(self):
        os.environ.pop("AOD_SCRATCH_DIRS", None)
        self.assertEqual([], again.scratch_dirs())
