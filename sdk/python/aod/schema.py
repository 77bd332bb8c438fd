"""A schema.json, read: the dialect of contracts, defaults, and one half to judge by."""

import copy
import json
from urllib.parse import unquote

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
_BY_NAME = ("dependencies", "dependentSchemas", "patternProperties", "properties")
_OF_NAMES = (*_BY_NAME, "$defs", "definitions")

DRAFTS = ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12")
MOST_INLINED = 5000  # schemas in one whose references were put in

_NAMES = {str: "string", bool: "boolean", dict: "object", list: "array", type(None): "null"}

class Half:
    """One half of a contract, "input" or "output", judged here.

    file_problem says what is wrong with the name of a file; without it, a file of that
    name has to lie in the stage's directory. name is what messages call the value.
    """

    def __init__(self, schema, stage, file_problem=None, name=None):
        if stage not in schema:
            raise ContractError(f"schema.json has no {stage!r}")
        from aod import judge

        self._name = name or stage
        self.file_problem = file_problem or (lambda name: paths.file_problem(stage, name))
        try:
            self.document = document(schema, stage, judge.check)
        except RecursionError:
            raise ContractError(f"schema.json, {stage}: it is nested too deeply") from None
        self._schema = self.document[stage]
        self._judge = judge.Judge(self.document, lambda name: self.file_problem(name))

    def problem(self, value):
        """Say what breaks the contract first, beginning with where; None if nothing does."""
        return next(iter(self.problems(value)), None)

    def problems(self, value):
        """List all that breaks the contract, each beginning with where."""
        if not isinstance(value, dict):
            return [f"{self._name} must be a JSON object"]
        try:
            return list(dict.fromkeys(self._judge.wrong(self._schema, value, self._name)))
        except RecursionError:
            return [f"{self._name} is nested too deeply, or its schema refers to itself for ever"]
        except ValueError as error:  # of a number beyond those of JSON
            return [f"{self._name} can't be judged: {error}"]


def fill(document, stage, value):
    """Put defaults where a half's schema has some and the value, which keeps it, has nothing."""
    _fill(document, document[stage], value)
    return value


def _fill(document, schema, value):
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        _fill(document, document["$refs"][schema["$ref"]], value)
        return
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if isinstance(part, dict) and name not in value and "default" in part:
                value[name] = copy.deepcopy(part["default"])
            if name in value:
                _fill(document, part, value[name])
        for name in value.keys() - schema.get("properties", {}).keys():
            _fill(document, schema.get("additionalProperties"), value[name])
    if isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            _fill(document, items if not isinstance(items, list) else items[index] if index < len(items) else None, item)
    for part in schema.get("allOf", ()):
        _fill(document, part, value)
    for key in ("anyOf", "oneOf"):
        _fill(document, next((part for part in schema.get(key, ()) if _may_hold(document, part, value)), None), value)
    if "if" in schema:
        _fill(document, schema.get("then" if _may_hold(document, schema["if"], value) else "else"), value)


def _may_hold(document, schema, value):
    """Report whether a value could keep a schema, by its type and the fixed values of its fields: a
    choice is told by them."""
    if not isinstance(schema, dict):
        return schema is not False
    if "$ref" in schema:
        return _may_hold(document, document["$refs"][schema["$ref"]], value)
    names = schema.get("type", [])
    if names and not any(name in _types(value) for name in ([names] if isinstance(names, str) else names)):
        return False
    if "const" in schema and schema["const"] != value or "enum" in schema and value not in schema["enum"]:
        return False
    if not isinstance(value, dict):
        return True
    fields = schema.get("properties", {})
    return all(name in value for name in schema.get("required", ())) and all(
        _may_hold(document, fields[name], value[name]) for name in fields.keys() & value.keys()
    ) and (schema.get("additionalProperties") is not False or not value.keys() - fields.keys())


