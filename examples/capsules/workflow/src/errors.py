import aod

MAX_FINDINGS = 3


class StepFailed(aod.CapsuleError):
    """A step that ended the chain."""

    def __init__(self, number, steps, error):
        step = steps[number - 1]
        what = f"step {number} of {len(steps)}, {step['capsule']} as {step['save_as']}"
        before = ", ".join(each["save_as"] for each in steps[: number - 1]) or "nothing"
        super().__init__(f"{what} (finished before: {before}): {reason(error)}")


def reason(error):
    """Return an error's message, and what was wrong with the arguments if that was it."""
    findings = getattr(error, "findings", [])[:MAX_FINDINGS]
    return "; ".join([str(error), *(f"{found.get('pointer') or '(root)'}: {found['message']}" for found in findings)])
