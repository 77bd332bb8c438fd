import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import aod

WEATHER = "http://127.0.0.1:7070/upstream/weather"


def execute(payload: dict) -> dict:
    try:
        with urlopen(f"{WEATHER}/forecast?{urlencode({'city': payload['city']})}", timeout=5) as answer:
            told = json.load(answer)
    except HTTPError as error:
        told = json.load(error)
        raise aod.CapsuleError(told.get("detail") or told["error"]) from None
    return {"text": f"{told['city']}: {told['degrees']} degrees"}
