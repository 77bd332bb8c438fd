import aod

from .chain import Chain
from .errors import StepFailed
from .plan import named


def execute(payload: dict) -> dict:
    steps = named(payload["steps"])
    chain = Chain(payload["inputs"], payload["files"])
    for number, step in enumerate(steps, start=1):
        aod.progress(percent=100 * (number - 1) / len(steps), step=step["save_as"])
        try:
            chain.run(step)
        except aod.CapsuleError as error:
            raise StepFailed(number, steps, error) from None
    return {"results": chain.results, "files": chain.files}
