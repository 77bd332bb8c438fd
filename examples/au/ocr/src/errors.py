class Invalid(Exception):
    """The input or an argument is at fault: exit code 2."""


class Failed(Exception):
    """The work is: exit code 1."""
