"""What the program is told by flags and by $MODEL_PATH. Messages show no values."""

import argparse
import os
import re

from errors import Invalid
from tesseract import Model, installed


class Parser(argparse.ArgumentParser):
    def error(self, message):  # it may have a value in it
        raise Invalid("Invalid arguments. Expected --lang, --min-confidence, --model-path, or --describe alone")


def parse(arguments, environment):
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--lang")
    parser.add_argument("--min-confidence", default="0")
    parser.add_argument("--model-path", default=environment.get("MODEL_PATH") or None)
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[0-9]{1,2}|100", options.min_confidence):
        raise Invalid("Invalid --min-confidence. Expected a whole number from 0 to 100")
    options.min_confidence = int(options.min_confidence)
    options.model = model_of(options)
    return options


def model_of(options):
    if options.model_path is None:
        return language(options.lang or "eng")
    if options.lang is not None:
        raise Invalid("Both --lang and a model are given. Expected one of the two")
    return model_file(options.model_path)


def language(lang):
    if not re.fullmatch(r"[a-z_]{3,20}(\+[a-z_]{3,20}){0,4}", lang):
        raise Invalid("Invalid --lang. Expected a name such as eng, or several joined by +")
    known = installed()
    if not set(lang.split("+")) <= known:
        raise Invalid("Unknown --lang. The image has " + ", ".join(sorted(known)))
    return Model(lang, None)


def model_file(path):
    directory, name = os.path.split(path)
    if ".." in path.split("/"):
        raise Invalid("Path traversal in the model's path. Expected a path without ..")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}\.traineddata", name):
        raise Invalid("Invalid model's path. Expected a file NAME.traineddata")
    if not os.path.isfile(path):
        raise Invalid("Model file not found")
    return Model(name.removesuffix(".traineddata"), os.path.abspath(directory))
