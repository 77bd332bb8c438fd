import http.client
import ssl
import time
import urllib.request

ANY = ssl._create_unverified_context()


def execute(payload):
    """Read a stream to its end, from its beginning again whenever it breaks."""
    given = {"tries": 0, "broken": []}
    while True:
        given["tries"] += 1
        try:
            with urllib.request.urlopen(payload["url"], timeout=20, context=ANY if payload["url"].startswith("https") else None) as answer:
                if answer.read().endswith(b"done"):
                    return given
                given["broken"].append("the stream has ended early")
        except (OSError, http.client.HTTPException) as error:
            given["broken"].append(f"{type(error).__name__} {error}")
        time.sleep(0.1)
