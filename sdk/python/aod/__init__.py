"""The library of a Python capsule.

run.py is two lines, `import aod` and `aod.run()`; src/main.py has the logic:

    import aod

    def execute(payload: dict) -> dict:
        with open(aod.input_path(payload["source"])) as source:
            rows = source.readlines()
        if not rows:
            raise aod.CapsuleError("the file is empty")
        return {"lines": len(rows)}

run() reads /io/input.json, holds it against schema.json, calls execute, holds the
result against schema.json and writes /io/output.json. stdout and stderr are logs.

Other units that tools.yaml names are run by a handoff:

    report = aod.handoff("csv-report", {"title": "May"}, files={"source": path})
    with open(report.path("report")) as text: ...

Servers of tools that mcp.json names are called by the Model Context Protocol:

    found = aod.mcp("notes").call("search", query="ferry").text

A model works with them until its answer keeps the contract (src/ai has the instructions):

    return aod.agent().output

A graph of steps over one shared state is a flow, see aod.flow:

    fetch >> judge - "again" >> fetch
    aod.flow.Flow(fetch).run(shared)
"""

from aod.errors import (
    AgentError, CapsuleError, ContractError, Denied, HandoffError, HandoffRefused, HandoffUnavailable, MCPError,
    Rejected, ToolError,
)
from aod.paths import input_path, output_path, workspace

__all__ = [
    "AgentError",
    "CapsuleError",
    "ContractError",
    "Denied",
    "HandoffError",
    "HandoffRefused",
    "HandoffUnavailable",
    "MCPError",
    "Rejected",
    "ToolError",
    "agent",
    "artifact",
    "as_completed",
    "ask",
    "ask_person",
    "capsules",
    "handoff",
    "input_path",
    "log",
    "mcp",
    "messages",
    "output_path",
    "progress",
    "remember",
    "run",
    "run_info",
    "start",
    "workspace",
]

# What asks AOD is imported when it does, so that a capsule that never asks starts fast.


def __getattr__(name):
    """Import aod.flow when it is used."""
    if name == "flow":
        import importlib

        return importlib.import_module("aod.flow")
    raise AttributeError(f"module 'aod' has no attribute {name!r}")


def run():
    """Serve one run of the capsule whose run.py calls this, and end the process.

    Exit codes: 0 for a result; 1 for an exception or a result that breaks the
    contract; 2 for an input that breaks it; the logic's own for sys.exit(n);
    130 for SIGINT and 143 for SIGTERM. With 1, 2 and sys.exit(n) the file
    /io/output.json is {"error": {"type": ..., "message": ...}}.

    The process ends when execute has returned: threads and atexit handlers that
    the logic left behind are not waited for.
    """
    import gc

    gc.disable()  # what is loaded first stays: the bridge enables it before execute
    from aod import bridge  # here, so that logic under test needs none of it

    bridge.run()


def log(message):
    """Write a line to the run's log at once. Never log payloads or secrets."""
    import sys

    print(message, file=sys.stderr, flush=True)


def handoff(target, args=None, /, *, files=(), timeout=None, **more):
    """Run another unit and return its Result: id, output, files, path(field).

    args, with more as further ones, is the callee's input. files are copied to where
    AOD takes them from: either a mapping of args' fields to paths (or lists of paths),
    or a list of paths that args name by the path or its last part. timeout, in seconds
    or as "90s", bounds the callee's run; by default its own limit does.

    A callee that fails is a HandoffError. A call that isn't allowed, or breaks the
    callee's contract, is a HandoffRefused. Where AOD can't be reached the call is
    repeated for five minutes, and never runs twice; then it is HandoffUnavailable.
    """
    return start(target, args, files=files, timeout=timeout, **more).result()


def start(target, args=None, /, *, files=(), timeout=None, **more):
    """Do as handoff does, but return a Handoff at once: id, result(), done(), cancel()."""
    from aod import address, calls

    return calls.start(target, {**(args or {}), **more}, files, timeout, address.key())


def as_completed(handoffs, timeout=None):
    """Yield each of the Handoffs when it has ended, in the order of their ends.

    Raises TimeoutError when some are still running after so many seconds.
    """
    from aod import calls

    return calls.as_completed(handoffs, timeout)


