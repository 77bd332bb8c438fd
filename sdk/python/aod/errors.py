"""The exceptions that end a run cleanly: a message, and no traceback."""


class CapsuleError(Exception):
    """A failure that the capsule foresaw, for whoever called it.

    The name of the class becomes the error's type in the result, so a subclass is
    a type of its own. exit_code is that of the process, 1 to 255.
    """

    def __init__(self, message, *, exit_code=1):
        super().__init__(message)
        self.exit_code = exit_code


class ContractError(CapsuleError):
    """An input, a result or a file name that breaks the capsule's contract."""


class Rejected(CapsuleError):
    """The capsule has looked at what it is asked for, and won't do it.

    It ends the run as capsule_error whose error's type is "Rejected", also of a subclass: nobody
    tries it again, and whoever called it is told why.
    """


class HandoffError(CapsuleError):
    """A handoff that brought no result. Uncaught, it ends the run without a traceback.

    target is the unit that was called. Where the callee failed, category, kind and
    type say how, message is its own, and result is what it left: its id and, maybe,
    some files.
    """

    def __init__(self, message, *, target="", kind="", category="", type="", result=None, about=None):
        super().__init__(about or message)
        self.message = message
        self.target = target
        self.kind = kind
        self.category = category
        self.type = type
        self.result = result


class HandoffRefused(HandoffError):
    """A call that AOD didn't accept: nothing ran.

    code is the reason (forbidden, not_found, invalid_input, conflict, busy, ...),
    rule the policy that refused (grant, cycle, depth, calls, deadline, size) or "",
    status the HTTP status, findings what is wrong with the arguments, hint what to do.
    """

    def __init__(self, message, *, code="", rule="", status=0, findings=(), hint="", **rest):
        super().__init__(message, kind=code, **rest)
        self.code = code
        self.rule = rule
        self.status = status
        self.findings = list(findings)
        self.hint = hint


class HandoffUnavailable(HandoffError):
    """AOD can't be asked: there is no capsule API here, or it has been away too long."""


class AgentError(CapsuleError):
    """An agent that came to no answer.

    kind says why: max_turns, invalid_output, no_progress, context_length, refusal, budget,
    model (the gateway or the provider said no) or setup (something is missing before the
    first question). findings are what was wrong with the last answer; rule, hint and status
    are the gateway's. turns, usage and messages are what there was.
    """

    def __init__(self, kind, message, *, findings=(), rule="", hint="", status=0):
        super().__init__(f"{kind}: {message}; {hint}" if hint else f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.findings = list(findings)
        self.rule = rule
        self.hint = hint
        self.status = status
        self.turns = 0
        self.usage = {}
        self.messages = []


class MCPError(CapsuleError):
    """A server of tools that brought no result.

    server is its name, kind says why: setup (it isn't declared, or has no such tool), start,
    ended (it is dead, by itself or because it broke a bound), timeout, protocol (its answer is
    none), refused (it, or AOD, said no) or tool (the tool itself says that it failed).
    """

    def __init__(self, kind, message, *, server=""):
        super().__init__(f"{server}: {message}" if server else message)
        self.kind = kind
        self.message = message
        self.server = server


class Denied(CapsuleError):
    """A question that no person has answered, or that somebody answered with no.

    by is who said no, note their word on it; "" where nobody did.
    """

    def __init__(self, message, *, by="", note=""):
        super().__init__(f"{message}: {note}" if note else message)
        self.by = by
        self.note = note


class ToolError(Exception):
    """What a tool of an agent tells the model: a mistake that the model can mend."""
