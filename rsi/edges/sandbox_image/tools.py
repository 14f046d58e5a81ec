"""The programs that go into the base image."""

_NEEDED = """
bash sh cat chmod cp cut date dirname basename du echo env expand expr false fold head join
ln ls md5sum mkdir mktemp mv nl od paste printf pwd readlink realpath rm rmdir seq sha256sum
shuf sleep sort split stat tac tail tee test touch tr true truncate uniq wc comm grep sed
awk find xargs diff cmp tar gzip
"""
_WELCOME = """
egrep fgrep rev column bc dc jq less xxd hexdump file tree gawk mawk zcat gunzip bzip2 xz
zip unzip factor numfmt csplit fmt tsort unexpand sum cksum sha1sum sha512sum base64 who id
uname nproc timeout kill ps perl install mkfifo yes [ pr patch getopt arch whoami groups
logname nohup sync dd df link setsid
"""
NEEDED = tuple(_NEEDED.split())
"""Without these a shell task can't be done."""
WELCOME = tuple(_WELCOME.split())
"""These go in where the machine has them."""
STAND_INS = {
    "rev": """\
#!/usr/local/bin/python3
import sys
sys.stdin.reconfigure(errors="surrogateescape")
sys.stdout.reconfigure(errors="surrogateescape")
for name in sys.argv[1:] or ["/dev/stdin"]:
    with open(name, errors="surrogateescape", newline="\\n") as file:
        for line in file:
            print(line.rstrip("\\n")[::-1], end="\\n" if line.endswith("\\n") else "")
"""
}
"""Programs that small machines lack and shell tasks use, written in Python."""