def agent(
    task=None, *, system=None, values=None, tools=None, output=None, model=None, images=(),
    max_turns=None, parallel=None, repairs=None,
):
    """Have a model work with tools until its answer keeps the contract, and return an Answer:
    output, text, turns, usage, messages.

    task and system are texts, src/ai/task.md and system.md by default; $names in these
    are filled from values, the run's input by default, and $names in texts that are given
    from values that are given. tools are names of tools.yaml, all by default, or entries as
    there with "function"; "skill" stands for the skills of src/ai/skills. output is a JSON
    Schema of an object, by default schema.json's; str asks for text alone. images are names of
    files, or paths. The numbers are by default those of `loop` in agent.yaml, else 20, 8 and 2.

    Raises AgentError, whose kind says why there is no answer.
    """
    from aod import loop

    return loop.agent(task, system, values, tools, output, model, images, max_turns, parallel, repairs)


def ask(task=None, *, system=None, values=None, output=None, model=None, images=(), repairs=None):
    """Ask a model once, without tools, and return an Answer; see agent.

    Without an output the answer is its text. With one, a JSON Schema of an object, it is
    asked again `repairs` times while its answer breaks that.
    """
    from aod import loop

    return loop.agent(task, system, values, (), output or str, model, images, 1, 1, repairs)


def ask_person(text, *, kind="input", options=(), schema=None, timeout=None):
    """Ask people, wait for somebody's answer, and return a Reply: answer, option, by, note.

    kind is "input" for something that the code needs to know, "approval" for whether it may go
    on, "auth" for access that somebody has to give elsewhere. The answer is one of the options
    where there are some, an object where there is a JSON Schema of one, "approve" to an approval
    or auth without either, else a text. It is waited for so long: seconds or "90s", ten minutes
    by default, and never longer than the run's own time.

    Raises Denied when somebody says no, nobody answers in time, or nobody is there to ask. A
    run that is tried again gets the answer that was given before.
    """
    from aod import people

    return people.ask(text, kind, options, schema, timeout)


def messages(after=0, wait=None):
    """Return what was said to this run after the message with that number: a list of Messages, each
    with n, id, role, parts, metadata, text (its texts) and data (the first of its data).

    Where there is nothing yet it waits for so long, seconds or "20s", and returns an empty list
    then. Without a wait it looks once. The first message may be the one that the run began with.

        seen = 0
        for page in pages:
            for message in aod.messages(after=seen):
                seen = message.n
                ...
    """
    from aod import told

    return told.messages(after, wait)


def artifact(text=None, *, data=None, file=None, id=None, name=None, media_type=None, append=False, last=False):
    """Show a part of what the run gives while it goes on: a text, data (anything that JSON has), or
    a file of /io/output, which is taken as it is now.

    Parts with one id, by default the name, are one artifact. With append a part follows those before
    it, else it takes their place; last says that no more comes. What was shown stays with the run,
    whatever its end is, and isn't part of its result.
    """
    from aod import told

    told.artifact(text, data, file, id, name, media_type, append, last)


def remember(key, fn):
    """Return what fn() has returned in this run, JSON: it is called where nothing is kept under the key.

        rows = aod.remember("rows of May", lambda: slow(table))

    The result is kept when fn has returned, for all attempts of the run. Of two that are at the same key at
    once in a process one calls its fn, and the other waits; of two processes the first result counts, for both.
    A key is a text of 1 to 255 bytes; a run keeps 1,000 results of 1 MiB, and 16 MiB in all.
    """
    from aod import memory

    return memory.remember(key, fn)


def mcp(name):
    """Return a server of tools (Model Context Protocol): of that name in mcp.json, or the unit
    of kind mcp that tools.yaml grants under it.

    aod.mcp("notes").call("search", {"query": "ferry"}, timeout="10s") returns what the tool
    did: text, structured, content. tools() lists what there is. The server is started by the
    first call, in a process beside this one, and ends with the run. Whatever keeps it from
    answering is an MCPError, and so is a tool that says that it failed. A server that is dead
    stays dead.
    """
    from aod import servers

    return servers.get(name)


def progress(percent=None, step=None, message=None):
    """Tell whoever watches the run how far it is: 0 to 100, and two short texts.

    Progress may get lost. This never raises, and takes a second at the very most.
    """
    from aod import watch

    watch.progress(percent, step, message)


def capsules():
    """Return what this run may call: {name: {"description", "input", "output"}}."""
    from aod import watch

    return watch.capsules()


def run_info():
    """Return what AOD knows of this run: run, root, parent, unit, depth, deadline."""
    from aod import watch

    return watch.run_info()
