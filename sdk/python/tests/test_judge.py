"""What the library judges where there is no AOD, beside what AOD judges."""

import json
import os
import unittest

from aod import schema
from aod.errors import ContractError

ROWS = os.environ.get("AOD_TEST_ROWS", "/rows/rows.json")  # written by the tests in Go


def verdict(part, value):
    """Whether a value of one field keeps its schema."""
    half = schema.Half({"input": {"properties": {"v": part}}}, "input")
    return half.problem({"v": value}) is None


class Verdicts(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(ROWS), "no schemas with AOD's verdicts")
    def test_they_are_those_of_aod_or_a_refusal(self):
        with open(ROWS, encoding="utf-8") as file:
            rows = json.load(file)
        judged = 0
        for row in rows:
            try:
                half = schema.Half({"input": row["schema"]}, "input")
                valid = half.problem(row["value"]) is None
            except ContractError:
                continue
            judged += 1
            if not row["refused"]:
                self.assertEqual(row["valid"], valid, row)
        self.assertGreater(judged, len(rows) // 2)

    def test_classes_are_ascii_and_expressions_have_the_letters_of_aod(self):
        for pattern, holds, breaks in (
            (r"^\S+$", ["a\u00a0b"], ["a b", "ab\n"]), (r"^\w+$", ["a_1"], ["Zoë"]), (r"^\d$", ["1"], ["٣"]),
            (r"^(?<n>a)\z", ["a"], ["a\n"]), (r"^\Qa.b\E$", ["a.b"], ["axb"]), (r"^[\u0061-\u00e9]\x{e9}$", ["éé"], ["êé"]),
            (r"^\ud83d\ude00$", ["😀"], [""]), (r"^[\s\S]$", ["\n", "é"], [""]), (r"^[^\W\d]$", ["a"], ["1", "é"]),
            (r"^[]a[]+$", ["]a["], ["b"]), (r"a{,2}", ["a{,2}"], ["a"]), (r"(?i)^K$", ["k", "\u212a"], ["l"]),
            (r"\B", ["", "ab", "-"], ["a"]),
        ):
            for text in holds:
                self.assertTrue(verdict({"pattern": pattern}, text), (pattern, text))
            for text in breaks:
                self.assertFalse(verdict({"pattern": pattern}, text), (pattern, text))

    def test_what_only_aod_can_judge_is_refused(self):
        for part, value in (
            ({"pattern": r"^\p{L}+$"}, "a"), ({"pattern": "[[:alpha:]]"}, "a"), ({"pattern": "(?m)^a$"}, "a"), ({"pattern": "a++"}, "a"),
            ({"format": "idn-hostname"}, "ü.de"), ({"unevaluatedProperties": False}, {}), ({"$id": "x"}, 1), ({"$ref": "#x"}, 1),
            ({"multipleOf": 0}, 1), ({"minContains": 2}, []), ({"type": "colour"}, 1), ({"properties": []}, 1),
        ):
            with self.assertRaises(ContractError, msg=part):
                verdict(part, value)

    def test_a_number_beyond_all_others_is_no_traceback(self):
        for part in ({"type": "integer"}, {"multipleOf": 2}):
            self.assertFalse(verdict(part, float("inf")))

    def test_a_limit_of_draft_4_may_be_left_out(self):
        half = {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {
            "v": {"minimum": 1, "exclusiveMinimum": True}, "w": {"maximum": 1, "exclusiveMaximum": False},
        }}
        judge = schema.Half({"input": half}, "input")
        self.assertEqual(["input.v must be bigger than 1"], judge.problems({"v": 1, "w": 1}))
        self.assertEqual([], judge.problems({"v": 2, "w": 1}))

    def test_values_are_the_same_as_in_aod(self):
        for part, holds, breaks in (
            ({"enum": [1, 2]}, [1, 1.0], [True, "1"]), ({"const": [0]}, [[0], [0.0]], [[False]]), ({"type": "integer"}, [1.0], [True, 1.5]),
            ({"uniqueItems": True}, [[1, True]], [[1, 1.0], [{"a": 1}, {"a": 1.0}]]), ({"multipleOf": 0.1}, [0.3], [0.35]),
            ({"format": "date"}, ["2024-02-29", 7], ["2024-02-30"]), ({"format": "uuid"}, ["6BA7B810-9dad-11d1-80b4-00c04fd430c8"], ["6ba7b810"]),
            ({"format": "duration"}, ["P4DT12H30M5S", "P2W", "PT36H", "P1Y2M", "P01D"], ["P", "P1YT", "P1Y2D", "PT1H2S", "P1Y2W", "P২Y", "PT0.5S", "P1D\n"]),
            ({"format": "date-time"}, ["2024-12-31t23:59:60z"], ["2024-12-31T23:59Z"]), ({"format": "email"}, ["a@b", "a@[IPv6:::1]"], ["a b@c"]),
        ):
            for value in holds:
                self.assertTrue(verdict(part, value), (part, value))
            for value in breaks:
                self.assertFalse(verdict(part, value), (part, value))


class Defaults(unittest.TestCase):
    def filled(self, part, value):
        read = schema.document({"input": part}, "input")
        return schema.fill(read, "input", value)

    def test_they_are_filled_in_where_the_value_is(self):
        point = {"type": "object", "properties": {"x": {"default": 0}, "kind": {"const": "point"}}}
        line = {"type": "object", "properties": {"w": {"default": 1}, "kind": {"const": "line"}}, "required": ["kind"]}
        for part, value, want in (
            ({"properties": {"p": point}}, {"p": {}}, {"p": {"x": 0}}),
            ({"properties": {"p": {**point, "default": {}}}}, {}, {"p": {"x": 0}}),
            ({"properties": {"p": {"anyOf": [point, {"type": "null"}]}}}, {"p": None}, {"p": None}),
            ({"properties": {"p": {"oneOf": [point, line]}}}, {"p": {"kind": "line"}}, {"p": {"kind": "line", "w": 1}}),
            ({"properties": {"l": {"items": point}}}, {"l": [{}]}, {"l": [{"x": 0}]}),
            ({"additionalProperties": {"$ref": "#/$defs/p"}, "$defs": {"p": point}}, {"a": {}}, {"a": {"x": 0}}),
            ({"if": {"properties": {"a": {"const": 1}}}, "then": point, "else": line}, {"a": 2}, {"a": 2, "w": 1}),
            ({"allOf": [point, line]}, {"kind": "line"}, {"kind": "line", "x": 0, "w": 1}),
        ):
            self.assertEqual(want, self.filled(part, value))

    def test_a_default_belongs_to_one_value_alone(self):
        part = {"properties": {"l": {"default": []}}}
        self.filled(part, {})["l"].append(1)
        self.assertEqual({"l": []}, self.filled(part, {}))
