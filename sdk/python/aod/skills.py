"""The skills of an agent: folders of src/ai/skills with a SKILL.md. Their names and descriptions stand in
the prompt; the tools here read the rest, and run scripts where agent.yaml grants it."""

import codecs
import contextlib
import heapq
import os
import re
import shutil
import stat
import subprocess
import sys

import yaml

from aod import paths, settings, tools
from aod.code import MOST_SECONDS, SECONDS, Said
from aod.errors import ToolError
from aod.mcpchild import end_group

PLACE, DOCUMENT = "src/ai/skills", "SKILL.md"
MOST_SKILLS, MOST_FILES, MOST_FOLDERS = 100, 1000, 100  # the last two: of one skill, that are looked at
FRONT_BYTES, DOCUMENT_BYTES, FILE_BYTES = 16 << 10, 64 << 10, 256 << 10  # that are read
NAME_LETTERS, DESCRIPTION_LETTERS = 64, 1024
PROMPT_BYTES, LEAST_BYTES = 3800, 100  # of all skills in the prompt, and of each at least
PART_BYTES = 24 << 10  # of a text, in one answer
LISTED = 100  # files in one answer

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
INTERPRETERS = {".py": "python3", ".sh": "sh", ".js": "node"}
PROMPT = """Skills say how certain tasks are done; they change none of the rules that you have. Before you do what one of these \
is for, read it with the tool skill:"""
SKILL = {"type": "string", "description": "The name of the skill."}
READS = {
    "name": "skill", "description": "Returns the instructions of a skill, and lists its files.",
    "parameters": {"type": "object", "properties": {"skill": SKILL}, "required": ["skill"], "additionalProperties": False},
}
READS_FILE = {
    "name": "skill_file", "description": "Returns a text file of a skill.",
    "parameters": {
        "type": "object", "properties": {
            "skill": SKILL, "file": {"type": "string", "description": "Such as references/terms.md."},
            "start": {"type": "integer", "minimum": 0, "default": 0, "description": "Letters to leave out."},
        },
        "required": ["skill", "file"], "additionalProperties": False,
    },
}
ABOUT_RUN = """Runs a script of a skill in this sandbox, without a shell, in %s, and returns what it prints. Files of the input lie in \
%s; what is written to %s can be part of the answer."""
ARGUMENT = {"anyOf": [
    {"type": "string"},
    {"type": "object", "properties": {"file": {"type": "string", "format": "file_path"}}, "required": ["file"], "additionalProperties": False},
]}
RUN_PARAMETERS = {
    "type": "object", "properties": {
        "skill": SKILL, "script": {"type": "string", "description": "Its name in scripts/."},
        "args": {"type": "array", "items": ARGUMENT, "maxItems": 100, "default": [], "description": 'Its arguments; {"file": NAME} is where that file lies.'},
        "seconds": {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS, "default": SECONDS, "description": "How long it may take."},
    },
    "required": ["skill", "script"], "additionalProperties": False,
}


class Skill:
    """A folder with a SKILL.md that keeps the rules; else ValueError says which one it breaks."""

    def __init__(self, place, folder):
        self.folder = os.path.join(place, folder)
        raw, size = _read(os.path.join(self.folder, DOCUMENT), DOCUMENT_BYTES)
        if size > DOCUMENT_BYTES:
            raise ValueError(f"{DOCUMENT} has over {DOCUMENT_BYTES >> 10} KiB")
        self.text = raw.decode()
        fields, self.begins = _front(self.text)
        self.name, self.description = fields.get("name"), _line(fields.get("description"))
        if self.name != folder or not NAME.fullmatch(folder) or len(folder) > NAME_LETTERS:
            raise ValueError(f"its name has to be that of its folder, of at most {NAME_LETTERS} lower-case letters, digits and single hyphens")
        if not 0 < len(self.description) <= DESCRIPTION_LETTERS:
            raise ValueError(f"its description has to be a text of at most {DESCRIPTION_LETTERS} letters")
        self.needs = tools.clip(_line(fields.get("compatibility")), 500)
        self.allowed = _names(fields.get("allowed-tools"))

    def files(self):
        """List the names of its files beside SKILL.md, those that come first; links are left out."""
        found, folders = [], [""]
        for folder in folders:
            with contextlib.suppress(OSError):
                for name, mode in _entries(os.path.join(self.folder, folder), MOST_FILES):
                    name = os.path.join(folder, name)
                    if stat.S_ISDIR(mode) and len(folders) < MOST_FOLDERS:
                        folders.append(name)
                    if stat.S_ISREG(mode) and name != DOCUMENT:
                        found.append(name)
            if len(found) >= MOST_FILES:
                break
        return sorted(found[:MOST_FILES])

    def path(self, name):
        """Return where a file lies; ToolError lists those that there are."""
        path = os.path.join(self.folder, name)
        try:
            if not set(name.split("/")) & {"", ".", ".."} and stat.S_ISREG(_mode(path)):
                return path
        except (OSError, ValueError):
            pass
        raise ToolError(f"the skill {self.name} has no file {name[:200]!r}; there are: {_listed(self.files()) or 'none'}")


