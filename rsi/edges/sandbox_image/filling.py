"""Filling a root folder with programs, the libraries they load, and Python."""

import compileall
import py_compile
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

from rsi.edges.sandbox_image.tools import NEEDED, STAND_INS, WELCOME
from rsi.errors import SandboxError

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
FOLDERS = ("work", "tmp", "logs", "tests", "solution", "proc", "dev", "sys", "etc")
PROGRAM_FOLDERS = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SYSTEM_FOLDERS = ("/lib", "/usr/lib")
"""Where the loader looks without being told; the prefix covers lib64 too."""

_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)")


def fill(root: Path, programs: str = PROGRAM_FOLDERS) -> None:
    """Fills an empty folder. Raises SandboxError naming the tools that this machine lacks."""
    for name in FOLDERS:
        (root / name).mkdir()
    (root / "usr/local/bin").mkdir(parents=True)
    (root / "usr/bin").mkdir()
    (root / "bin").symlink_to("usr/bin")
    missing = [name for name in NEEDED if not _add_program(root, name, programs)]
    if missing:
        raise SandboxError(
            f"this machine lacks {', '.join(missing)}, which the sandbox's image needs; "
            "install them (Debian: coreutils, grep, sed, gawk, findutils, diffutils, tar, gzip)"
        )
    for name in WELCOME:
        _add_program(root, name, programs)
    for name, script in STAND_INS.items():
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).write_text(script)
            (root / "usr/bin" / name).chmod(0o755)
    _add_python(root)
    for locale in Path("/usr/lib/locale").glob("C.[uU][tT][fF]*8"):
        shutil.copytree(locale, root / "usr/lib/locale" / locale.name)
    _add_accounts(root)
    for path in (root, *root.rglob("*")):
        # The agent has to read it, whatever the umask is here.
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        elif not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def _add_accounts(root: Path) -> None:
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/bash\nagent:x:1000:1000::/tmp:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\nagent:x:1000:\n")


def _add_program(root: Path, name: str, programs: str) -> bool:
    found = shutil.which(name, path=programs)
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
    libraries = _LIBRARY.findall(said.stdout)
    home = next((str(Path(one).parent) for one in libraries if "/libc.so" in one), "/usr/lib")
    for library in libraries:
        is_known = library.startswith(SYSTEM_FOLDERS)
        # One from elsewhere (a Python of its own) goes where the loader looks in any case.
        target = root / (library if is_known else f"{home}/{Path(library).name}").lstrip("/")
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
