"""A capsule's contract, kept: its input on the way in, its result on the way out."""

import json
import os

from aod.errors import ContractError

MAX_DEPTH = 500  # of a result; past it, it most likely contains itself


class Contract:
    """Both halves of a capsule's schema.json. Defaults are filled in on input only.

    Where AOD says that it validates (AOD_VALIDATES=1), it holds the input against the
    schema before there is a container, and the result after it: there is one judge.
    """

    def __init__(self, capsule):
        document = _read(os.path.join(capsule, "schema.json"))
        self._input = self._output = _nothing_wrong
        self._fill = None
        if os.environ.get("AOD_VALIDATES") != "1":
            from aod import schema

            halves = [schema.Half(schema.parse(document), stage) for stage in ("input", "output")]
            self._input, self._output = (half.problem for half in halves)
        if _may_have_defaults(document):
            from aod import schema

            read = schema.document(schema.parse(document), "input")
            self._fill = lambda payload: schema.fill(read, "input", payload)

    def check_input(self, document):
        """Return the payload that a JSON document (bytes) holds, with its defaults."""
        try:
            payload = json.loads(document, parse_constant=_refuse_constant)
        except RecursionError:
            raise ContractError("the input is nested too deeply", exit_code=2) from None
        except ValueError as error:
            raise ContractError(f"the input is not JSON: {error}", exit_code=2) from None
        problem = self._input(payload)
        if problem:
            raise ContractError(problem, exit_code=2)
        return self._fill(payload) if self._fill else payload

    def check_output(self, result):
        """Return the result as a JSON document (bytes)."""
        document, plain = _encode(result)
        problem = self._output(plain)
        if problem:
            raise ContractError(problem)
        return document


def _nothing_wrong(_value):
    return None


def _may_have_defaults(document):
    """Whether the JSON document (bytes) may hold the word, perhaps written with escapes."""
    return b"default" in document or b"\\u" in document


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ContractError(f"schema.json: {error}") from None


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
                return f"{where}: the key {strange[0]!r} isn't a string"
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
    raise ValueError(f"{name} isn't JSON")