class Skills:
    """The functions behind the tools."""

    def __init__(self, known, scripts, names):
        self._known = {skill.name: skill for skill in known}
        self._scripts = scripts
        self._names = names  # of the agent's other tools

    def get(self, name):
        """Return a skill; ToolError lists those that there are."""
        if name not in self._known:
            raise ToolError(f"there is no skill {name[:100]!r}; there are: {', '.join(self._known)}")
        return self._known[name]

    def read(self, skill):
        """Return the instructions, below what there is to know of the folder."""
        skill = self.get(skill)
        files, missing = skill.files(), [tool for tool in skill.allowed if tool not in self._names]
        told = [skill.needs and f"It needs: {skill.needs}", files and f"Files, for skill_file: {_listed(files)}"]
        if any(file.startswith("scripts/") for file in files):
            told.append("Its scripts are run with run_script." if self._scripts else "Its scripts can't be run: this agent has no tool for it.")
        if skill.allowed:
            told.append(f"Tools that it names: {', '.join(skill.allowed)}." + (f" This agent doesn't have: {', '.join(missing)}." if missing else ""))
        return "\n".join(filter(None, told)) + "\n\n" + _part(skill.text, skill.begins, DOCUMENT)

    def read_file(self, skill, file, start=0):
        """Return a part of a text file."""
        raw, size = _read(self.get(skill).path(file), FILE_BYTES)
        try:
            text = None if b"\0" in raw else codecs.getincrementaldecoder("utf-8")().decode(raw, size <= FILE_BYTES)
        except UnicodeDecodeError:
            text = None
        if text is None:
            raise ToolError(f"{file} isn't a text in UTF-8; it lies at {self.get(skill).path(file)}")
        return _part(text, start, file) + (f"\n[of its {size} bytes, only the first {FILE_BYTES} are read]" if size > FILE_BYTES else "")


class Scripts(tools.Function):
    """The tool run_script."""

    def __init__(self, known):
        about = ABOUT_RUN % (paths.workspace(), os.path.join(paths.io_dir(), "input"), os.path.join(paths.io_dir(), "output"))
        super().__init__({"name": "run_script", "description": about, "parameters": RUN_PARAMETERS}, self._execute)
        self._known = known
        self._going = set()

    def _execute(self, skill, script, args, seconds):
        path = self._known.get(skill).path("scripts/" + script.removeprefix("scripts/"))
        words = [*_interpreter(path), path, *(arg if isinstance(arg, str) else arg["file"] for arg in args)]
        os.makedirs(paths.workspace(), exist_ok=True)
        out, theirs = os.pipe()
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=paths.workspace(), start_new_session=True)
        except (OSError, ValueError) as error:
            os.close(out)
            raise ToolError(f"{script} can't be started: {error}") from None
        finally:
            os.close(theirs)
        self._going.add(process)
        said, status = Said(out), None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(seconds)
        end_group(process)
        self._going.discard(process)
        said.close()
        return said, f"it was ended after {seconds} s" if status is None else status and f"it ended with {status}"

    def told(self, result, files):
        """Return the text for the model."""
        said, status = result
        return "\n".join(part.rstrip("\n") for part in (said.text(files.keep, self.name), status) if part) or "it printed nothing"

    def close(self):
        """End what is still going on."""
        for process in list(self._going):
            end_group(process)


def found():
    """Return the Skills of the capsule, by name. Folders that break the rules are left out, with a line in the log."""
    return settings.kept(PLACE, _found)


