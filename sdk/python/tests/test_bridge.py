import os
import signal
import subprocess
import sys
import unittest

from harness import CapsuleTest


class Results(CapsuleTest):
    def test_a_result_is_written_and_the_process_ends_with_zero(self):
        self.run_capsule("def execute(payload):\n    return {'n': payload['n'] + 1}", {"n": 1})
        self.assertEqual(({"n": 2}, 0), (self.output, self.status))

    def test_the_result_is_the_only_thing_left_in_io(self):
        self.run_capsule("def execute(payload):\n    return {}")
        self.assertEqual(["input", "input.json", "output", "output.json"], sorted(os.listdir(self.io)))

    def test_text_beyond_ascii_survives(self):
        self.run_capsule("def execute(payload):\n    return payload", {"t": "žluťoučký \U0001f40e \u0000"})
        self.assertEqual({"t": "žluťoučký \U0001f40e \u0000"}, self.output)

    def test_an_async_execute_is_awaited(self):
        self.run_capsule("""
            import asyncio
            async def execute(payload):
                await asyncio.sleep(0)
                return {"ok": True}
            """)
        self.assertEqual({"ok": True}, self.output)

    def test_prints_are_logs_and_arrive(self):
        self.run_capsule("""
            import aod
            def execute(payload):
                print("out", end="")
                aod.log("err")
                return {}
            """)
        self.assertEqual(("out", "err\n"), (self.stdout, self.stderr))

    def test_a_closed_stdout_harms_nothing(self):
        self.run_capsule("import sys\ndef execute(payload):\n    sys.stdout.close()\n    sys.stderr = None\n    return {}")
        self.assertEqual(({}, 0), (self.output, self.status))

    def test_threads_left_behind_are_not_waited_for(self):
        self.run_capsule("""
            import threading, time
            def execute(payload):
                threading.Thread(target=time.sleep, args=(60,)).start()
                return {}
            """)
        self.assertEqual(({}, 0), (self.output, self.status))


class Imports(CapsuleTest):
    def test_neighbours_are_found_as_utils_as_src_utils_and_relative(self):
        os.mkdir(self.capsule + "/src/utils")
        self.write(self.capsule, "src/utils/words.py", "WORD = 'found'")
        self.run_capsule("""
            from utils.words import WORD as a
            from src.utils.words import WORD as b
            from .utils.words import WORD as c
            def execute(payload):
                return {"words": [a, b, c]}
            """)
        self.assertEqual({"words": ["found"] * 3}, self.output)

    def test_a_missing_main_is_named(self):
        self.run_capsule(None)
        self.assert_breach("src/main.py is missing")

    def test_a_main_without_execute_is_named(self):
        self.run_capsule("x = 1")
        self.assert_breach("no function execute")

    def test_an_import_that_fails_keeps_its_type_and_shows_the_line(self):
        self.run_capsule("import no_such_module")
        self.assert_error("ModuleNotFoundError", "no_such_module")
        self.assertIn("import no_such_module", self.stderr)
        self.assertNotIn("importlib", self.stderr)

    def test_the_logic_is_loaded_before_the_input_is_read(self):
        self.run_capsule("raise ValueError('first')", "not json")
        self.assert_error("ValueError", "first")


