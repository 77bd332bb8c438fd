"""The bridge: files in /io, both sides of the contract, and how a failure is told."""

import json
import sys

import jsonschema

from src.main import execute


def main():
    with open("schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    with open("/io/input.json", encoding="utf-8") as f:
        payload = json.load(f)
    try:
        jsonschema.validate(payload, schema["input"])
        result = execute(payload)
        jsonschema.validate(result, schema["output"])
    except jsonschema.ValidationError as error:
        print("contract:", error.message, file=sys.stderr)
        return 2
    with open("/io/output.json", "w", encoding="utf-8") as f:
        json.dump(result, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
