"""Servers of tools, good ones and hostile ones, as code and as a model have them."""

import contextlib
import itertools
import json
import os
import random
import sys
import threading
import time
import unittest
from unittest import mock

import aod
from aod import mcpchild, mcpclient, mcplines, served, servers, watch
from fakemodel import ADD, AgentTest, calls, final
from harness import CapsuleTest

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fakeserver.py")


def config(**named):
    """An mcp.json whose servers behave like this."""
    return json.dumps({"mcpServers": {
        name: {"command": sys.executable, "args": [FAKE, how], "env": {"WHO": name}} if isinstance(how, str) else how
        for name, how in named.items()
    }})


MESSAGE = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "a\\\"b\u00e9\ud83d\ude00"}], "n": [1e9, None]}}).encode()


class ServersTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(servers.end)
        patch = mock.patch.object(mcpchild, "WORDS_SECONDS", 60)  # last words come late on a busy machine
        patch.start()
        self.addCleanup(patch.stop)

    def serve_tools(self, how="new", **more):
        """Have a server that behaves so, and return it as aod.mcp does."""
        servers.end()
        spec = {"command": sys.executable, "args": [FAKE, how], "env": {"WHO": "notes"}, **more}
        self.capsule_file("mcp.json", json.dumps({"mcpServers": {"notes": spec}}))
        return aod.mcp("notes")

    @contextlib.contextmanager
    def logged(self):
        """What is written to stderr, by whomever, is in .text afterwards."""
        log = mock.Mock(text="")
        kept, (reading, writing) = os.dup(2), os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        parts = []
        reader = threading.Thread(target=lambda: parts.extend(iter(lambda: os.read(reading, 65536), b"")))
        reader.start()
        try:
            yield log
            servers.end()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            reader.join()
            os.close(reading)
            log.text = b"".join(parts).decode("utf-8", "replace")

    def times_out(self, call, *words):
        """It has to be for want of an answer. The time to send it is over before it begins: a
        machine that is held up isn't a server that doesn't read."""
        with mock.patch.object(mcpchild, "time", mock.Mock(monotonic=itertools.count(0, 1000).__next__)):
            return self.fails_so("timeout", call, *words)

    def fails_so(self, kind, call, *words):
        with self.assertRaises(aod.MCPError) as caught:
            call()
        self.assertEqual(kind, caught.exception.kind, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return caught.exception


class Good(ServersTest):
    def test_both_ways_to_begin_lead_to_the_same_tools(self):
        for how, version in (("new", "2026-07-28"), ("old", "2025-06-18")):
            with self.subTest(how):
                server = self.serve_tools(how)
                self.assertEqual("cancelled count draw.it fail pid read search sleep slow twice where".split(), [tool["name"] for tool in server.tools()])
                found = server.call("search", query="ferry")
                self.assertEqual(("found ferry", {"query": "ferry"}, 1), (found.text, found.structured, len(found.content)))
                self.assertEqual(version, server._client.version)
                server._client.ping(60)

    def test_a_version_that_nobody_knows_is_told(self):
        client = mcpclient.Client("notes")

        def send(message, _seconds):
            client.receive({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2099-01-01", "supportedVersions": ["2099-01-01"]}})

        self.fails_so("protocol", lambda: client.connect(mock.Mock(send=send, start_seconds=60)), "speaks none of 2026-07-28, 2025-11-25")

    def test_it_runs_where_the_capsule_lies_with_its_own_environment(self):
        self.assertTrue(self.serve_tools().call("where").text.startswith(f"{os.path.realpath(self.capsule)} notes"))

    def test_pages_are_turned(self):
        self.assertEqual([f"t{number}" for number in range(5)], [tool["name"] for tool in self.serve_tools("pages").tools()])

    def test_only_tools_that_are_listed_are_there(self):
        server = self.serve_tools(tools=["search"])
        self.assertEqual(["search"], [tool["name"] for tool in server.tools()])
        self.fails_so("setup", lambda: server.call("fail"), "mcp.json lists no tool 'fail'")
        self.fails_so("setup", self.serve_tools(tools=["missing"]).tools, "has no tool 'missing'")

    def test_a_tool_that_fails_is_told_by_its_text(self):
        self.fails_so("tool", lambda: self.serve_tools().call("fail"), "notes: no such note")

    def test_a_call_without_an_answer_is_cancelled_when_its_time_is_up(self):
        server = self.serve_tools(timeout="1s")
        self.times_out(lambda: server.call("sleep"), "no answer to tools/call after 1 s")
        self.times_out(lambda: server.call("sleep", timeout="20ms"))
        notes = json.loads(server.call("cancelled", timeout=60).text)
        self.assertEqual(2, len(notes))
        self.assertIsInstance(notes[0]["params"]["requestId"], int)

    def test_progress_is_heard(self):
        heard = []
        self.assertEqual({"n": 2}, self.serve_tools("holds").call("count", progress=lambda news: self.hear(heard, news)).structured)
        self.assertEqual([1], heard)

    def hear(self, heard, news):
        heard.append(news["progress"])
        self.file("go")

    def test_what_a_tool_tells_of_its_progress_is_the_runs(self):
        self.serve_tools()
        self.model(calls(("notes__count", {})), final(total=1))
        with mock.patch.object(served, "STEP_SECONDS", 0), mock.patch.object(watch, "progress") as told:
            self.assertEqual({"total": 1}, aod.agent().output)
        for call in told.call_args_list[1:]:
            self.assertRegex(call.args[1], "^notes__count: (50%|100%|it works)$")

    def test_many_calls_at_once_each_get_their_own_answer(self):
        server, came = self.serve_tools(), {}

        def ask(number):
            came[number] = server.call("search", query=str(number)).text

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({number: f"found {number}" for number in range(50)}, came)

    def test_it_is_started_once_and_killed_with_the_run(self):
        server = self.serve_tools()
        pid = int(server.call("pid").text)
        self.assertEqual(pid, int(aod.mcp("notes").call("pid").text))
        servers.end()
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_a_name_that_is_declared_nowhere_is_told_with_those_that_are(self):
        self.serve_tools()
        self.fails_so("setup", lambda: aod.mcp("other"), "there are: notes")


class Hostile(ServersTest):
    def refused(self, how, kind, *words, call=None):
        server = self.serve_tools(how)
        error = self.fails_so(kind, call or (lambda: server.call("search", query="x", timeout=120)), *words)
        return server, error

    def test_a_line_of_a_gibibyte_is_its_end(self):
        server, _ = self.refused("longline", "ended", "a line of over 16 MiB")
        self.fails_so("ended", lambda: server.call("search", query="x"), "a line of over 16 MiB")

    def test_messages_too_deep_or_too_large_are_its_end(self):
        self.refused("deep", "ended", "over 64 levels")
        self.refused("values", "ended", "over 500000 values")

    def test_a_list_of_tools_without_an_end_is_refused(self):
        for how, word in (("many", "1000 tools"), ("endless", "100 pages"), ("noname", "none")):
            with self.subTest(how):
                self.fails_so("protocol", self.serve_tools(how).tools, word)

    def test_a_schema_ten_thousand_deep_is_its_end(self):
        self.fails_so("ended", self.serve_tools("deepschema").tools, "64 levels")

    def test_noise_is_logged_and_passed_over(self):
        with self.logged() as log:
            self.assertEqual("ok", self.serve_tools("noise").call("search", query="x").text)
        self.assertIn("[notes, no message] hello, I am a print\n", log.text)
        self.assertIn("{broken", log.text)

    def test_much_noise_is_logged_a_hundred_times(self):
        with self.logged() as log:
            self.assertEqual("ok", self.serve_tools("muchnoise").call("search", query="x").text)
        self.assertEqual(mcpchild.MOST_NOISE, log.text.count("[notes, no message] noise"))
        self.assertEqual(1, log.text.count("more of this is not logged"))

    def test_noise_without_an_end_is_no_answer(self):
        with self.logged():
            server = self.serve_tools("endlessnoise")
            self.times_out(lambda: server.call("search", query="x", timeout=1))

    def test_a_fork_bomb_ends_with_the_run(self):
        server = self.serve_tools("bomb")
        self.times_out(lambda: server.call("search", query="x", timeout=1))
        group = server._transport._process.pid
        self.assertTrue(_alive(group))
        servers.end()
        self.assertEqual([], _left(group))

    def test_answers_that_nobody_asked_for_are_passed_over(self):
        server = self.serve_tools("foreign")
        for _ in range(3):
            self.assertEqual("first", server.call("search", query="x").text)

    def test_what_it_asks_back_is_refused_but_a_ping(self):
        answers = json.loads(self.serve_tools("asks").call("search", query="x").text)
        self.assertEqual([("a", {}), ("b", None)], [(answer["id"], answer.get("result")) for answer in answers])
        self.assertEqual(-32601, answers[1]["error"]["code"])
        self.refused("askback", "protocol", "asks back")

    def test_a_dead_server_is_told_by_its_last_words_and_stays_dead(self):
        with self.logged() as log:
            server, error = self.refused("exit", "ended", "ended with exit code 3; its last words: the disk of notes is broken")
            self.assertEqual(str(error), str(self.fails_so("ended", lambda: server.call("search", query="x"))))
        self.assertIn("the disk of notes is broken\n", log.text)

    def test_one_that_does_not_start_is_told(self):
        with self.logged():
            self.refused("stillborn", "ended", "exit code 1; its last words: no notes here")
        server = self.serve_tools(command="/no/such/program")
        self.fails_so("start", lambda: server.call("search"), "No such file")

    def test_a_stdout_that_closes_or_that_a_child_of_its_own_holds_open_is_no_trap(self):
        with mock.patch.object(mcpchild, "WORDS_SECONDS", 2):  # it has none
            self.refused("closes", "ended", "it closed its stdout")
        server = self.serve_tools("orphan")
        self.times_out(lambda: server.call("search", query="x", timeout=2))
        servers.end()

    def test_one_that_does_not_read_is_ended_when_its_time_is_up(self):
        server = self.serve_tools("deaf")
        with mock.patch.object(mcpclient, "NOTICE_SECONDS", 0.1):
            self.times_out(lambda: server.call("search", query="x", timeout=0.5))
            self.fails_so("ended", lambda: server.call("search", query="x" * (1 << 20), timeout=0.5), "hasn't read what it was told")

    def test_answers_that_are_none_are_told(self):
        self.refused("noresult", "protocol", "has no result")
        self.refused("refuses", "refused", "unknown tool")


def _alive(group):
    """The processes of a group that aren't dead, be they unreaped."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            state, _, own = file.read().rpartition(")")[2].split()[:3]
            if int(own) == group and state not in "ZX":
                found.append(int(name))
    return found


def _left(group):
    """The same, when those that are killed have had time to die."""
    end = time.monotonic() + 180
    while (found := _alive(group)) and time.monotonic() < end:
        time.sleep(0.01)
    return found


class AsTools(ServersTest):
    def names(self, model, request=0):
        return [tool["function"]["name"] for tool in model.requests[request]["tools"]]

    def test_a_model_has_them_beside_those_of_tools_yaml(self):
        self.serve_tools(tools=["search", "draw.it"])
        self.tools([ADD], "def add(a, b):\n    return a + b\n")
        model = self.model(calls(("notes__search", {"query": "ferry"}), ("add", {"a": 1})), final(total=3))
        self.assertEqual({"total": 3}, aod.agent().output)
        self.assertEqual(["add", "notes__search", "notes__draw_it", "final_answer"], self.names(model))
        self.assertEqual(["found ferry\n{\"query\": \"ferry\"}", "11"], self.told(model))
        function = model.requests[0]["tools"][1]["function"]
        self.assertEqual("Finds notes.", function["description"])
        self.assertEqual({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}, function["parameters"])

    def test_nulls_of_a_schema_are_not_shown(self):
        self.serve_tools("nulls")
        model = self.model(final(total=3))
        aod.agent()
        shown = [tool["function"]["parameters"] for tool in model.requests[0]["tools"][:3]]
        nothing = {"type": "object", "properties": {}}
        self.assertEqual([nothing, {"type": "object", "required": ["of"], "properties": {
            "of": {"type": "string"}, "anything": {},
            "mark": {"type": ["string", "null"], "enum": ["a", None], "examples": [None]},
            "only": {"const": None},
            "rows": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"const": {"a": None}}]}},
        }}, nothing], shown)

    def test_servers_and_single_tools_can_be_chosen(self):
        self.serve_tools()
        self.tools([ADD], "def add(a, b):\n    return a + b\n")
        model = self.model(final(total=1), final(total=2))
        aod.agent(tools=["notes__search", "add"])
        aod.agent(tools=["notes"])
        self.assertEqual(["notes__search", "add", "final_answer"], self.names(model))
        self.assertEqual(12, len(self.names(model, 1)))
        self.assertIn("neither tools.yaml nor mcp.json has a tool 'x__y'", str(self.fails("setup", lambda: aod.agent(tools=["x__y"]))))
        self.assertIn("no tool 'notes__y'", str(self.fails("setup", lambda: aod.agent(tools=["notes__y"]))))

    def test_what_goes_wrong_is_told_and_the_loop_goes_on(self):
        self.serve_tools("exit")
        model = self.model(calls(("notes__search", {"query": "x"})), calls(("notes__search", {"query": "y"})), final(total=0))
        aod.agent()
        self.assertIn("notes: it ended with exit code 3; its last words: the disk of notes is broken", self.told(model)[1])
        self.serve_tools()
        model = self.model(calls(("notes__fail", {})), final(total=0))
        aod.agent()
        self.assertEqual(["no such note"], self.told(model))

    def test_pictures_and_resources_are_files_that_can_be_named(self):
        self.serve_tools()
        model = self.model(calls(("notes__draw_it", {})), final(total=0))
        aod.agent()
        drawn, image, resource, note, link, strange = self.told(model)[0].split("\n")
        self.assertEqual(("drawn", "a note", "[link: two notes://2]"), (drawn, note, link))
        self.assertRegex(image, r"^\[image: the file results/notes__draw_it-[0-9a-f]{12}\.png, 28 bytes\]$")
        self.assertRegex(resource, r"^\[notes://1: the file results/notes__draw_it-[0-9a-f]{12}\.txt, 6 bytes\]$")
        self.assertIn("'strange'", strange)
        name = image.split("file ")[1].split(",")[0]
        model = self.model(calls(("notes__read", {"file": resource.split("file ")[1].split(",")[0]})), final(total=0))
        aod.agent()
        self.assertEqual(["a note"], self.told(model))
        self.assertEqual(28, os.path.getsize(os.path.join(self.workspace, name)))

    def test_what_a_result_says_twice_is_told_once(self):
        self.serve_tools()
        model = self.model(calls(("notes__count", {}), ("notes__twice", {})), final(total=0))
        aod.agent()
        self.assertEqual(['{"n": 2}', '{"n":2}'], self.told(model))

    def test_a_model_that_takes_images_sees_them(self):
        self.serve_tools()
        for dialect, images in (("chat", True), ("messages", True), ("chat", False)):
            with self.subTest(dialect, images=images):
                model = self.model(calls(("notes__draw_it", {})), final(total=0), facts={"dialects": [dialect], "images": images})
                aod.agent()
                last = json.dumps(model.requests[1]["messages"][-1])
                self.assertEqual(images, "iVBORw0KGgo" in last, last)

    def test_a_server_that_is_no_good_is_told_before_the_first_question(self):
        for how, words in (("stillborn", "no notes here"), ("many", "1000 tools"), ("longname", "over 64 letters"), ("badschema", "a schema of an object")):
            with self.subTest(how):
                self.serve_tools(how)
                model = self.model()
                self.assertIn(words, str(self.fails("setup", aod.agent)))
                self.assertEqual([], model.requests)

    def test_names_that_collide_are_told(self):
        self.serve_tools()
        self.tools([{**ADD, "name": "notes__search"}], "def notes__search(a, b):\n    return a\n")
        self.model()
        self.assertIn("two tools have the name notes__search", str(self.fails("setup", aod.agent)))

    def test_servers_start_beside_one_another(self):
        self.capsule_file("mcp.json", config(**{f"s{number}": "new" for number in range(4)}))
        model = self.model(final(total=0))
        aod.agent()
        self.assertEqual(45, len(self.names(model)))

    def test_functions_that_call_one_do_not_end_the_run(self):
        self.serve_tools()
        self.tools([ADD], "import aod\ndef add(a, b):\n    return aod.mcp('notes').call('fail').text\n")
        model = self.model(calls(("add", {"a": 1})), final(total=0))
        aod.agent(tools=["add"])
        self.assertEqual(["MCPError: notes: no such note"], self.told(model))


class InARun(CapsuleTest):
    def test_children_die_with_the_run_and_its_log_has_theirs(self):
        self.write(self.capsule, "mcp.json", config(notes="noise"))
        main = "import aod\ndef execute(p):\n    s = aod.mcp('notes')\n    s.call('search', query='x')\n    return {'pid': s._transport._process.pid}"
        self.run_capsule(main)
        self.assertEqual((0, []), (self.status, _left(self.output["pid"])))
        self.assertIn("[notes, no message] hello, I am a print", self.stderr)

    def test_a_child_that_hears_nothing_dies_with_the_run_too(self):
        self.write(self.capsule, "mcp.json", config(notes="deaf"))
        self.run_capsule("""
            import aod
            def execute(payload):
                server = aod.mcp('notes')
                try:
                    server.call('search', query='x', timeout=0.1)
                except aod.MCPError:
                    return {'pid': server._transport._process.pid}
        """)
        self.assertEqual((0, []), (self.status, _left(self.output["pid"])))

    def test_an_error_that_nobody_catches_is_the_runs_without_a_traceback(self):
        self.write(self.capsule, "mcp.json", config(notes="new"))
        self.run_capsule("import aod\ndef execute(p):\n    return {'a': aod.mcp('notes').call('fail').text}")
        self.assert_error("MCPError", "notes: no such note")
        self.assertNotIn("Traceback", self.stderr)


class Reader(unittest.TestCase):
    def read(self, content, sizes):
        """The lines of a content that comes in parts of such sizes."""
        reading, writing = os.pipe()

        def write():
            rest = content
            while rest:
                size = sizes()
                os.write(writing, rest[:size])
                rest = rest[size:]
            os.close(writing)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            return list(mcplines.lines(reading))
        finally:
            os.close(reading)
            thread.join()

    def test_lines_are_the_same_however_they_come(self):
        chance = random.Random(15)
        for _ in range(100):
            lines = [chance.randbytes(chance.choice((0, 1, 80, 70_000))).replace(b"\n", b"") for _ in range(chance.randrange(6))]
            content = b"\n".join(lines)
            want = lines if content and not content.endswith(b"\n") else lines[:-1]
            self.assertEqual(want, self.read(content, lambda: chance.choice((1 << 16, 4096, 1 << 18))))

    def test_a_line_may_have_the_most_bytes_and_no_more(self):
        with mock.patch.object(mcplines, "LINE_BYTES", 100):
            self.assertEqual([b"x" * 100, b"y" * 100], self.read(b"x" * 100 + b"\n" + b"y" * 100, lambda: 7))
            for content in (b"x" * 101, b"x" * 101 + b"\n", b"a\n" + b"x" * 101 + b"\n"):
                for size in (7, 1000):
                    self.assertRaises(mcplines.Breach, self.read, content, lambda size=size: size)

    def test_whatever_bytes_come_it_is_a_message_or_none_or_a_breach(self):
        chance = random.Random(7)
        self.assertGreater(sum(self.taken(chance) for _ in range(20_000)), 1000)

    @unittest.skipUnless("AOD_FUZZ_SECONDS" in os.environ, "for so many seconds: AOD_FUZZ_SECONDS")
    def test_for_long(self):
        seed = random.randrange(1 << 32)
        chance, end, inputs = random.Random(seed), time.monotonic() + float(os.environ["AOD_FUZZ_SECONDS"]), 0
        with self.subTest(seed=seed):
            while time.monotonic() < end:
                for _ in range(1000):
                    self.taken(chance)
                self.a_stream(chance)
                inputs += 1001
        print(f"the reader of messages: {inputs} inputs", file=sys.stderr)

    def taken(self, chance):
        """Whether a message with some bytes changed is still one: then it is what it says."""
        line = bytearray(MESSAGE)
        for _ in range(chance.randrange(4)):
            where = chance.randrange(len(line))
            line[where:where + chance.randrange(3)] = chance.choice((b"{", b"}", b"[", b"\"", b"\\", b",", b"\xff", b"\x00", b"1", b"")) * chance.choice((1, 1, 70))
        try:
            found = mcplines.message(bytes(line))
        except mcplines.Breach:
            return False
        if found is not None:
            self.assertEqual(json.loads(bytes(line).decode()), found)
        return found is not None

    def a_stream(self, chance):
        """Lines of any bytes, in parts of any size, are read as they are."""
        content = b"\n".join(chance.randbytes(chance.choice((0, 1, 80, 70_000))) for _ in range(chance.randrange(6)))
        want = content.split(b"\n")
        if not want[-1]:
            want.pop()
        self.assertEqual(want, self.read(content, lambda: chance.choice((1 << 16, 4096, 1 << 18))))

    def test_levels_and_values_are_counted_outside_of_texts(self):
        self.assertEqual({"a": "[" * 1000 + ","}, mcplines.message(json.dumps({"a": "[" * 1000 + ","}).encode()))
        for levels in (64, 65):
            line = b'{"a":' * (levels - 1) + b"[]" + b"}" * (levels - 1)
            if levels == 64:
                self.assertIsNotNone(mcplines.message(line))
            else:
                self.assertRaises(mcplines.Breach, mcplines.message, line)

    def test_an_open_text_takes_no_time(self):
        self.assertIsNone(mcplines.message(b'{"' + b'\\"' * (4 << 20)))
