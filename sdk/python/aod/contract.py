"""A capsule's schema.json: what it takes, what it gives."""

import json
import os

import fastjsonschema

from aod import paths
from aod.errors import ContractError

# The standard's short names beside those of JSON Schema.
TYPE_ALIASES = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
}

# Where, in a schema, other schemas stand. Everything else (enum, const, default,
# examples) is data, in which "type" and "$ref" mean nothing.
_ONE = ("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_LIST = ("allOf", "anyOf", "items", "oneOf")
_BY_NAME = ("$defs", "definitions", "dependencies", "patternProperties", "properties")

MAX_DEPTH = 500  # of a result; past it, it most likely contains itself

_FORMATS = {"file_path", "regex", *fastjsonschema.CodeGeneratorDraft07.FORMAT_REGEXS}


class Contract:
    """Both halves of a schema.json, compiled. Defaults are filled in on input only."""

    def __init__(self, capsule):
        schema = _read_schema(os.path.join(capsule, "schema.json"))
        self._input = Half(schema, "input")
        self._output = Half(schema, "output")

    def check_input(self, document):
        """Return the payload that a JSON document (bytes) holds, with its defaults."""
        try:
            payload = json.loads(document, parse_constant=_refuse_constant)
        except RecursionError:
            raise ContractError("the input is nested too deeply", exit_code=2) from None
        except ValueError as error:
            raise ContractError(f"the input is not JSON: {error}", exit_code=2) from None
        problem = self._input.problem(payload)
        if problem:
            raise ContractError(problem, exit_code=2)
        return payload

    def check_output(self, result):
        """Return the result as a JSON document (bytes)."""
        document, plain = _encode(result)
        problem = self._output.problem(plain)
        if problem:
            raise ContractError(problem)
        return document


class Half:
    """One half of a contract, "input" or "output"."""

    def __init__(self, schema, stage):
        if stage not in schema:
            raise ContractError(f"schema.json has no {stage!r}")
        self._stage = stage
        self._bad_file = None
        try:
            self._validate = fastjsonschema.compile(
                _document(schema, stage),
                formats={"file_path": self._is_file},
                use_default=stage == "input",
            )
        except (fastjsonschema.JsonSchemaDefinitionException, ArithmeticError, AttributeError, LookupError,
                RecursionError, SyntaxError, TypeError, ValueError) as error:
            raise ContractError(f"schema.json, {stage}: {error}") from None

    def problem(self, value):
        """Say what breaks the contract, beginning with where; None if nothing does."""
        if not isinstance(value, dict):
            return f"{self._stage} must be a JSON object"
        self._bad_file = None
        try:
            self._validate(value, name_prefix=self._stage)
        except fastjsonschema.JsonSchemaValueException as error:
            if error.rule == "format" and error.rule_definition == "file_path":
                return f"{error.name}: {self._bad_file}"
            return error.message
        except RecursionError:
            return f"{self._stage} is nested too deeply"
        return None

    def _is_file(self, name):
        self._bad_file = paths.file_problem(self._stage, name)
        return self._bad_file is None


def _read_schema(path):
    try:
        with open(path, "rb") as file:
            schema = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ContractError(f"schema.json: {error}") from None
    if not isinstance(schema, dict):
        raise ContractError("schema.json must be a JSON object")
    return schema


def _document(schema, stage):
    """Return the whole document as a schema that stands for one half of it: references
    are from its top, as "#/definitions/row" or "#/input/properties/row"."""
    document = {key: _prepared(schema[key], key) for key in ("input", "output") if key in schema}
    for key in ("$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            document[key] = {name: _prepared(item, f"{key}.{name}") for name, item in schema[key].items()}
    return {**document, "allOf": [{"$ref": f"#/{stage}"}]}


def _prepared(schema, where):
    """Return the schema with aliases replaced, unknown formats dropped, references checked."""
    if not isinstance(schema, dict):
        return schema
    schema = {key: value for key, value in schema.items() if key not in ("$id", "id")}
    _check_reference(schema.get("$ref", "#"), where)
    if "type" in schema:
        schema["type"] = _without_aliases(schema["type"])
    if schema.get("format", "file_path") not in _FORMATS:
        del schema["format"]
    for key in _ONE:
        if key in schema:
            schema[key] = _prepared(schema[key], f"{where}.{key}")
    for key in _LIST:
        if isinstance(schema.get(key), list):
            schema[key] = [_prepared(item, f"{where}.{key}") for item in schema[key]]
    for key in _BY_NAME:
        if isinstance(schema.get(key), dict):
            schema[key] = {name: _prepared(item, f"{where}.{name}") for name, item in schema[key].items()}
    return schema


def _check_reference(reference, where):
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise ContractError(f"schema.json, {where}: only references within the schema, \"#/...\", are followed")


def _without_aliases(names):
    if isinstance(names, list):
        return [_without_aliases(name) for name in names]
    return TYPE_ALIASES.get(names, names) if isinstance(names, str) else names


def _encode(result):
    """Return the result as a JSON document (bytes), and as what a reader makes of it."""
    if not isinstance(result, dict):
        raise ContractError(f"execute must return a dict, not {type(result).__name__}")
    try:
        document = json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
        plain = json.loads(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(_why_not_json(result) or f"output has no JSON form: {error}") from None
    # A key like 1 would silently become "1". A tuple differs as well, and may.
    problem = plain != result and _why_not_json(result)
    if problem:
        raise ContractError(problem)
    return document, plain


def _why_not_json(result):
    for where, value, depth in _walk(result):
        if depth > MAX_DEPTH:
            return f"{where[:200]}... contains itself, or is nested too deeply"
        if isinstance(value, dict):
            strange = [key for key in value if not isinstance(key, str)]
            if strange:
                return f"{where}: the key {strange[0]!r} is no string"
        elif not isinstance(value, (list, tuple)) and not _is_json_scalar(value):
            shown = value if isinstance(value, float) else type(value).__name__
            return f"{where}: {shown} has no JSON form"
    return None


def _is_json_scalar(value):
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def _walk(result):
    """Yield (where, value, depth) of everything in the result, from the top."""
    stack = [("output", result, 0)]
    while stack:
        where, value, depth = stack.pop()
        yield where, value, depth
        if isinstance(value, dict):
            stack.extend((f"{where}.{key}", item, depth + 1) for key, item in value.items())
        elif isinstance(value, (list, tuple)):
            stack.extend((f"{where}[{index}]", item, depth + 1) for index, item in enumerate(value))


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")
