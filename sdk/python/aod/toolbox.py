"""The calls of one turn: run at once, answered in their order."""

import collections
import queue
import sys
import threading
import time

from aod import calls
from aod.errors import CapsuleError, ContractError, HandoffError, HandoffUnavailable, MCPError, ToolError
from aod.judged import told
from aod.tools import clean, clip, listed

ERROR_BYTES = 4 << 10  # of what the model is told of a mistake
RESULT_BYTES = 32 << 10  # of a result; the whole is kept in a file
MOST_CALLS = 64  # in one turn


class Toolbox:
    """Runs the calls of a turn."""

    def __init__(self, tools, files, parallel, place):
        self._tools = {tool.name: tool for tool in tools}
        self._files = files
        self._parallel = parallel
        self._place = place
        self.images = []  # of the results, in the order of the calls

    def run(self, asked, results):
        """Return (call, text, whether it went wrong) of each call, in their order.

        results has what is known before: by index, (text, whether it is wrong).
        """
        for group in self._groups(asked, results):
            self._run_group(group, results)
        return [(call, *results[index]) for index, call in enumerate(asked)]

    def _groups(self, asked, results):
        """Yield what runs at once: a sequential call alone, the others between two of those."""
        group = []
        for index, call in enumerate(asked):
            tool = self._tools.get(call.name)
            wrong = self._refused(call, tool, index)
            if index in results or wrong:
                results.setdefault(index, (wrong, True))
                continue
            if tool.sequential and group:
                yield group
                group = []
            group.append((index, tool, call))
            if tool.sequential:
                yield group
                group = []
        yield group

    def _refused(self, call, tool, index):
        if tool is None:
            return clip(f"there is no tool {call.name[:100]!r} now; there are: {', '.join(self._tools) or 'none'}", ERROR_BYTES)
        if index >= MOST_CALLS:
            return f"it was not run: {MOST_CALLS} calls in one turn are enough"
        return clip(call.problem, ERROR_BYTES) if call.problem else None

    def _run_group(self, group, results):
        jobs = []
        for index, tool, call in group:
            try:
                jobs.append((index, tool, tool.prepare(call.arguments, self._files)))
            except Exception as error:
                if ends_the_run(error):
                    raise
                results[index] = told_error(error), True
        ended = _together(jobs, self._parallel, self._place)
        for index, tool, _ in jobs:
            results[index] = self._told(tool, ended[index])

    def _told(self, tool, outcome):
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            text = clean(tool.told(outcome, self._files))
            self.images += tool.images(outcome)
        except Exception as error:
            return told_error(error), True
        whole = len(text.encode())
        if whole <= RESULT_BYTES:
            return text, False
        name = self._files.keep(tool.name, text)
        return clip(text, RESULT_BYTES) + f"\n[cut: it has {whole} bytes; the whole is the file {name}]", False


def _together(jobs, parallel, place):
    """Run each (index, tool, arguments) in a thread, so many at a time; return what came, by index.

    What takes too long isn't waited for, and what ends the run is raised at once.
    """
    came, waiting, ends, results = queue.SimpleQueue(), collections.deque(jobs), {}, {}
    while waiting or ends:
        while waiting and len(ends) < parallel:
            index, tool, arguments = waiting.popleft()
            ends[index] = time.monotonic() + (tool.limit or threading.TIMEOUT_MAX / 2), tool.limit
            threading.Thread(target=_run, args=(came, index, tool, arguments, place), daemon=True).start()
        try:
            index, outcome = came.get(timeout=max(min(ends.values())[0] - time.monotonic(), 0))
        except queue.Empty:
            index = min(ends, key=ends.get)
            outcome = ToolError(f"it had no result after {ends[index][1]:g} s")
        if ends.pop(index, None) is None:
            continue  # it wasn't waited for any longer
        if isinstance(outcome, BaseException) and ends_the_run(outcome):
            raise outcome
        results[index] = outcome
    return results


def _run(came, index, tool, arguments, place):
    calls.place.enter(f"{place}/call:{index + 1}")
    try:
        came.put((index, tool.run(arguments)))
    except BaseException as error:  # whatever it is, the agent's thread decides what it means
        came.put((index, error))


def ends_the_run(error):
    """Whether it isn't the model's to mend: the capsule's own word, or the end of everything."""
    if isinstance(error, (HandoffError, ContractError, MCPError)):
        return isinstance(error, HandoffUnavailable)
    return isinstance(error, CapsuleError) or not isinstance(error, Exception)


def told_error(error):
    """Return what the model is told of an error; what only a programmer can mend is logged, too."""
    if isinstance(error, HandoffError):
        findings = [told(finding) for finding in getattr(error, "findings", ())]
        return clip(listed(str(error), findings) if findings else str(error), ERROR_BYTES)
    if isinstance(error, ToolError):
        return clip(str(error), ERROR_BYTES)
    if not isinstance(error, (ContractError, MCPError)):
        sys.__excepthook__(type(error), error, error.__traceback__)
    return clip(f"{type(error).__name__}: {error}", ERROR_BYTES)
