import os
import shutil

DIRECTORY = os.path.join(os.environ.get("AOD_IO_DIR", "/io"), "handoff", "outgoing")


class Outgoing:
    """The files that were handed over, each copied once, under names of their own."""

    def __init__(self):
        self._names = {}  # path -> name in DIRECTORY

    def name(self, path):
        """Return the name by which a callee is told of the file."""
        if path not in self._names:
            self._names[path] = self._copy(path)
        return self._names[path]

    def _copy(self, path):
        name = os.path.join(str(len(self._names) + 1), os.path.basename(path))
        target = os.path.join(DIRECTORY, name)
        os.makedirs(os.path.dirname(target))
        shutil.copyfile(path, target)
        return name
