class Complaint(Exception):
    """What ends the program, with the exit code that it ends with."""

    code = 1


class Failed(Complaint):
    """The work went wrong."""


class Invalid(Complaint):
    """The input or an argument is at fault."""

    code = 2


class Encrypted(Complaint):
    """The document is locked: a code of this unit's own, named in its model card."""

    code = 3
