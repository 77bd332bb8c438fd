import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import aod

ANY = ssl._create_unverified_context()


def by_python(url):
    """Ask as most Python programs do: urllib knows of proxies by the environment."""
    try:
        with urllib.request.urlopen(url, timeout=20, context=ANY if url.startswith("https") else None) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return str(error)


def by_go(url):
    return subprocess.run(["/capsule/reach", url], capture_output=True, text=True, check=False).stdout


def opened(authority, first=b""):
    """Return a connection for which the proxy was asked, and the status line of its answer."""
    conn = socket.create_connection(("127.0.0.1", 7070), timeout=20)
    conn.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        got = conn.recv(1)
        if not got:
            break
        answer += got
    if first:
        conn.sendall(first)
        conn.recv(1)
    return conn, answer.split(b"\r\n")[0].decode()


def hello(name):
    """Return the first message of a TLS client."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ANY.wrap_bio(into, out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()


def execute(payload):
    given = {"python": [by_python(url) for url in payload["urls"]], "go": [by_go(url) for url in payload["urls"]]}
    given["raw"] = [opened(authority)[1] for authority in payload["connects"]]
    if payload["many"]:
        first = hello(payload["many"].split(":")[0])
        for _ in range(1000):
            opened(payload["many"], first)[0].close()
        held = [opened(payload["many"], first)[0] for _ in range(32)]
        given["over"] = opened(payload["many"])[1]
        given["called"] = [aod.handoff("callee", {"name": str(n)}).output["greeting"] for n in range(2)]
        for conn in held:
            conn.close()
    return given
