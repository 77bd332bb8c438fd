import aod


def execute(payload: dict) -> dict:
    counted = aod.handoff("word-stats", {"text": payload["text"]})
    words = counted.output["words"]
    return {"words": words, "seconds": -(-60 * words // payload["words_per_minute"])}
