"""The steps, looked at before the first of them runs."""

import aod

from .references import references

RESERVED = {"inputs", "files"}


def named(steps):
    """Return the steps with a name for each, once every reference is known to lead back."""
    known, plan = set(RESERVED), []
    for number, step in enumerate(steps, start=1):
        name = step.get("save_as", f"step{number}")
        for reference in references(step["args"]):
            if reference.root not in known:
                raise aod.CapsuleError(f"step {number}: {reference} is no input, no file and no earlier step")
        if name in known:
            raise aod.CapsuleError(f"step {number}: the name {name} is taken")
        known.add(name)
        plan.append({**step, "save_as": name})
    return plan
