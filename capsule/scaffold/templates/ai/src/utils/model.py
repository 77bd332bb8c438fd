"""Asks the model that agent.yaml names, through the gateway that the environment names
(OpenAI's chat completions). The gateway adds the real key: the capsule never has one."""

import http.client
import json
import os
import string
import urllib.error
import urllib.request
from pathlib import Path

CAPSULE = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 30
ANSWER_BYTES = 1 << 20


class Unavailable(Exception):
    """There is no model to ask, or it gave no answer."""


def ask(**values: str) -> str:
    """The model's answer to src/ai/task.md, filled with the values."""
    gateway = os.environ.get("OPENAI_BASE_URL")
    if not gateway:
        raise Unavailable("there is no gateway")
    settings = read_settings()
    if not settings.get("model"):
        raise Unavailable("agent.yaml names no model")
    body = {
        "model": settings["model"],
        "temperature": settings.get("temperature", 0),
        "max_tokens": settings.get("max_tokens", 50),
        "messages": [
            {"role": "system", "content": prompt("system.md", {})},
            {"role": "user", "content": prompt("task.md", values)},
        ],
    }
    return answer_of(post(gateway.rstrip("/") + "/chat/completions", body))


def read_settings() -> dict:
    import yaml  # costs time that only a question to a model pays

    return yaml.safe_load((CAPSULE / "agent.yaml").read_text(encoding="utf-8")) or {}


def prompt(name: str, values: dict) -> str:
    text = (CAPSULE / "src" / "ai" / name).read_text(encoding="utf-8")
    return string.Template(text).substitute(values)


def post(url: str, body: dict) -> bytes:
    key = os.environ.get("OPENAI_API_KEY", "none")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return response.read(ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        raise Unavailable(f"the gateway answered {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"the gateway can't be reached ({type(error).__name__})") from None


def answer_of(raw: bytes) -> str:
    try:
        answer = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise Unavailable("the gateway's answer holds no text")
    return answer
