"""A weather service that wants a key: python3 service.py --port 8077 --key FILE."""

import argparse
import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

DEGREES = {"Oslo": 4, "Rome": 19}


class Service(BaseHTTPRequestHandler):
    """Answers GET /v1/forecast?city=NAME for whoever shows the key."""

    key = ""

    def do_GET(self) -> None:  # the name that http.server wants
        """Answer one request."""
        asked = urlsplit(self.path)
        if not hmac.compare_digest(self.headers.get("X-Weather-Key", ""), self.key):
            return self.say(401, {"error": "no key, or a wrong one"})
        if asked.path != "/v1/forecast":
            return self.say(404, {"error": "there is /v1/forecast"})
        city = parse_qs(asked.query).get("city", [""])[0]
        if city not in DEGREES:
            return self.say(404, {"error": "nobody knows the city"})
        return self.say(200, {"city": city, "degrees": DEGREES[city]})

    def say(self, status: int, answer: dict) -> None:
        """Send an answer."""
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing: a log would have what was asked."""


def main() -> None:
    """Serve until somebody ends it."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, default=8077)
    flags.add_argument("--key", required=True, help="a file with the key")
    given = flags.parse_args()
    Service.key = Path(given.key).read_text(encoding="utf-8").strip()
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Service)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
