"""Attacks a server as a client with a token may, until it is killed: see soak-server.sh.

Bodies that never end, followers that don't read, lists of everything: each is a connection that
costs its client nothing.

usage: soak-attack.py ADDRESS TOKEN
"""

import json
import socket
import sys
import threading
import time
import urllib.parse
import urllib.request

ADDRESS, TOKEN = sys.argv[1:]
HOST = urllib.parse.urlparse(ADDRESS)
LARGE = 15 << 20
REST = 12  # seconds between two signs of life of a slow client


def connect(request, headers=b""):
    """Return a connection on which a request was sent, to the end of its headers."""
    s = socket.create_connection((HOST.hostname, HOST.port), timeout=30)
    s.sendall(f"{request} HTTP/1.1\r\nHost: {HOST.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n".encode() + headers + b"\r\n")
    return s


def slow_body(path):
    """Send all but the last of a large body, and then a byte now and then."""
    with connect(f"POST {path}", b"Content-Type: application/json\r\nContent-Length: %d\r\n" % LARGE) as s:
        for _ in range((LARGE >> 16) - 1):
            s.sendall(bytes(1 << 16))
        for _ in range(10):
            time.sleep(REST)
            s.sendall(b" ")


def deaf_follower(run):
    """Follow a run, and read nothing of what it shows."""
    with connect(f"GET /v1/runs/{run}/events"):
        time.sleep(5 * REST)


def ask(path, body=None, headers=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(ADDRESS + path, body, headers), timeout=30) as answer:
        return json.load(answer)


def follow():
    for run in ask("/v1/runs?unit=hostile&limit=5")["runs"]:
        at_once(20, lambda: deaf_follower(run["id"]))


def list_all():
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"includeArtifacts": True, "pageSize": 100}}
    ask("/a2a/hostile", json.dumps(body).encode(), {"A2A-Version": "1.0"})
    time.sleep(1)


def quietly(act):
    """Do it, and a second later go on where it was refused or cut off, or there was nothing yet."""
    try:
        act()
    except (OSError, ValueError, LookupError):
        time.sleep(1)


def at_once(n, act):
    threads = [threading.Thread(target=quietly, args=(act,), daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ceaselessly(act):
    while True:
        quietly(act)


def slow_bodies(path):
    at_once(25, lambda: slow_body(path))


for attack in (follow, lambda: slow_bodies("/mcp"), lambda: slow_bodies("/a2a/good")):
    threading.Thread(target=ceaselessly, args=(attack,), daemon=True).start()
ceaselessly(list_all)
