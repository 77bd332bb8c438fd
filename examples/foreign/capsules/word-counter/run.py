"""The bridge: files in /io, and both sides of the contract."""

import json

import jsonschema

from src.main import execute


def main():
    with open("schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    with open("/io/input.json", encoding="utf-8") as f:
        payload = json.load(f)
    jsonschema.validate(payload, schema["input"])
    result = execute(payload)
    jsonschema.validate(result, schema["output"])
    with open("/io/output.json", "w", encoding="utf-8") as f:
        json.dump(result, f)


if __name__ == "__main__":
    main()
