"""The nodes of the flow: what each reads of the state, does, and writes to it."""

import csv
import os

import aod
from aod.flow import AsyncParallelBatchNode, Node, UnitNode, call


class Greet(AsyncParallelBatchNode):
    """Greets all at once, each by a run of hello; a name that hello refuses gets no greeting."""

    async def prep_async(self, shared):
        return shared["names"]

    async def exec_async(self, name):
        greeted = await call("hello", name=name)
        return greeted.output["greeting"]

    async def exec_fallback_async(self, name, exc):
        return f"({exc.kind})" if isinstance(exc, aod.HandoffError) else "(failed)"

    async def post_async(self, shared, names, greetings):
        shared["greetings"] = greetings


class Tabulate(Node):
    """Writes a table of the greetings, and decides whether it is worth a chart."""

    def prep(self, shared):
        return list(zip(shared["names"], shared["greetings"]))

    def exec(self, rows):
        path = os.path.join(aod.workspace(), "greetings.csv")
        with open(path, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["name", "length"])
            table.writerows((name, len(greeting)) for name, greeting in rows)
        return path

    def post(self, shared, rows, path):
        shared["table"] = path
        return "chart" if len(rows) > 1 else "enough"


report = UnitNode("csv-report", files={"table": "table"}, output_key="report")
