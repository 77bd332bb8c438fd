"""Asks a model, for capsules and graphs that know what they want to ask, and nothing of models."""

import aod


def execute(payload):
    schema = payload.get("schema")
    answer = aod.ask(
        payload["prompt"], system=payload["system"], output=schema,
        model=payload.get("model"), images=payload["images"],
    )
    used = {"input": answer.usage["input_tokens"], "output": answer.usage["output_tokens"]}
    result = {"text": answer.text, "tokens": used}
    return result if schema is None else {**result, "json": answer.output}
