"""Builds the wheel of this directory with Python alone, so that pip needs no network.

It is a build backend (PEP 517). The same files give the same bytes. As a program it writes the wheel into a directory:

    python3 build_wheel.py DIR
"""

import base64
import hashlib
import pathlib
import sys
import tomllib
import zipfile

_HERE = pathlib.Path(__file__).parent
_WHEEL = "Wheel-Version: 1.0\nGenerator: aod\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Writes the wheel, and returns its name."""
    project = tomllib.loads((_HERE / "pyproject.toml").read_text())["project"]
    stem = f"{project['name']}-{project['version']}"
    files = {f"aod/{path.name}": path.read_bytes() for path in sorted((_HERE / "aod").iterdir()) if path.is_file()}
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)  # of 1980
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return name


def _metadata(project: dict) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement}; extra == '{extra}'" for requirement in requirements]
    return "\n".join(lines) + "\n"


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(pathlib.Path(sys.argv[1]) / build_wheel(sys.argv[1]))
