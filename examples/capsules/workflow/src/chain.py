import os
import shutil

import aod

from .outgoing import Outgoing
from .references import File, Returned, resolve, with_names


class Chain:
    """What the steps so far have returned."""

    def __init__(self, inputs, files):
        self.results = {}
        self.files = []
        self._scope = {"inputs": inputs, "files": [File(aod.input_path(name)) for name in files]}
        self._outgoing = Outgoing()

    def run(self, step):
        """Make one step's call; what keeps it from a result is a CapsuleError."""
        args = with_names(resolve(step["args"], self._scope), self._outgoing.name)
        if "map" in step:
            args = aod.handoff("translator", data=args, map=step["map"]).output["data"]
        name, result = step["save_as"], aod.handoff(step["capsule"], args)
        self._scope[name] = Returned(result)
        self.results[name] = result.output
        self.files += [deliver(name, file) for file in result.files]
        aod.log(f"{name}: {step['capsule']} is done")


def deliver(directory, file):
    """Make a callee's file one of the result's, and return its name."""
    name = os.path.join(directory, file.name)
    shutil.copyfile(file.path, aod.output_path(name))
    return name
