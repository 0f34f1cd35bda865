"""Build the wheel and the sdist, check both, and install and run the wheel; tag only when asked to.

    python tools/release.py                      build into dist/ and check
    python tools/release.py --out FOLDER         build elsewhere
    python tools/release.py --tag                the same for a release, and tag the commit v<version> in the end

The sdist is built from the checkout and the wheel from the sdist, so a file that the sdist lacks shows at once. Then:
the wheel holds every tracked file of the package and nothing else, its RECORD is true, the metadata is complete, and in
a new environment the wheel installs, `pip check` is content, and the demo runs. With --tag the version must be that of
a release and have its section in CHANGELOG.md, and the checkout must be clean. Nothing is uploaded, nothing is pushed.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import email
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = re.compile(r"\d+\.\d+\.\d+")
SECTION = re.compile(r"^## \[(?P<version>[^\]]+)\]", re.MULTILINE)
#: What somebody who has the sdist alone needs to build, test and read it.
IN_SDIST = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "docs/index.md", "pyproject.toml")
#: Traces of tools and of this machine.
LITTER = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv|\.hypothesis|\.\w+_cache|_build|dist)(/|$)|\.(pyc|nbi|nbc|so|orig|rej)$"
)
METADATA = ("Name", "Version", "Summary", "License-Expression", "License-File", "Requires-Python", "Author")


def main() -> int:
    """Build, check, and tag if that was asked for; the exit code is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Build and check the wheel and the sdist.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for both files")
    parser.add_argument("--tag", action="store_true", help="tag the commit as a release where all checks pass")
    asked = parser.parse_args()
    version = version_in((ROOT / "src/suffice/__init__.py").read_text(encoding="utf-8"))
    print(f"suffice {version}", flush=True)
    wrong = not_ready(version) if asked.tag else []
    if not wrong:
        with tempfile.TemporaryDirectory() as folder:
            wheel, sdist = build(Path(folder), asked.out)
            wrong = [
                *wrong_in_wheel(wheel, tracked("src/suffice"), version),
                *wrong_in_sdist(sdist, tracked("src/suffice", "tests")),
                *wrong_when_used(Path(folder), wheel, version),
            ]
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    if wrong:
        return 1
    if asked.tag:
        git("tag", "--annotate", f"v{version}", "--message", f"suffice {version}")
        print(f"tagged v{version}; publish it by: git push origin v{version}")
    return 0


def version_in(text: str) -> str:
    """The version that a source file assigns to `__version__`."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__version__" for target in node.targets):
            return str(ast.literal_eval(node.value))
    raise ValueError("there is no __version__ in the file")


def sections_of(changelog: str) -> list[str]:
    """The versions that a changelog has a section for, as they stand in it."""
    return [found["version"] for found in SECTION.finditer(changelog)]


def wrong_with_tag(version: str, changelog: str, tags: Iterable[str], changes: str) -> list[str]:
    """What keeps this version from a tag.

    Args:
        version: That of the package.
        changelog: The text of CHANGELOG.md.
        tags: Those that are there.
        changes: What `git status --porcelain` says.
    """
    wrong = []
    if not RELEASE.fullmatch(version):
        wrong.append(f"{version} is not the version of a release: set __version__ in src/suffice/__init__.py")
    if version not in sections_of(changelog):
        wrong.append(f"CHANGELOG.md has no section [{version}]: rename [Unreleased], and begin a new one above it")
    if f"v{version}" in set(tags):
        wrong.append(f"there is a tag v{version} already")
    if changes:
        wrong.append(f"the checkout has changes that are not committed:\n{changes}")
    return wrong


def not_ready(version: str) -> list[str]:
    """What keeps the checkout from being tagged."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return wrong_with_tag(version, changelog, git("tag").split(), git("status", "--porcelain").strip())


def build(folder: Path, out: Path) -> tuple[Path, Path]:
    """Build both files in an environment of their own; the wheel comes from the sdist."""
    python = environment(folder / "build")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "build"], check=True)
    fresh = folder / "dist"
    subprocess.run([python, "-m", "build", "--outdir", str(fresh), str(ROOT)], check=True, stdout=subprocess.DEVNULL)
    out.mkdir(parents=True, exist_ok=True)
    (wheel,), (sdist,) = fresh.glob("*.whl"), fresh.glob("*.tar.gz")
    for path in (wheel, sdist):
        shutil.copy2(path, out)
        print(f"{out / path.name}  {path.stat().st_size / 1024:,.0f} KiB  sha256 {digest_of(path)}", flush=True)
    return out / wheel.name, out / sdist.name


