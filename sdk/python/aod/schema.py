"""A schema.json, compiled: fastjsonschema, and the dialect of contracts."""

import json
from urllib.parse import unquote

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
_LIST = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_DATA = ("const", "default", "enum", "examples")
_BY_NAME = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")

DEEPEST = 16  # levels of a value in which all that is wrong is looked for
MOST_INLINED = 5000  # schemas in one whose references were put in
ELEMENTS = 16  # of a list, likewise

_FORMATS = {"file_path", "regex", *fastjsonschema.CodeGeneratorDraft07.FORMAT_REGEXS}


class Half:
    """One half of a contract, "input" or "output".

    file_problem says what is wrong with the name of a file; without it, a file of that
    name has to lie in the stage's directory. name is what messages call the value.
    """

    def __init__(self, schema, stage, file_problem=None, name=None):
        if stage not in schema:
            raise ContractError(f"schema.json has no {stage!r}")
        self._stage = stage
        self._name = name or stage
        self.file_problem = file_problem or (lambda name: paths.file_problem(stage, name))
        self._bad_file = None
        try:
            self.document = document(schema, stage)
            self._validate = self._compiled(self.document)
        except (fastjsonschema.JsonSchemaDefinitionException, ArithmeticError, AttributeError, LookupError,
                RecursionError, SyntaxError, TypeError, ValueError) as error:
            raise ContractError(f"schema.json, {stage}: {error}") from None

    def problem(self, value):
        """Say what breaks the contract, beginning with where; None if nothing does."""
        if not isinstance(value, dict):
            return f"{self._name} must be a JSON object"
        return self._broken(self._validate, value, self._name)

    def problems(self, value):
        """List what breaks the contract, each beginning with where: at least what problem
        says, and beside it what is wrong elsewhere in the value."""
        first = self.problem(value)
        if first is None:
            return []
        found = list(_unique(self._below(self.document[self._stage], value, self._name, 0)))
        return found or [first]

    def _below(self, schema, value, where, depth):
        """Yield what breaks a schema in the value itself, then in its fields and elements."""
        while isinstance(schema, dict) and "$ref" in schema:
            schema = _at(self.document, schema["$ref"])
        if not isinstance(schema, dict) or depth > DEEPEST:
            return
        shallow = {key: item for key, item in schema.items() if key not in ("properties", "items", "allOf")}
        fields, items = schema.get("properties", {}), schema.get("items")
        if isinstance(fields, dict):
            shallow["properties"] = {name: {} for name in fields}
        definitions = {key: item for key, item in self.document.items() if key != "allOf"}
        wrong = self._broken(self._compiled({**definitions, "allOf": [shallow]}), value, where)
        if wrong:
            yield wrong
        for part in schema.get("allOf", ()):
            yield from self._below(part, value, where, depth + 1)
        if isinstance(value, dict) and isinstance(fields, dict):
            for name in [name for name in fields if name in value]:
                yield from self._below(fields[name], value[name], f"{where}.{name}", depth + 1)
        if isinstance(value, list) and isinstance(items, dict):
            for index, item in enumerate(value[:ELEMENTS]):
                yield from self._below(items, item, f"{where}[{index}]", depth + 1)

    def _compiled(self, document):
        return fastjsonschema.compile(document, formats={"file_path": self._is_file}, use_default=self._stage == "input")

    def _broken(self, validate, value, where):
        self._bad_file = None
        try:
            validate(value, name_prefix=where)
        except fastjsonschema.JsonSchemaValueException as error:
            if error.rule == "format" and error.rule_definition == "file_path":
                return f"{error.name}: {self._bad_file}"
            return error.message
        except RecursionError:
            return f"{where} is nested too deeply"
        return None

    def _is_file(self, name):
        self._bad_file = self.file_problem(name)
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


