import html
import json
import re
import ssl
import urllib.error
import urllib.request

import aod

MOST = 10 << 20


def execute(payload: dict) -> dict:
    """Fetch a page. urllib finds the way out in HTTPS_PROXY and HTTP_PROXY, as most libraries do."""
    trust = ssl.create_default_context(cafile=aod.input_path(payload["ca"]) if "ca" in payload else None)
    try:
        with urllib.request.urlopen(payload["url"], timeout=20, context=trust) as answer:
            page = answer.read(MOST)
            status = answer.status
    except urllib.error.HTTPError as error:
        raise aod.CapsuleError(told(error)) from error
    except OSError as error:
        raise aod.CapsuleError(str(getattr(error, "reason", error))) from error
    found = re.search(rb"<title>(.*?)</title>", page, re.DOTALL | re.IGNORECASE)
    title = html.unescape(found[1].decode("utf-8", "replace")).strip() if found else ""
    return {"status": status, "title": title, "bytes": len(page)}


def told(error: urllib.error.HTTPError) -> str:
    """Return what a refusal says, or the status of another answer."""
    if error.headers.get_content_type() != "application/problem+json":
        return f"the page answers {error.code}"
    problem = json.load(error)
    return f"{problem['detail']}; {problem.get('hint', '')}"
