"""A capsule in a temporary directory, run the way that the sandbox runs one."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

ANYTHING = {"input": {"type": "object"}, "output": {"type": "object"}}
RUN_PY = "import aod\n\naod.run()\n"


class CapsuleTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.capsule = os.path.join(directory.name, "capsule")
        self.io = os.path.join(directory.name, "io")
        for path in (self.capsule + "/src", self.io + "/input", self.io + "/output"):
            os.makedirs(path)
        self.write(self.capsule, "run.py", RUN_PY)
        self.variables = {}  # further ones of the capsule's environment

    def write(self, directory, name, text):
        with open(os.path.join(directory, name), "w") as file:
            file.write(textwrap.dedent(text))

    def environment(self):
        return {**os.environ, "AOD_IO_DIR": self.io, **self.variables}

    def start(self, main, payload=None, schema=ANYTHING):
        """Start the capsule with that src/main.py and return its process."""
        document = payload if isinstance(payload, str) else json.dumps(payload or {})
        self.write(self.io, "input.json", document)
        return self.start_ahead(main, schema)

    def start_ahead(self, main, schema=ANYTHING):
        """Start the capsule with what is in /io, which may be no input yet."""
        if main is not None:
            self.write(self.capsule, "src/main.py", main)
        self.write(self.capsule, "schema.json", schema if isinstance(schema, str) else json.dumps(schema))
        return subprocess.Popen(
            [sys.executable, os.path.join(self.capsule, "run.py")],
            env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def run_capsule(self, main, payload=None, schema=ANYTHING):
        """Run the capsule to its end; leaves status, stdout, stderr and output."""
        process = self.start(main, payload, schema)
        self.stdout, self.stderr = process.communicate(timeout=180)
        self.status = process.returncode
        self.output = self.read_output()
        return self.output

    def read_output(self):
        try:
            with open(os.path.join(self.io, "output.json"), "rb") as file:
                return json.loads(file.read().decode())
        except FileNotFoundError:
            return None

    def assert_error(self, kind, text, status=1):
        self.assertEqual(["error"], list(self.output))
        self.assertEqual(kind, self.output["error"]["type"])
        self.assertIn(text, self.output["error"]["message"])
        self.assertEqual(status, self.status)

    def assert_breach(self, text, status=1):
        self.assert_error("ContractError", text, status)
        self.assertNotIn("Traceback", self.stderr)