def document(schema, stage):
    """Return the whole document as a schema that stands for one half of it: references
    are from its top, as "#/definitions/row" or "#/input/properties/row"."""
    whole = {key: _Reader(schema, key).read(schema[key], key) for key in ("input", "output") if key in schema}
    top = _Reader(schema)
    for key in ("$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            whole[key] = {name: top.read(item, f"{key}.{name}") for name, item in schema[key].items()}
    return {**whole, "allOf": [{"$ref": f"#/{stage}"}]}


class _Reader:
    """Reads the schemas of one half, or of the top, as draft-07: aliases replaced, unknown
    formats dropped, references checked, newer drafts translated (as AOD does)."""

    def __init__(self, document, half=None):
        own = document.get(half)
        declared = own.get("$schema") if isinstance(own, dict) else None
        draft = declared or document.get("$schema")
        self._document = document
        self._newer = isinstance(draft, str) and "/draft/20" in draft
        self._bases = [""]  # where references may start: a half with a draft of its own goes first
        if half:
            self._bases.insert(0 if declared else 1, "/" + half)

    def read(self, schema, where):
        if not isinstance(schema, dict):
            return schema
        schema = {key: value for key, value in schema.items() if key not in ("$id", "id", "$schema")}
        if "$ref" in schema:
            schema["$ref"] = self._reference(schema["$ref"], where)
        if "type" in schema:
            schema["type"] = _without_aliases(schema["type"])
        if schema.get("format", "file_path") not in _FORMATS:
            del schema["format"]
        for key in _ONE:
            if key in schema:
                schema[key] = self.read(schema[key], f"{where}.{key}")
        for key in _LIST:
            if isinstance(schema.get(key), list):
                schema[key] = [self.read(item, f"{where}.{key}") for item in schema[key]]
        for key in _BY_NAME:
            if isinstance(schema.get(key), dict):
                schema[key] = {name: self.read(item, f"{where}.{name}") for name, item in schema[key].items()}
        return self._translated(schema)

    def _translated(self, schema):
        if schema.get("prefixItems"):
            if "items" in schema:
                schema["additionalItems"] = schema["items"]
            schema["items"] = schema["prefixItems"]
        if schema.get("minContains") == 0:
            schema.pop("contains", None)
        also = list(schema.get("allOf", ()))
        for key in ("dependentRequired", "dependentSchemas"):
            if key in schema:
                also.append({"dependencies": schema.pop(key)})
        if "$ref" in schema and self._newer:  # what stands beside it holds as well
            also.append({"$ref": schema.pop("$ref")})
        return {**schema, "allOf": also} if also else schema

    def _reference(self, reference, where):
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise ContractError(f"schema.json, {where}: only references within the schema, \"#/...\", are followed")
        for base in self._bases:
            if _leads_somewhere(self._document, base + reference[1:]):
                return "#" + base + reference[1:]
        return reference


def inlined(whole, stage):
    """Return one half of a document with what its references say in their place.

    A schema that contains itself ends, at its second time, in one that takes anything.
    """
    return _inline(whole, whole[stage], (), [MOST_INLINED])


def _inline(document, value, on_the_way, left):
    if isinstance(value, list):
        return [_inline(document, item, on_the_way, left) for item in value]
    if not isinstance(value, dict):
        return value
    left[0] -= 1
    reference = value.get("$ref")
    if isinstance(reference, str):
        if reference in on_the_way or left[0] < 0:
            return {}
        return _inline(document, _at(document, reference), (*on_the_way, reference), left)
    schema = {}
    for key, item in value.items():
        if key in _BY_NAME and isinstance(item, dict):
            item = {name: _inline(document, part, on_the_way, left) for name, part in item.items()}
        elif key not in _DATA:
            item = _inline(document, item, on_the_way, left)
        schema[key] = item
    return {key: item for key, item in schema.items() if key not in ("definitions", "$defs")}


def _unique(found):
    return dict.fromkeys(found)


def _at(document, reference):
    """Return what a reference within a document leads to, {} for nothing."""
    value = document
    for part in unquote(reference[1:]).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        value = value[int(part)] if isinstance(value, list) else value.get(part, {})
    return value


def _leads_somewhere(value, pointer):
    """Whether something stands in a document where a pointer of a reference leads."""
    for part in unquote(pointer).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def _without_aliases(names):
    if isinstance(names, list):
        return [_without_aliases(name) for name in names]
    return TYPE_ALIASES.get(names, names) if isinstance(names, str) else names
