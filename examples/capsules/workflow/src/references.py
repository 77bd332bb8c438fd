"""Texts that stand for something else, such as $NAME.output.FIELD."""

import aod

SHOWN = 100  # characters of a reference in a message


class File:
    """A file in the sandbox, where a reference leads to one."""

    def __init__(self, path):
        self.path = path


class Returned:
    """What a step returned: its output, and the files that the output's fields name."""

    def __init__(self, result):
        self._result = result

    def step_into(self, path):
        if path[0] == "output":
            return self._result.output, path[1:]
        if path[0] == "files" and len(path) > 1:
            try:
                return File(self._result.path(".".join(path[1:]))), []
            except KeyError:
                return None
        return None


class Reference:
    def __init__(self, text):
        self._text = text
        self.root, *self._path = text[1:].split(".")

    def __str__(self):
        return self._text[:SHOWN]

    def value(self, scope):
        value, path = scope[self.root], self._path
        while path or isinstance(value, Returned):
            found = step_into(value, path)
            if found is None:
                raise aod.CapsuleError(f"{self} stands for nothing")
            value, path = found
        return value


def step_into(value, path):
    """Return what lies one step down and the path from there; None if nothing does."""
    if not path:
        return None
    if isinstance(value, Returned):
        return value.step_into(path)
    if isinstance(value, dict) and path[0] in value:
        return value[path[0]], path[1:]
    if isinstance(value, list) and path[0].isdecimal() and len(path[0]) < 10 and int(path[0]) < len(value):
        return value[int(path[0])], path[1:]
    return None


def references(args):
    """Yield every reference in a JSON value."""
    if is_reference(args):
        yield Reference(args)
    elif isinstance(args, (dict, list)):
        for item in args.values() if isinstance(args, dict) else args:
            yield from references(item)


def resolve(args, scope):
    """Return a JSON value with what its references stand for.

    What they stand for is foreign: texts in it are texts, whatever they begin with.
    """
    if is_reference(args):
        return Reference(args).value(scope)
    if isinstance(args, str):
        return args.replace("$$", "$", 1) if args.startswith("$$") else args
    return each(args, lambda item: resolve(item, scope))


def with_names(value, hand_over):
    """Return the value with hand_over(path) in the place of each File."""
    if isinstance(value, File):
        return hand_over(value.path)
    return each(value, lambda item: with_names(item, hand_over))


def is_reference(value):
    return isinstance(value, str) and value.startswith("$") and not value.startswith("$$")


def each(value, change):
    if isinstance(value, dict):
        return {name: change(item) for name, item in value.items()}
    if isinstance(value, list):
        return [change(item) for item in value]
    return value
