#!/usr/bin/env python3
"""An agent of the HTTP contract: it turns a text round. agent.py [PORT]

The last event of its stream names no task_type.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request_id = task.get("request_id")
        if not request_id or task.get("task_type") != "TURN_ROUND":
            self.send(400, {"request_id": request_id, "ok": False, "outputs": {}, "warnings": ["not a task of this agent"]})
            return
        text = (task.get("inputs") or {}).get("text", "")
        answer = {"request_id": request_id, "status": "ok", "outputs": {"text": text[::-1]}}
        if self.path == "/agents/run/stream":
            self.stream(("started", {"request_id": request_id}), ("progress", {"percent": 50}), ("final", answer))
        else:
            self.send(200, answer)

    def send(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for name, data in events:
            self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Agent)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