def load(known, scripts, names):
    """Return the tools for skills, beside tools of those names; the first has what the prompt says."""
    own = Skills(known, scripts, [*names, *(("run_script",) if scripts else ()), "skill", "skill_file"])
    reads = tools.Function(READS, own.read)
    most = max(PROMPT_BYTES // len(known), LEAST_BYTES)
    reads.prompt = "\n".join([PROMPT, *(_short(f"- {skill.name}: {skill.description}", most) for skill in known)])
    return [reads, tools.Function(READS_FILE, own.read_file), *([Scripts(own)] if scripts else [])]


def _found(place):
    known = []
    try:
        folders = _entries(place, MOST_SKILLS + 1) if stat.S_ISDIR(_mode(place)) else []
    except OSError:
        return []
    for folder, mode in folders:
        try:
            if len(known) == MOST_SKILLS:
                raise ValueError(f"{MOST_SKILLS} are enough")
            if not stat.S_ISREG(mode):
                known.append(Skill(place, folder))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            print(f"the skill {folder!r} is left out: {tools.clip(_line(str(error)), 300)}", file=sys.stderr, flush=True)
    return known


def _entries(path, most):
    """Return the first of a directory's (name, mode), by name. What begins with a dot is left alone."""
    with os.scandir(path) as entries:
        names = heapq.nsmallest(most, (entry.name for entry in entries if not entry.name.startswith(".")))
    return [(name, os.lstat(os.path.join(path, name)).st_mode) for name in names]


def _mode(path):
    return paths.mode_without_links(path, len(paths.capsule_dir()))


def _read(path, most):
    """Return the first bytes of a regular file that no link leads to, and how many it has."""
    if not stat.S_ISREG(_mode(path)):
        raise ValueError(f"{os.path.basename(path)} is, or lies behind, a link, or isn't a regular file")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(most), os.fstat(file.fileno()).st_size


class _Loader(settings.Loader):
    """YAML without aliases, which can stand for a billion values."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases (*) aren't read")
        return super().compose_node(parent, index)


def _front(text):
    """Return the fields of a front matter, and where the instructions begin behind it."""
    front = FRONT.match(text)
    if not front or len(front[1]) > FRONT_BYTES:
        raise ValueError(f"{DOCUMENT} has to begin with a front matter between two lines ---, of at most {FRONT_BYTES >> 10} KiB")
    fields = yaml.load(front[1], _Loader)
    if not isinstance(fields, dict):
        raise ValueError("its front matter has to be keys with values")
    return fields, front.end()


def _names(allowed):
    """Return the names of allowed-tools, which may have patterns behind them: Bash(git:*) Read."""
    text = " ".join(map(str, allowed)) if isinstance(allowed, list) else _line(allowed)
    return list(dict.fromkeys(name[:NAME_LETTERS] for name in re.sub(r"\([^()]*\)", "", text).replace(",", " ").split()))[:LISTED]


def _line(text):
    """Return a text in one line, without what steers a terminal; "" for what is none."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split()) if isinstance(text, str) else ""


def _short(text, most):
    return text if len(text.encode()) <= most else tools.clip(text, most - 3) + "..."


def _listed(names):
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _part(text, start, file):
    """Return what an answer may have of a text, and how to go on."""
    part = tools.clip(text[start:], PART_BYTES)
    ends = start + len(part)
    return part if ends >= len(text) else part + f"\n[cut: go on with skill_file, file {file}, start {ends}]"


def _interpreter(path):
    """Return the words that run a script: those of its first line, or by its name."""
    first, name = _read(path, 256)[0].partition(b"\n")[0].decode("utf-8", "replace").strip(), os.path.basename(path)
    words = first[2:].split(None, 1) if first.startswith("#!") else [INTERPRETERS.get(os.path.splitext(name)[1], "")]
    if os.path.basename(words[0] if words else "") == "env":
        words = [word for word in words[1:] for word in word.removeprefix("-S").split()]
    if not words or not words[0]:
        raise ToolError(f"nothing says what runs {name}: it has neither a first line such as #!/usr/bin/env python3 nor one of {', '.join(INTERPRETERS)}")
    if not shutil.which(words[0]):
        raise ToolError(f"{name} needs {words[0]}, which isn't in this image: its Dockerfile has to install it")
    return words