def wrong_in_wheel(path: Path, sources: Iterable[str], version: str) -> list[str]:
    """What is wrong with a wheel: its files, their hashes, its metadata.

    Args:
        path: The wheel.
        sources: Files of the package in the checkout, as `src/suffice/...`.
        version: The one that it should have.
    """
    expected = {name.removeprefix("src/") for name in sources}
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            return [f"{path.name}: {damaged} is damaged"]
        names = {name for name in archive.namelist() if not name.endswith("/")}
        content = {name: archive.read(name) for name in names}
    about = f"suffice-{version}.dist-info"
    own = {name for name in names if not name.startswith(f"{about}/")}
    wrong = [f"{path.name}: {name} is missing" for name in sorted(expected - own)]
    wrong += [f"{path.name}: {name} is not a tracked file of the package" for name in sorted(own - expected)]
    for part in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"):
        if f"{about}/{part}" not in names:
            wrong.append(f"{path.name}: {about}/{part} is missing")
    if not wrong:
        wrong += [f"{path.name}: {line}" for line in wrong_in_record(content, f"{about}/RECORD")]
        metadata = email.message_from_bytes(content[f"{about}/METADATA"])
        wrong += [f"{path.name}: {line}" for line in wrong_in_metadata(metadata, version)]
    return wrong


def wrong_in_record(content: dict[str, bytes], record: str) -> list[str]:
    """Files of a wheel that its RECORD does not list with their length and their SHA-256."""
    listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(content[record].decode("utf-8"))) if row}
    wrong = [f"RECORD lists {name}, which is not there" for name in sorted(set(listed) - set(content))]
    for name in sorted(set(content) - {record}):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content[name]).digest()).rstrip(b"=").decode()
        if listed.get(name) != [f"sha256={digest}", str(len(content[name]))]:
            wrong.append(f"RECORD does not give the hash and the length of {name}")
    return wrong


def wrong_in_metadata(metadata: Message, version: str) -> list[str]:
    """What an index would refuse, or a reader of its page would miss."""
    wrong = [f"the metadata has no {field}" for field in METADATA if not metadata[field]]
    if metadata["Version"] != version:
        wrong.append(f"the metadata says version {metadata['Version']}, the package {version}")
    if metadata["Description-Content-Type"] != "text/markdown":
        wrong.append("the description is not said to be Markdown")
    if not str(metadata.get_payload()).strip():
        wrong.append("the description is empty")
    classifiers = metadata.get_all("Classifier", [])
    if any(line.startswith("License ::") for line in classifiers):
        wrong.append("classifiers name a licence beside License-Expression")
    lowest = str(metadata["Requires-Python"]).removeprefix(">=")
    if f"Programming Language :: Python :: {lowest}" not in classifiers:
        wrong.append(f"no classifier names Python {lowest}, the lowest that is allowed")
    return wrong


def wrong_in_sdist(path: Path, sources: Iterable[str]) -> list[str]:
    """What is wrong with an sdist: files that are missing, that lead elsewhere, or that tools have left behind."""
    wrong = []
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    folder = path.name.removesuffix(".tar.gz")
    names = {member.name.removeprefix(f"{folder}/") for member in members if member.isfile()}
    for member in members:
        if not member.name.startswith(f"{folder}/") or ".." in Path(member.name).parts:
            wrong.append(f"{path.name}: {member.name} lies outside {folder}/")
        if not (member.isfile() or member.isdir()):
            wrong.append(f"{path.name}: {member.name} is neither a file nor a folder")
    wrong += [f"{path.name}: {name} is missing" for name in sorted({*IN_SDIST, *sources} - names)]
    wrong += [f"{path.name}: {name} is litter" for name in sorted(names) if LITTER.search(name)]
    return wrong


def wrong_when_used(folder: Path, wheel: Path, version: str) -> list[str]:
    """Install the wheel into a new environment, and run it in an empty folder."""
    python = environment(folder / "use")
    empty = folder / "empty"
    empty.mkdir()
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    for command in (["-m", "pip", "check"], ["-m", "suffice", "demo"]):
        ended = subprocess.run([python, *command], cwd=empty, capture_output=True, text=True)
        if ended.returncode:
            return [f"python {' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"]
        print(ended.stdout, flush=True)
    answer = subprocess.run([python, "-m", "suffice", "--version"], cwd=empty, capture_output=True, text=True)
    said = answer.stdout.strip()
    return [] if said == f"suffice {version}" else [f"the command calls itself {said!r}, the package has {version}"]


def environment(place: Path) -> str:
    """A new virtual environment; its interpreter."""
    venv.create(place, with_pip=True)
    return str(place / ("Scripts" if sys.platform == "win32" else "bin") / "python")


def tracked(*folders: str) -> list[str]:
    """The files below some folders that git knows."""
    return [name for name in git("ls-files", "-z", *folders).split("\0") if name]


def git(*arguments: str) -> str:
    """What git answers in this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
