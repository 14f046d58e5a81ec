"""The base image of boxes, made of this machine's own programs: no registry is needed.

A root folder is staged from the tools that shell tasks need, the libraries they load and the
running Python's standard library. Docker imports it; namespaces use it as it stands. Nothing else
of the machine goes in: no accounts, no configuration, no set-uid file.
"""

import compileall
import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsi.errors import SandboxError

NEEDED = (
    "bash",
    "sh",
    "cat",
    "chmod",
    "cp",
    "cut",
    "date",
    "dirname",
    "basename",
    "du",
    "echo",
    "env",
    "expand",
    "expr",
    "false",
    "fold",
    "head",
    "join",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nl",
    "od",
    "paste",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "seq",
    "sha256sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "tac",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "true",
    "truncate",
    "uniq",
    "wc",
    "comm",
    "grep",
    "sed",
    "awk",
    "find",
    "xargs",
    "diff",
    "cmp",
    "tar",
    "gzip",
)
"""Without these a shell task can't be done."""
WELCOME = (
    "egrep",
    "fgrep",
    "rev",
    "column",
    "bc",
    "dc",
    "jq",
    "less",
    "xxd",
    "hexdump",
    "file",
    "tree",
    "gawk",
    "mawk",
    "zcat",
    "gunzip",
    "bzip2",
    "xz",
    "zip",
    "unzip",
    "factor",
    "numfmt",
    "csplit",
    "fmt",
    "tsort",
    "unexpand",
    "sum",
    "cksum",
    "sha1sum",
    "sha512sum",
    "base64",
    "who",
    "id",
    "uname",
    "nproc",
    "timeout",
    "kill",
    "ps",
    "perl",
    "install",
    "mkfifo",
    "yes",
    "[",
    "pr",
    "patch",
    "getopt",
    "arch",
    "whoami",
    "groups",
    "logname",
    "nohup",
    "sync",
    "dd",
    "df",
    "link",
)
"""Tools that go in where the machine has them."""
LEFT_OUT = {
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "site-packages",
    "dist-packages",
    "pydoc_data",
    "__pycache__",
    "lib-dynload.bak",
}
FOLDERS = ("work", "tmp", "logs", "tests", "solution", "proc", "dev", "sys", "etc", "root")
RECIPE = "3"
"""Raised when the recipe changes, so that an older staged root isn't taken for a new one."""

_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)")


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The staged root, and the digest of what is in it."""

    root: Path
    digest: str

    @property
    def tag(self) -> str:
        """Its name in a Docker engine."""
        return f"rsi-base:{self.digest[:12]}"


def stage(folder: Path, say: Callable[[str], None]) -> BaseImage:
    """The base image below `folder`, staged on first use (about 10 s).

    Raises SandboxError naming the tools that this machine lacks.
    """
    with _foreign_errors(folder):
        done = folder / "digest"
        root = folder / "root"
        if done.is_file() and root.is_dir():
            recipe, _, digest = done.read_text().strip().partition(":")
            if recipe == RECIPE:
                return BaseImage(root, digest)
        say("Making the sandbox's base image from this machine's own tools (about 15 s)")
        fresh = folder / f"root.{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        _fill(fresh)
        digest = _digest(fresh)
        shutil.rmtree(root, ignore_errors=True)
        os.replace(fresh, root)
        done.write_text(f"{RECIPE}:{digest}\n")
        return BaseImage(root, digest)


def write_tar(image: BaseImage, target: Path) -> None:
    """The image as a tar with fixed owners and times: the same root gives the same bytes."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        return member

    with _foreign_errors(target), tarfile.open(target, "w") as tar:
        for path in sorted(image.root.rglob("*")):
            name = str(path.relative_to(image.root))
            tar.add(path, arcname=name, recursive=False, filter=plain)


def _fill(root: Path) -> None:
    for name in FOLDERS:
        (root / name).mkdir()
    (root / "usr/local/bin").mkdir(parents=True)
    (root / "usr/bin").mkdir()
    (root / "bin").symlink_to("usr/bin")
    missing = [name for name in NEEDED if not _add_program(root, name)]
    if missing:
        raise SandboxError(
            f"this machine lacks {', '.join(missing)}, which the sandbox's image needs; "
            "install them (Debian: coreutils, grep, sed, gawk, findutils, diffutils, tar, gzip)"
        )
    for name in WELCOME:
        _add_program(root, name)
    _add_python(root)
    for locale in Path("/usr/lib/locale").glob("C.[uU][tT][fF]*8"):
        shutil.copytree(locale, root / "usr/lib/locale" / locale.name)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/bash\nagent:x:1000:1000::/tmp:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\nagent:x:1000:\n")


def _add_program(root: Path, name: str) -> bool:
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    if found is None:
        return False
    source = Path(found).resolve()
    target = root / "usr/bin" / name
    if not target.exists():
        shutil.copyfile(source, target)
        target.chmod(0o755)
        _add_libraries(root, source)
    return True


def _add_libraries(root: Path, program: Path) -> None:
    """The shared libraries that a program loads, at the paths where it looks for them."""
    said = subprocess.run(
        ["ldd", str(program)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
    )
    for library in _LIBRARY.findall(said.stdout):
        target = root / library.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(library).resolve(), target)
            target.chmod(0o755)


def _add_python(root: Path) -> None:
    """The running Python with its standard library, below /usr/local."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(sys.base_prefix, "bin", version)
    if not program.exists():
        program = Path(sys.executable).resolve()
    target = root / "usr/local/bin" / version
    shutil.copyfile(program.resolve(), target)
    target.chmod(0o755)
    for name in ("python3", "python"):
        (root / "usr/local/bin" / name).symlink_to(version)
    _add_libraries(root, program)
    library = root / "usr/local/lib" / version
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        library,
        symlinks=False,
        ignore_dangling_symlinks=True,
        ignore=lambda _, names: {n for n in names if n in LEFT_OUT or n.startswith("config-")},
    )
    for extension in sorted((library / "lib-dynload").glob("*.so")):
        _add_libraries(root, extension)
    # The root is read-only in a box: without bytecode each start would cost 200 ms more.
    compileall.compile_dir(
        library,
        quiet=2,
        workers=0,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _digest(root: Path) -> str:
    """SHA-256 over the paths, kinds and contents below the root."""
    total = hashlib.sha256(RECIPE.encode())
    for path in sorted(root.rglob("*")):
        total.update(str(path.relative_to(root)).encode() + b"\0")
        if path.is_symlink():
            total.update(os.readlink(path).encode())
        elif path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def _foreign_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError, shutil.Error) as error:
        raise SandboxError(f"the sandbox's image could not be made in {place}: {error}") from error
