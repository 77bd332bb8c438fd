import base64

from .mcp import Client


def execute(payload: dict) -> dict:
    client = Client()
    tools = sorted(tool["name"] for tool in client.ask("tools/list")["tools"])
    greeting = client.call("greet", {"name": payload["reader"]})["structuredContent"]["greeting"]
    table = base64.b64encode(payload["table"].encode()).decode()
    report = client.call("describe_table", {"table": f"data:text/csv;name=table.csv;base64,{table}"})
    return {
        "tools": tools,
        "greeting": greeting,
        "rows": report["structuredContent"]["rows"],
        "files": [part["uri"] for part in report["content"] if part["type"] == "resource_link"],
    }