class Failures(CapsuleTest):
    def test_an_exception_is_structured_and_its_traceback_is_a_log(self):
        self.run_capsule("def execute(payload):\n    raise ValueError('no such thing')")
        self.assert_error("ValueError", "no such thing")
        self.assertIn("Traceback", self.stderr)
        self.assertIn("src/main.py", self.stderr)
        self.assertNotIn("bridge.py", self.stderr)

    def test_a_rejection_is_one_whatever_its_class(self):
        for kind in ("Rejected", "NotMine"):
            self.run_capsule(f"""
import aod
class NotMine(aod.Rejected): pass
def execute(payload):
    raise {'aod.' if kind == 'Rejected' else ''}{kind}('not mine')
""")
            self.assert_error("Rejected", "not mine")

    def test_a_capsule_error_has_no_traceback(self):
        self.run_capsule("import aod\ndef execute(payload):\n    raise aod.CapsuleError('no rows')")
        self.assert_error("CapsuleError", "no rows")
        self.assertEqual("CapsuleError: no rows\n", self.stderr)

    def test_a_subclass_names_the_type_and_may_choose_the_exit_code(self):
        self.run_capsule("""
            import aod
            class NoRows(aod.CapsuleError): pass
            def execute(payload):
                raise NoRows("none", exit_code=3)
            """)
        self.assert_error("NoRows", "none", 3)

    def test_a_handoff_that_failed_is_named_with_its_target_and_has_no_traceback(self):
        self.run_capsule("""
            import os
            import aod
            def execute(payload):
                os.environ.pop("AOD_SOCKET", None)
                aod.handoff("ocr")
            """)
        self.assert_error("HandoffUnavailable", "there is no capsule API here")
        self.assertNotIn("Traceback", self.stderr)
        for kind in ("HandoffError", "HandoffRefused"):
            self.run_capsule(f"""
                import aod
                def execute(payload):
                    raise aod.{kind}("empty", about="ocr failed (no_rows): empty")
                """)
            self.assert_error(kind, "ocr failed (no_rows): empty")
            self.assertNotIn("Traceback", self.stderr)

    def test_an_exit_code_that_would_mean_success_becomes_one(self):
        self.run_capsule("import aod\ndef execute(payload):\n    raise aod.CapsuleError('x', exit_code=256)")
        self.assert_error("CapsuleError", "x", 1)

    def test_a_message_is_bounded_on_a_character(self):
        self.run_capsule("def execute(payload):\n    raise ValueError('é' * 100000)")
        self.assertEqual("é" * 2048, self.output["error"]["message"])

    def test_an_error_without_a_message_is_named_by_its_type(self):
        self.run_capsule("def execute(payload):\n    raise KeyError")
        self.assert_error("KeyError", "KeyError")

    def test_an_error_that_cannot_be_shown_is_named_by_its_type(self):
        self.run_capsule("""
            class Odd(Exception):
                def __str__(self): raise RuntimeError
            def execute(payload):
                raise Odd
            """)
        self.assert_error("Odd", "Odd")

    def test_a_message_with_half_a_character_is_written(self):
        self.run_capsule("def execute(payload):\n    raise ValueError('a\\udc80b')")
        self.assert_error("ValueError", "a?b")

    def test_an_endless_recursion_ends_as_an_error(self):
        self.run_capsule("def execute(payload):\n    return execute(payload)")
        self.assert_error("RecursionError", "recursion")

    def test_memory_that_runs_out_ends_as_an_error(self):
        self.run_capsule("def execute(payload):\n    return {'x': bytearray(1 << 62)}")
        self.assert_error("MemoryError", "MemoryError")

    def test_a_result_that_cannot_be_written_is_a_failure(self):
        os.mkdir(self.io + "/output.json")
        process = self.start("def execute(payload):\n    return {}")
        _, stderr = process.communicate(timeout=30)
        self.assertEqual(1, process.returncode)
        self.assertIn("can't be written", stderr)


class Exits(CapsuleTest):
    def test_sys_exit_with_a_code_ends_with_it(self):
        self.run_capsule("import sys\ndef execute(payload):\n    sys.exit(7)")
        self.assert_error("SystemExit", "7", 7)

    def test_sys_exit_with_a_message_logs_it(self):
        self.run_capsule("import sys\ndef execute(payload):\n    sys.exit('broken')")
        self.assert_error("SystemExit", "broken", 1)
        self.assertEqual("broken\n", self.stderr)

    def test_sys_exit_with_zero_writes_nothing(self):
        self.run_capsule("import sys\ndef execute(payload):\n    sys.exit()")
        self.assertEqual((None, 0), (self.output, self.status))

    def test_signals_end_it_at_once(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(number=number):
                process = self.start("""
                    import time
                    def execute(payload):
                        print("ready", flush=True)
                        while True:  # Python doesn't see a signal that comes just before a long sleep
                            time.sleep(0.01)
                    """)
                self.assertEqual("ready\n", process.stdout.readline())
                process.send_signal(number)
                _, stderr = process.communicate(timeout=30)
                self.assertEqual((status, ""), (process.returncode, stderr))
                self.assertIsNone(self.read_output())


class Speed(unittest.TestCase):
    def test_the_package_alone_imports_nothing_heavy(self):
        program = "import sys; a = set(sys.modules); import aod; print(*sorted(set(sys.modules) - a))"
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(["aod", "aod.errors", "aod.paths"], loaded)

    def test_ahead_of_a_run_it_loads_what_this_capsule_needs(self):
        program = """if True:
            import os, sys, tempfile
            from aod import bridge
            def plain(payload): pass
            async def later(payload): pass
            with tempfile.TemporaryDirectory() as capsule:
                for prepare in (
                    lambda: bridge.warm_up(capsule, plain),
                    lambda: bridge.warm_up(capsule, later),
                    lambda: (open(capsule + "/tools.yaml", "w").close(), bridge.warm_up(capsule, print)),
                ):
                    prepare()
                    print("asyncio" in sys.modules, "aod.calls" in sys.modules)
            """
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        self.assertEqual("False False\nTrue False\nTrue True\n", shown)

    def test_the_bridge_leaves_the_heavy_modules_alone(self):
        program = "import sys; import aod.bridge; print(*sys.modules)"
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        heavy = {
            "aod.api", "aod.calls", "aod.outgoing", "aod.result", "aod.watch", "asyncio", "dataclasses", "http.client",
            "inspect", "logging", "pathlib", "secrets", "select", "socket", "traceback", "typing", "yaml",
        }
        self.assertEqual(set(), heavy & set(loaded))
