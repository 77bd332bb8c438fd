import os

from harness import ANYTHING, CapsuleTest

ECHO = "def execute(payload):\n    return payload"
FILE = {"type": "string", "format": "file_path"}


def contract(input=True, output=True):
    return {"input": input, "output": output}


def properties(**fields):
    return {"type": "object", "properties": fields}


class Inputs(CapsuleTest):
    def breach(self, text, payload, schema=ANYTHING):
        self.run_capsule(ECHO, payload, schema)
        self.assert_breach(text, 2)

    def test_an_input_that_breaks_the_contract_ends_with_two(self):
        self.breach("input.n must be integer", {"n": "1"}, contract(properties(n={"type": "integer"})))

    def test_what_is_no_json_object_is_refused(self):
        for text in ("", "{", "[]", "1", '{"a": NaN}', '{"a": Infinity}'):
            with self.subTest(text=text):
                self.breach("input", text)

    def test_endless_nesting_is_refused(self):
        self.breach("too deep", '{"a":' + "[" * 100000 + "]" * 100000 + "}")

    def test_a_missing_input_is_refused(self):
        self.run_capsule("import os, aod\nos.remove(os.environ['AOD_IO_DIR'] + '/input.json')\n" + ECHO)
        self.assert_breach("the input can't be read", 2)

    def test_defaults_are_filled_in(self):
        self.run_capsule(ECHO, {}, contract(properties(n={"type": "int", "default": 3})))
        self.assertEqual({"n": 3}, self.output)

    def test_newer_drafts_mean_what_they_say(self):
        pair = {"type": "array", "prefixItems": [{"type": "int"}], "items": {"type": "string"}}
        number = {"$defs": {"n": {"type": "int", "default": 7}}, "$schema": "https://json-schema.org/draft/2020-12/schema"}
        above = {**number, **properties(n={"$ref": "#/$defs/n", "minimum": 3})}
        for name, text, payload, half in (
            ("a tuple", "input.p[0] must be integer", {"p": ["x"]}, properties(p=pair)),
            ("what follows it", "input.p[1] must be string", {"p": [1, 2]}, properties(p=pair)),
            ("a field that needs another", "b", {"a": 1}, {"type": "object", "dependentRequired": {"a": ["b"]}}),
            ("one that needs a form", "must contain ['b']", {"a": 1}, {"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}),
            ("a reference", "input.n must be integer", {"n": "x"}, above),
            ("what stands beside it", "input.n must be bigger than or equal to 3", {"n": 2}, above),
        ):
            with self.subTest(name):
                self.breach(text, payload, contract(half))
        any_number = properties(l={"type": "array", "contains": False, "minContains": 0}, p=pair)
        self.run_capsule(ECHO, {"p": [1, "x"], "l": []}, contract(any_number))
        self.assertEqual(0, self.status)

    def test_references_of_a_generated_half_start_there(self):
        node = {"$defs": {"n": {"type": "object", "properties": {"v": {"type": "int", "default": 1}, "next": {"$ref": "#/$defs/n"}}}}}
        self.run_capsule(ECHO, {"next": {}}, contract({**node, "$ref": "#/$defs/n"}))
        self.assertEqual({"v": 1, "next": {"v": 1}}, self.output)
        whole = {"$schema": "http://json-schema.org/draft-07/schema#", **properties(v={"type": "int"}, next={"$ref": "#"})}
        self.breach("input.next.v must be integer", {"next": {"v": "x"}}, contract(whole))

    def test_an_input_file_must_be_there(self):
        schema = contract(properties(f=FILE))
        self.breach("input.f: there is no file 'a.txt'", {"f": "a.txt"}, schema)
        self.write(self.io, "input/a.txt", "x")
        self.run_capsule(ECHO, {"f": "a.txt"}, schema)
        self.assertEqual({"f": "a.txt"}, self.output)


class Validated(CapsuleTest):
    """What is left to do where AOD validates."""

    IMPORTED = """
        import sys

        def execute(payload):
            return {**payload, "imported": "aod.judge" in sys.modules}
    """

    def setUp(self):
        super().setUp()
        self.variables["AOD_VALIDATES"] = "1"

    def test_the_schemas_are_left_to_aod(self):
        wrong = contract(properties(n={"type": "string"}), properties(n={"type": "string"}))
        self.run_capsule(self.IMPORTED, {"n": 1}, wrong)
        self.assertEqual({"n": 1, "imported": False}, self.output)

    def test_defaults_are_filled_in(self):
        for word in ("default", "d\\u0065fault"):
            with self.subTest(word=word):
                text = '{"input": {"properties": {"n": {"%s": 3}}}, "output": false}' % word
                self.run_capsule(self.IMPORTED, {}, text)
                self.assertEqual({"n": 3, "imported": False}, self.output)

    def test_what_has_no_json_form_is_refused(self):
        self.run_capsule("def execute(payload):\n    return {'n': {1}}")
        self.assert_breach("output.n: set has no JSON form")

    def test_only_a_clear_word_counts(self):
        for word in ("", "0", "true"):
            with self.subTest(word=word):
                self.variables["AOD_VALIDATES"] = word
                self.run_capsule(ECHO, {"n": 1}, contract(properties(n={"type": "string"})))
                self.assert_breach("input.n must be string", 2)


class Schemas(CapsuleTest):
    def test_the_short_names_stand_for_the_long_ones(self):
        fields = {name: {"type": name} for name in ("int", "float", "bool", "dict", "list")}
        payload = {"int": 1, "float": 0.5, "bool": True, "dict": {}, "list": []}
        self.run_capsule(ECHO, payload, contract({"type": "dict", "properties": fields}))
        self.assertEqual(payload, self.output)

    def test_the_short_names_count_wherever_a_schema_stands(self):
        places = (
            properties(v={"type": ["int", "null"]}),
            properties(v={"anyOf": [{"type": "int"}]}),
            properties(v={"not": {"not": {"type": "int"}}}),
            properties(v={"$ref": "#/input/definitions/n"}) | {"definitions": {"n": {"type": "int"}}},
            {"patternProperties": {"v": {"type": "int"}}},
            {"additionalProperties": {"type": "int"}},
        )
        for schema in places:
            with self.subTest(schema=schema):
                self.run_capsule(ECHO, {"v": 1}, contract(schema))
                self.assertEqual({"v": 1}, self.output)
                self.run_capsule(ECHO, {"v": "x"}, contract(schema))
                self.assertEqual(2, self.status)

    def test_they_mean_nothing_in_data(self):
        for keyword in ("enum", "const", "default"):
            value = {"type": "int"}
            schema = properties(v={keyword: [value] if keyword == "enum" else value})
            with self.subTest(keyword=keyword):
                self.run_capsule(ECHO, {"v": value}, contract(schema))
                self.assertEqual({"v": value}, self.output)

    def test_a_field_may_be_called_type(self):
        self.run_capsule(ECHO, {"type": "int"}, contract(properties(type={"type": "string"})))
        self.assertEqual({"type": "int"}, self.output)

    def test_an_unknown_format_is_no_constraint(self):
        self.run_capsule(ECHO, {"v": "x"}, contract(properties(v={"type": "string", "format": "colour"})))
        self.assertEqual({"v": "x"}, self.output)

    def test_remote_references_are_refused(self):
        for reference in ("http://127.0.0.1/x", "file:///etc/passwd", "other.json#/x"):
            with self.subTest(reference=reference):
                self.run_capsule(ECHO, {}, contract(properties(v={"$ref": reference})))
                self.assert_breach("only references within")

    def test_a_reference_is_from_the_top_of_the_file(self):
        row = {"type": "dict", "properties": {"n": {"type": "int"}, "next": {"$ref": "#/definitions/row"}}}
        for name in ("definitions", "$defs"):
            half = properties(rows={"type": "list", "items": {"$ref": f"#/{name}/row"}})
            schema = contract(half, half) | {name: {"row": {**row, "properties": {"n": {"type": "int"}}}}}
            self.run_capsule(ECHO, {"rows": [{"n": 1}]}, schema)
            self.assertEqual({"rows": [{"n": 1}]}, self.output)
            self.run_capsule(ECHO, {"rows": [{"n": "x"}]}, schema)
            self.assert_breach("n must be integer", 2)
        schema = contract(properties(v={"$ref": "#/definitions/row"})) | {"definitions": {"row": row}}
        self.run_capsule(ECHO, {"v": {"next": {"n": "x"}}}, schema)
        self.assert_breach("n must be integer", 2)

    def test_an_identifier_makes_no_local_reference_remote(self):
        schema = properties(v={"$ref": "#/definitions/n"}) | {"$id": "http://127.0.0.1/s"}
        self.run_capsule(ECHO, {"v": 1}, contract(schema) | {"definitions": {"n": {"type": "int"}}})
        self.assertEqual({"v": 1}, self.output)

    def test_a_schema_that_is_none_is_named(self):
        for text in ("", "[]", '{"input": {}}', '{"input": {"type": "colour"}, "output": {}}',
                     '{"input": {"properties": 3}, "output": {}}', '{"input": {"$ref": "#/nowhere"}, "output": {}}'):
            with self.subTest(text=text):
                self.run_capsule(ECHO, {}, text)
                self.assert_breach("schema.json")


class Outputs(CapsuleTest):
    def breach(self, text, expression, schema=ANYTHING):
        self.run_capsule(f"import datetime, math\ndef execute(payload):\n    return {expression}", {}, schema)
        self.assert_breach(text)

    def test_a_result_that_breaks_the_contract_is_refused(self):
        self.breach("output.n must be integer", "{'n': 'x'}", contract(output=properties(n={"type": "int"})))

    def test_only_a_dict_is_a_result(self):
        self.breach("must return a dict, not NoneType", "None")
        self.breach("must return a dict, not list", "[]")

    def test_a_value_without_a_json_form_is_named_by_its_place(self):
        self.breach("output.a[1].b: date has no JSON form", "{'a': [0, {'b': datetime.date(2020, 1, 1)}]}")
        self.breach("output.a: nan has no JSON form", "{'a': math.nan}")
        self.breach("output.a: inf has no JSON form", "{'a': math.inf}")
        self.breach("output.a: str has no JSON form", "{'a': chr(0xdc80)}")
        self.breach("output.a: bytes has no JSON form", "{'a': b''}")
        self.breach("output.a: int has no JSON form", "{'a': 10 ** 5000}")

    def test_keys_are_strings(self):
        self.breach("output.a: the key 1 isn't a string", "{'a': {1: 2}}")
        self.breach("the key None isn't a string", "{None: 2}")
        self.breach("output: the key (1, 2) isn't a string", "{(1, 2): 2}")

    def test_a_result_that_contains_itself_is_refused(self):
        self.breach("too deeply", "(lambda d: d.update(d=d) or d)({})")

    def test_a_tuple_is_an_array(self):
        self.run_capsule("def execute(payload):\n    return {'a': (1, 2)}")
        self.assertEqual({"a": [1, 2]}, self.output)

    def test_defaults_are_not_filled_in(self):
        self.run_capsule("def execute(payload):\n    return {}", {}, contract(output=properties(n={"default": 3})))
        self.assertEqual({}, self.output)


class OutputFiles(CapsuleTest):
    SCHEMA = contract(output=properties(f=FILE))

    def result(self, name, prepare="pass"):
        self.run_capsule(f"import os, aod\ndef execute(payload):\n    out = aod.output_path\n    {prepare}\n    return {{'f': {name!r}}}",
                         {}, self.SCHEMA)

    def test_a_regular_file_is_accepted_also_by_its_absolute_name(self):
        for name in ("x.txt", "a/b/x.txt", self.io + "/output/x.txt"):
            with self.subTest(name=name):
                self.result(name, f"open(out({name!r}), 'w').close()")
                self.assertEqual({"f": name}, self.output)

    def test_a_file_that_is_not_there_is_refused(self):
        self.result("x.txt")
        self.assert_breach("output.f: there is no file 'x.txt'")

    def test_names_that_lead_elsewhere_are_refused(self):
        for name in ("../input.json", "/etc/passwd", "a/../../input.json", "", "a\0b", self.io + "/output//etc/passwd"):
            with self.subTest(name=name):
                self.result(name)
                self.assert_breach("output.f: ")

    def test_links_are_refused_wherever_they_stand(self):
        self.result("x", "os.symlink('/etc/passwd', out('x'))")
        self.assert_breach("link")
        self.result("d/passwd", "os.symlink('/etc', out('d'))")
        self.assert_breach("link")

    def test_what_is_no_regular_file_is_refused(self):
        self.result("d", "os.mkdir(out('d'))")
        self.assert_breach("a regular file")
        self.result("p", "os.mkfifo(out('p'))")
        self.assert_breach("a regular file")


class Paths(CapsuleTest):
    def test_paths_of_files_refuse_to_leave_their_stage(self):
        for function in ("input_path", "output_path"):
            with self.subTest(function=function):
                self.run_capsule(f"import aod\ndef execute(payload):\n    aod.{function}('../x')")
                self.assert_breach("leads out")

    def test_an_output_path_has_its_directory(self):
        self.run_capsule("import aod, os\ndef execute(payload):\n    return {'there': os.path.isdir(os.path.dirname(aod.output_path('a/b/c')))}")
        self.assertEqual({"there": True}, self.output)

    def test_the_workspace_is_where_the_sandbox_says(self):
        os.environ["AOD_WORKSPACE"] = "/somewhere"
        self.addCleanup(os.environ.pop, "AOD_WORKSPACE")
        self.run_capsule("import aod\ndef execute(payload):\n    return {'w': aod.workspace()}")
        self.assertEqual({"w": "/somewhere"}, self.output)
