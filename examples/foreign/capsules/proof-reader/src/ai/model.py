"""The model: chat completions at OPENAI_API_BASE, or by the script in this image."""

import os

import requests
import yaml

from src.ai import scripted


def ask(messages, tools):
    with open("agent.yaml", encoding="utf-8") as f:
        agent = yaml.safe_load(f)
    response = requests.post(
        base() + "/chat/completions",
        json={"model": agent["model"], "temperature": agent["temperature"], "messages": messages, "tools": tools},
        headers={"Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
        timeout=60,
    )
    response.raise_for_status()
    return response.json()["choices"][0]["message"]


def base():
    return os.environ.get("OPENAI_API_BASE") or scripted.serve()
