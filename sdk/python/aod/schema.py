"""A schema.json, compiled: fastjsonschema, and the dialect of contracts."""

import json

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

_FORMATS = {"file_path", "regex", *fastjsonschema.CodeGeneratorDraft07.FORMAT_REGEXS}


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


def parse(document):
    """Return the schema that a JSON document (bytes) holds."""
    try:
        schema = json.loads(document)
    except (ValueError, RecursionError) as error:
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
