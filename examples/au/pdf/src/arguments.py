"""What the program is told by flags. Messages show no values."""

import argparse
import re

from errors import Invalid

MAX_PAGES = 1000


class Parser(argparse.ArgumentParser):
    def error(self, message):  # it may have a value in it
        raise Invalid("Invalid arguments. Expected --layout, --max-pages, or --describe alone")


def parse(arguments):
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--layout", nargs="?", const="true", default="false", choices=("true", "false"))
    parser.add_argument("--max-pages", default="200")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[0-9]{1,4}", options.max_pages) or not 1 <= int(options.max_pages) <= MAX_PAGES:
        raise Invalid(f"Invalid --max-pages. Expected a whole number from 1 to {MAX_PAGES}")
    options.max_pages = int(options.max_pages)
    options.layout = options.layout == "true"
    return options
