"""Calls of other capsules, through the orchestrator."""

import os
import uuid

import requests

OUTGOING, INCOMING = "/io/handoff/outgoing", "/io/handoff/incoming"
SESSION = os.environ.get("SESSION_ID") or str(uuid.uuid4())


def call(target, args):
    response = requests.post(
        os.environ["ORCHESTRATOR_URL"] + "/handoff",
        json={"target": target, "args": args, "session_id": SESSION, "caller": "proof-reader"},
        timeout=60,
    )
    response.raise_for_status()
    return response.json()
