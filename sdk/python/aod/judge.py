"""What a value breaks of a schema, where no AOD judges it: the same as AOD would say, or nothing
at all. What it can't judge so is refused before the first value."""

import fractions
import operator

from aod.errors import ContractError
from aod.formats import FORMATS
from aod.patterns import compiled
from aod.schema import DRAFTS

KINDS = {
    "string": str, "boolean": bool, "object": dict, "array": list, "null": type(None),
    "number": (int, float), "integer": (int, float),
}

_SINCE = {"prefixItems": "2020-12", "dependentRequired": "2019-09", "dependentSchemas": "2019-09"}
_FIELDS = {"patternProperties", "additionalProperties"}  # judged with the properties
_BEYOND = (
    "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", "$dynamicAnchor",
    "$recursiveAnchor", "$anchor", "maxContains",
)
_SHAPES = (
    (dict, "properties patternProperties definitions $defs dependencies dependentRequired dependentSchemas"),
    (list, "enum required allOf anyOf oneOf prefixItems"),
    (str, "$ref pattern format"),
    ((int, float), "minimum maximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties"),
    ((dict, bool), "additionalProperties additionalItems propertyNames contains not if then else"),
    ((dict, bool, list), "items"), ((str, list), "type"), (bool, "uniqueItems"),
)


def check(schema, draft, where, root):
    """Raise a ContractError for a schema that can't be judged as AOD would."""
    def refuse(why):
        raise ContractError(f"schema.json, {where}: {why}")

    if not isinstance(schema, (dict, bool)):
        refuse("it isn't a schema")
    if isinstance(schema, bool):
        return
    for shape, keys in _SHAPES:
        for key in keys.split():
            if key in schema and not _is(schema[key], shape):
                refuse(f"{key} has a value of the wrong type")
    for key in schema:
        since = _SINCE.get(key)
        if key in _BEYOND or since and draft and DRAFTS.index(draft) < DRAFTS.index(since):
            refuse(f"{key} is nothing that contracts of this draft have")
        if key in ("$id", "id") and not root:
            refuse("an id within a contract would change what its references mean")
    for name in schema.get("type", ()) if isinstance(schema.get("type"), list) else [schema.get("type", "null")]:
        if not isinstance(name, str) or name not in KINDS:
            refuse(f"{name!r} isn't a type")
    if draft == "2020-12" and (isinstance(schema.get("items"), list) or "additionalItems" in schema):
        refuse('it has "items" as drafts before 2020-12 had them')
    if schema.get("multipleOf", 1) <= 0:
        refuse("multipleOf must be greater than 0")
    if schema.get("minContains", 1) not in (0, 1):
        refuse("minContains can't be counted")
    for key in ("exclusiveMinimum", "exclusiveMaximum"):
        if not _is(schema.get(key, 0), (int, float, bool) if draft == "draft-04" else (int, float)):
            refuse(f"{key} isn't a number")
    for pattern in [*schema.get("patternProperties", ()), *([schema["pattern"]] if "pattern" in schema else ())]:
        compiled(pattern)