def _types(value):
    """Return the names of the types that a value has."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ("number", "integer") if value % 1 == 0 else ("number",)
    return (_NAMES.get(type(value)),)


def parse(document):
    """Return the schema that a JSON document (bytes) holds."""
    try:
        schema = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"schema.json: {error}") from None
    if not isinstance(schema, dict):
        raise ContractError("schema.json must be a JSON object")
    return schema


def document(schema, stage, check=None):
    """Return one half of a document as draft-07, and under "$refs" what its references lead to, by
    where that stands. References are from the document's top, as "#/definitions/row".
    check(schema, draft, where, whether it is the half itself) may raise a ContractError."""
    reader = _Reader(schema, check or (lambda *_: None))
    return {stage: reader.read(schema[stage], "/" + stage), "$refs": reader.references}


class _Reader:
    """Reads schemas as draft-07: aliases replaced, references resolved, newer drafts translated
    (as AOD does)."""

    def __init__(self, document, check):
        self._document = document
        self._check = check
        self.references = {}  # the schemas, by their pointers

    def read(self, schema, at):
        """Return the schema at a pointer, as draft-07."""
        draft = self._draft(at)
        if isinstance(schema, dict) and "type" in schema:
            schema = {**schema, "type": _without_aliases(schema["type"])}
        if isinstance(schema, dict) and "$ref" in schema and not _is_newer(draft):  # all beside it is ignored
            schema = {key: item for key, item in schema.items() if key in ("$ref", "default", "description", "title")}
        self._check(schema, draft, at[1:].replace("/", "."), at.count("/") == 1)
        if not isinstance(schema, dict):
            return schema
        schema = {key: value for key, value in schema.items() if key not in ("$id", "id", "$schema", "definitions", "$defs")}
        if "$ref" in schema:
            schema["$ref"] = self._reference(schema["$ref"], at)
        for key in _ONE:
            if key in schema:
                schema[key] = self.read(schema[key], f"{at}/{key}") if not isinstance(schema[key], list) else schema[key]
        for key in _LIST:
            if isinstance(schema.get(key), list):
                schema[key] = [self.read(item, f"{at}/{key}/{index}") for index, item in enumerate(schema[key])]
        for key in _BY_NAME:
            if isinstance(schema.get(key), dict):
                schema[key] = {name: item if isinstance(item, list) else self.read(item, f"{at}/{key}/{_escaped(name)}")
                               for name, item in schema[key].items()}
        return _translated(schema, _is_newer(draft))

    def _draft(self, at):
        half = self._document.get(at.split("/")[1])
        for holder in (half, self._document):
            declared = holder.get("$schema") if isinstance(holder, dict) else None
            if isinstance(declared, str):
                return next((draft for draft in DRAFTS if draft in declared), None)
        return None

    def _bases(self, at):
        """Return where references may start: a half that declares its draft goes first."""
        half = at.split("/")[1]
        own = self._document.get(half)
        bases = ["", "/" + half]
        return bases[::-1] if isinstance(own, dict) and "$schema" in own else bases

    def _reference(self, reference, at):
        if not isinstance(reference, str) or reference != "#" and not reference.startswith("#/"):
            raise ContractError(f"schema.json, {at[1:]}: only references within the schema, \"#/...\", are followed")
        for base in self._bases(at):
            pointer = base + unquote(reference[1:])
            found = _lookup(self._document, pointer) if pointer else None
            if found is not None:
                if pointer not in self.references:
                    self.references[pointer] = True  # until it is read: it may contain itself
                    self.references[pointer] = self.read(found, pointer)
                return pointer
        raise ContractError(f"schema.json, {at[1:]}: {reference!r} leads to nothing")


def _is_newer(draft):
    return draft in ("2019-09", "2020-12")


def _translated(schema, newer):
    if schema.get("prefixItems"):
        if "items" in schema:
            schema["additionalItems"] = schema["items"]
        schema["items"] = schema.pop("prefixItems")
    if schema.get("minContains") == 0:
        schema.pop("contains", None)
    for plain, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and plain in schema:  # draft-04's
            schema[exclusive] = schema.pop(plain)
    also = list(schema.get("allOf", ()))
    for key in ("dependentRequired", "dependentSchemas"):
        if key in schema:
            also.append({"dependencies": schema.pop(key)})
    if "$ref" in schema and newer:  # what stands beside it holds as well
        also.append({"$ref": schema.pop("$ref")})
    return {**schema, "allOf": also} if also else schema


def without_nulls(value):
    """Return a schema without the keys that are null. Some servers write them for what isn't there, and some providers
    refuse them; "default": null says no more. As the value of const, and among those of enum, null is meant."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if item is None and key != "const":
            continue
        if key in _OF_NAMES and isinstance(item, dict):
            item = {name: {} if part is None else without_nulls(part) for name, part in item.items()}
        elif key not in _DATA:
            item = without_nulls(item)
        kept[key] = item
    return kept


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
        return _inline(document, document["$refs"][reference], (*on_the_way, reference), left)
    schema = {}
    for key, item in value.items():
        if key in _BY_NAME and isinstance(item, dict):
            item = {name: _inline(document, part, on_the_way, left) for name, part in item.items()}
        elif key not in _DATA:
            item = _inline(document, item, on_the_way, left)
        schema[key] = item
    return schema


def _lookup(value, pointer):
    """Return what stands in a document at a pointer, None for nothing."""
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _escaped(name):
    return name.replace("~", "~0").replace("/", "~1")


def _without_aliases(names):
    if isinstance(names, list):
        return [_without_aliases(name) for name in names]
    return TYPE_ALIASES.get(names, names) if isinstance(names, str) else names
