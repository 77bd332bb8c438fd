import shutil

import aod
from aod.flow import AsyncFlow, End

from .nodes import Greet, Tabulate, report


async def execute(payload: dict) -> dict:
    greet, tabulate = Greet(max_retries=2, wait=0.5), Tabulate()
    greet >> tabulate
    tabulate - "chart" >> report
    tabulate - "enough" >> End()

    shared = {"names": payload["names"]}
    await AsyncFlow(greet).run_async(shared)
    return result(shared)


def result(shared):
    """Return what the flow has left in its state, with the chart as a file of the run."""
    output = {"greetings": shared["greetings"], "longest": 0}
    if "report" in shared:
        output["longest"] = shared["report"]["columns"][1]["max"]
        output["chart"] = "chart.svg"
        shutil.copyfile(shared["report"]["chart"], aod.output_path("chart.svg"))
    return output