class Judge:
    """Judges values by the schemas of a document, as aod.schema reads one."""

    def __init__(self, document, file_problem):
        self._references = document["$refs"]
        self._file_problem = file_problem

    def wrong(self, schema, value, where):
        """Yield what a value breaks, each beginning with where."""
        if schema is False:
            yield f"{where} is not allowed"
        if not isinstance(schema, dict):
            return
        if "$ref" in schema:
            yield from self.wrong(self._references[schema["$ref"]], value, where)
            return
        for key, (kind, holds, says) in _LIMITS.items():
            if key in schema and _is(value, kind) and not holds(value if kind is _NUMBER else len(value), schema[key]):
                yield f"{where} must {says.format(schema[key])}"
        for key, (kind, rule) in _RULES.items():
            there = key in schema or key == "properties" and not _FIELDS.isdisjoint(schema)
            if there and (kind is None or _is(value, kind)):
                yield from rule(self, schema, value, where)

    def holds(self, schema, value):
        """Report whether a value breaks nothing."""
        return next(self.wrong(schema, value, ""), None) is None

    def _type(self, schema, value, where):
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, KINDS[name]) and (name != "integer" or value % 1 == 0) for name in names):
            yield f"{where} must be {' or '.join(names)}"

    def _enum(self, schema, value, where):
        if _key(value) not in map(_key, schema["enum"]):
            yield f"{where} must be one of {schema['enum']}"

    def _const(self, schema, value, where):
        if _key(value) != _key(schema["const"]):
            yield f"{where} must be {schema['const']!r}"

    def _format(self, schema, value, where):
        name = schema["format"]
        problem = self._file_problem(value) if name == "file_path" else None
        if problem:
            yield f"{where}: {problem}"
        if name in FORMATS and not FORMATS[name](value):
            yield f"{where} must be {name}"

    def _pattern(self, schema, value, where):
        if not compiled(schema["pattern"]).search(value):
            yield f"{where} must match pattern {schema['pattern']}"

    def _multiple(self, schema, value, where):
        if _exact(value) % _exact(schema["multipleOf"]):
            yield f"{where} must be a multiple of {schema['multipleOf']}"

    def _unique(self, schema, value, where):
        if schema["uniqueItems"] and len(set(map(_key, value))) < len(value):
            yield f"{where} must contain unique items"

    def _list(self, schema, value, where):
        items, rest = schema.get("items", True), True
        if isinstance(items, list):
            rest = schema.get("additionalItems", True)
        for index, item in enumerate(value):
            own = items if not isinstance(items, list) else items[index] if index < len(items) else rest
            yield from self.wrong(own, item, f"{where}[{index}]")

    def _contains(self, schema, value, where):
        if not any(self.holds(schema["contains"], item) for item in value):
            yield f"{where} must contain an item of the form that one must have"

    def _required(self, schema, value, where):
        missing = [name for name in schema["required"] if name not in value]
        if missing:
            yield f"{where} must contain {missing} properties"

    def _fields(self, schema, value, where):
        fields = schema.get("properties", {})
        patterns = [(compiled(text), part) for text, part in schema.get("patternProperties", {}).items()]
        extra = []
        for name in [*(name for name in fields if name in value), *(name for name in value if name not in fields)]:
            parts = [fields[name]] if name in fields else []
            parts += [part for pattern, part in patterns if pattern.search(name)]
            if not parts and schema.get("additionalProperties") is False:
                extra.append(name)
            for part in parts or [schema.get("additionalProperties", True)] if name not in extra else ():
                yield from self.wrong(part, value[name], f"{where}.{name}")
        if extra:
            yield f"{where} must not contain {extra} properties"

    def _names(self, schema, value, where):
        for name in value:
            yield from self.wrong(schema["propertyNames"], name, f"{where}: the name {name!r}")

    def _dependencies(self, schema, value, where):
        for name, wanted in schema["dependencies"].items():
            if name in value:
                yield from self.wrong({"required": wanted} if isinstance(wanted, list) else wanted, value, where)

    def _all(self, schema, value, where):
        for part in schema["allOf"]:
            yield from self.wrong(part, value, where)

    def _any(self, schema, value, where):
        if not any(self.holds(part, value) for part in schema["anyOf"]):
            yield f"{where} matches none of the alternatives (anyOf)"

    def _one(self, schema, value, where):
        if sum(self.holds(part, value) for part in schema["oneOf"]) != 1:
            yield f"{where} must match exactly one of the alternatives (oneOf)"

    def _not(self, schema, value, where):
        if self.holds(schema["not"], value):
            yield f"{where} is of a form that the contract excludes"

    def _if(self, schema, value, where):
        yield from self.wrong(schema.get("then" if self.holds(schema["if"], value) else "else", True), value, where)


_NUMBER = (int, float)
_RULES = {
    "type": (None, Judge._type), "enum": (None, Judge._enum), "const": (None, Judge._const),
    "format": (str, Judge._format), "pattern": (str, Judge._pattern), "multipleOf": (_NUMBER, Judge._multiple),
    "uniqueItems": (list, Judge._unique), "items": (list, Judge._list), "contains": (list, Judge._contains),
    "required": (dict, Judge._required), "properties": (dict, Judge._fields),
    "propertyNames": (dict, Judge._names), "dependencies": (dict, Judge._dependencies),
    "allOf": (None, Judge._all), "anyOf": (None, Judge._any), "oneOf": (None, Judge._one),
    "not": (None, Judge._not), "if": (None, Judge._if),
}
_LIMITS = {
    "minLength": (str, operator.ge, "have at least {} characters"), "maxLength": (str, operator.le, "have at most {} characters"),
    "minItems": (list, operator.ge, "have at least {} items"), "maxItems": (list, operator.le, "have at most {} items"),
    "minProperties": (dict, operator.ge, "have at least {} fields"), "maxProperties": (dict, operator.le, "have at most {} fields"),
    "minimum": (_NUMBER, operator.ge, "be bigger than or equal to {}"), "maximum": (_NUMBER, operator.le, "be smaller than or equal to {}"),
    "exclusiveMinimum": (_NUMBER, operator.gt, "be bigger than {}"), "exclusiveMaximum": (_NUMBER, operator.lt, "be smaller than {}"),
}


def _is(value, kind):
    """Report whether a value of JSON is of a kind; true and false aren't numbers."""
    if isinstance(value, bool):
        return kind is bool or isinstance(kind, tuple) and bool in kind
    return isinstance(value, kind)


def _key(value):
    """Return what is equal where values are: 1 is 1.0, and not true."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((name, _key(item)) for name, item in value.items())
    return (list, *map(_key, value)) if isinstance(value, list) else value


def _exact(number):
    """Return a number as it is written: 0.1 is a tenth."""
    return fractions.Fraction(repr(number) if isinstance(number, float) else number)
