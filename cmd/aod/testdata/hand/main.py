import os
import socket

import aod


def reached(ways):
    """Return those of the addresses that take a connection."""
    return [way for way in ways if takes(*way.rsplit(":", 1))]


def takes(host, port):
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def execute(payload):
    paths = {os.path.basename(name): aod.input_path(name) for name in payload["files"]}
    files = {
        field: [paths[name] for name in names] if isinstance(names, list) else paths[names]
        for field, names in payload["fields"].items()
    }
    ways = reached(payload["ways"])
    result = aod.handoff(payload["unit"], payload["given"], files=files)
    return {"run": result.id, "output": result.output, "reached": ways + reached(payload["ways"])}
