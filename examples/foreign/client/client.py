#!/usr/bin/env python3
"""Asks an AOD orchestrator for one run: client.py URL CAPSULE INPUT

Prints the output and the first file on stdout, or the error on stderr.
"""

import json
import sys
import urllib.request


def main(url, capsule, payload):
    body = json.dumps({"capsule": capsule, "input": json.loads(payload), "files": {}}).encode()
    request = urllib.request.Request(url + "/execute", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:  # another status than 200 is an exception
        answer = json.load(response)
    if not answer["success"]:
        print("session", answer["session_id"], "failed:", answer["error"], file=sys.stderr)
        return 1
    print(json.dumps(answer["output"]))
    print("first file:", answer["files"][0])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
