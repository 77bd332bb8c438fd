"""The bridge: a run, from /io/input.json to /io/output.json."""

import gc
import json
import os
import signal
import sys

from aod import invocation
from aod.contract import Contract
from aod.errors import CapsuleError, ContractError, Rejected
from aod.paths import capsule_dir, io_dir

MESSAGE_BYTES = 4096  # of an error's message in the result
CO_COROUTINE = 0x80  # of a code object's flags, as in inspect, which takes 10 ms more

TASK = "src/ai/task.md"

payload = None  # the input of the run, for prompts


class Terminated(BaseException):
    """SIGTERM arrived."""


def run():
    """Serve one run and end the process; see aod.run."""
    signal.signal(signal.SIGTERM, _terminate)
    _leave(serve(capsule_dir()))


def serve(capsule):
    """Serve one run of the capsule in that directory and return the exit code.

    Where AOD says that it may, it serves others after it, each when that is over.
    The logic is loaded before the input is asked for: a container that was started
    ahead of its run does all of that while nobody waits.
    """
    try:
        contract = Contract(capsule)
        execute = load_logic(capsule)
        run = invocation.wait(lambda: warm_up(capsule, execute))
        gc.enable()
        origin = _origin() if run else None
        document = work(contract, execute)
        while run and origin.end(run, document):  # the process may serve another run
            run = invocation.wait(lambda: None)
            document = work(contract, execute)
        write_output(document)
        return 0
    except BaseException as error:  # whatever it is, it becomes the run's outcome
        return _report(error)


def work(contract, execute):
    """Return the result (bytes) for the input that is in /io."""
    global payload
    payload = contract.check_input(read_input())
    return contract.check_output(call(execute, payload))


def load_logic(capsule):
    """Import src/main.py and return its execute function.

    The logic may import its neighbours as `utils` and as `src.utils`. A capsule that
    has a task for a model in its place is an agent without code.
    """
    source = os.path.join(capsule, "src")
    if not os.path.isfile(os.path.join(source, "main.py")):
        if os.path.isfile(os.path.join(capsule, TASK)):
            from aod import loop
            return loop.without_code()
        raise ContractError(f"src/main.py is missing, and so is {TASK}, with which an agent does without code")
    sys.path[:0] = [capsule, source]
    __import__("src.main")
    execute = getattr(sys.modules["src.main"], "execute", None)
    if not callable(execute):
        raise ContractError("src/main.py has no function execute(payload)")
    return execute


def warm_up(capsule, execute):
    """Do ahead of a run what it would else do itself, if it comes to that."""
    if getattr(getattr(execute, "__code__", None), "co_flags", 0) & CO_COROUTINE:
        __import__("asyncio")
    if os.path.exists(os.path.join(capsule, "tools.yaml")):  # it may call others
        __import__("aod.calls")
    if os.path.exists(os.path.join(capsule, "mcp.json")):
        __import__("aod.servers")
        __import__("aod.mcpchild")
    if _names_model(capsule):
        __import__("aod.loop")
    gc.collect()
    gc.freeze()  # what is there stays there: no collection has to look at it again


def _names_model(capsule):
    try:
        with open(os.path.join(capsule, "agent.yaml"), "rb") as file:
            return any(line.startswith((b"model:", b"models:")) for line in file)
    except OSError:
        return False


def read_input():
    """Return the payload's JSON document."""
    try:
        with open(os.path.join(io_dir(), "input.json"), "rb") as file:
            return file.read()
    except OSError as error:
        raise ContractError(f"the input can't be read: {error}", exit_code=2) from None


def call(execute, payload):
    """Return what execute returns, or what its coroutine does."""
    result = execute(payload)
    if not hasattr(result, "__await__"):
        return result
    import asyncio  # 40 ms that only an async execute pays

    async def finish():
        return await result

    return asyncio.run(finish())


def write_output(document):
    """Put the document (bytes) into place whole."""
    target = os.path.join(io_dir(), "output.json")
    draft = f"{target}.{os.getpid()}.tmp"
    with open(draft, "wb") as file:
        file.write(document)
    os.replace(draft, target)


def _origin():
    from aod.again import Origin  # is of no use to a process with one run
    return Origin()


def _terminate(_number, _frame):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated


def _report(error):
    """Put the error into the log and the result, and return the exit code."""
    if isinstance(error, Terminated):
        return 128 + signal.SIGTERM
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    if isinstance(error, SystemExit):
        return _report_exit(error)
    if isinstance(error, CapsuleError):
        _log(f"{type(error).__name__}: {_message(error)}")
    else:
        _log_traceback(error)
    _write_error(error)
    return _exit_status(getattr(error, "exit_code", 1))


def _report_exit(error):
    if error.code is None or error.code == 0:
        return 0
    if not isinstance(error.code, int):  # sys.exit("message")
        _log(_message(error))
    _write_error(error)
    return _exit_status(error.code)


def _exit_status(code):
    """Return the code if a process can end with it as a failure, else 1."""
    return code if isinstance(code, int) and 0 < code < 256 else 1


def _write_error(error):
    kind = Rejected if isinstance(error, Rejected) else type(error)
    detail = {"type": kind.__name__, "message": _message(error)}
    try:
        write_output(json.dumps({"error": detail}).encode())
    except OSError as failure:
        _log(f"the error can't be written: {failure}")


def _message(error):
    try:
        text = str(error)
    except Exception:  # a broken __str__ must not hide the failure itself
        text = ""
    whole = (text or type(error).__name__).encode("utf-8", "replace")
    return whole[:MESSAGE_BYTES].decode("utf-8", "ignore")


def _log_traceback(error):
    trace = error.__traceback__
    while trace and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    sys.__excepthook__(type(error), error.with_traceback(trace), trace)


def _log(line):
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # nobody listens any more, or the logic closed it


def _leave(status):
    if "aod.servers" in sys.modules:
        sys.modules["aod.servers"].end()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # closed, or taken away by the logic
    os._exit(status)
