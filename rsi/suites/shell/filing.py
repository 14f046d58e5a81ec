"""Files and folders: making, copying, moving, deleting, finding."""

import random

from rsi.suites.shell.kit import Draft, Kind, joined, name, names, sentences, text

FOLDERS = ("backup", "output", "reports", "drafts", "photos", "logs", "store", "inbox")


def making(rng: random.Random, level: int) -> Draft:
    one, two = rng.sample(FOLDERS, 2)
    if level == 1:
        said = rng.choice([f"Make a folder named {one}.", f"Create the directory {one}."])
        return Draft(said, f"mkdir {one}", {}, folders=(one,))
    if level == 2:
        said = rng.choice(
            [
                f"Make a folder {one} with a folder {two} inside it.",
                f"Create the directory {two} inside a new directory {one}.",
            ]
        )
        return Draft(said, f"mkdir -p {one}/{two}", {}, folders=(f"{one}/{two}",))
    path = name(rng)
    said = rng.choice(
        [
            f"Make a folder {one} and an empty file {path} inside it.",
            f"Create the directory {one} with an empty file {path} in it.",
        ]
    )
    return Draft(said, f"mkdir {one} && touch {one}/{path}", {}, same={f"{one}/{path}": ""})


def copying(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    folder = rng.choice(FOLDERS)
    body = text(sentences(rng, 2, 6))
    if level == 1:
        said = rng.choice([f"Copy {one} to {two}.", f"Make a copy of {one} named {two}."])
        return Draft(said, f"cp {one} {two}", {one: body}, same={one: body, two: body})
    if level == 2:
        said = rng.choice(
            [f"Copy {one} into the folder {folder}.", f"Put a copy of {one} into {folder}."]
        )
        files = {one: body, f"{folder}/keep.txt": "keep\n"}
        return Draft(said, f"cp {one} {folder}/", files, same={**files, f"{folder}/{one}": body})
    said = rng.choice(
        [
            f"Copy all .txt files into a new folder {folder}.",
            f"Make a folder {folder} and put a copy of every .txt file into it.",
        ]
    )
    files = {one: body, two: body + "more\n", name(rng, ".dat"): "no\n"}
    copies = {f"{folder}/{path}": files[path] for path in (one, two)}
    return Draft(said, f"mkdir {folder} && cp *.txt {folder}/", files, same={**files, **copies})


def moving(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    folder = rng.choice(FOLDERS)
    body = text(sentences(rng, 2, 6))
    if level == 1:
        said = rng.choice([f"Rename {one} to {two}.", f"Give {one} the new name {two}."])
        return Draft(said, f"mv {one} {two}", {one: body}, same={two: body}, absent=(one,))
    keep = {f"{folder}/keep.txt": "keep\n"}
    if level == 2:
        said = rng.choice([f"Move {one} into the folder {folder}.", f"Move {one} to {folder}."])
        return Draft(
            said,
            f"mv {one} {folder}/",
            {one: body, **keep},
            same={**keep, f"{folder}/{one}": body},
            absent=(one,),
        )
    new = two.replace(".txt", ".bak")
    said = rng.choice(
        [
            f"Move {one} into the folder {folder} and name it {new} there.",
            f"Move {one} to {folder} under the new name {new}.",
        ]
    )
    return Draft(
        said,
        f"mv {one} {folder}/{new}",
        {one: body, **keep},
        same={**keep, f"{folder}/{new}": body},
        absent=(one,),
    )


def deleting(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    folder = rng.choice(FOLDERS)
    body = text(sentences(rng, 1, 4))
    if level == 1:
        said = rng.choice([f"Delete the file {one}.", f"Remove {one}."])
        return Draft(said, f"rm {one}", {one: body, two: body}, same={two: body}, absent=(one,))
    if level == 2:
        gone = dict.fromkeys(names(rng, 3, ".tmp"), "x\n")
        said = rng.choice(["Delete all .tmp files.", "Remove every file that ends in .tmp."])
        return Draft(said, "rm *.tmp", {**gone, one: body}, same={one: body}, absent=tuple(gone))
    said = rng.choice(
        [
            f"Delete the folder {folder} with all that is in it.",
            f"Remove the directory {folder} and its files.",
        ]
    )
    files = {f"{folder}/{one}": body, f"{folder}/deep/{two}": body, one: body}
    return Draft(said, f"rm -r {folder}", files, same={one: body}, absent=(folder,))


def allowing(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2, ".sh")
    files = {one: "echo one\n", two: "echo two\n"}
    if level == 1:
        said = rng.choice([f"Make {one} executable.", f"Allow {one} to be run as a program."])
        return Draft(said, f"chmod +x {one}", files, same=files, executable=(one,))
    if level == 2:
        said = rng.choice(
            [
                "Make all .sh files executable.",
                "Allow every file that ends in .sh to be run as a program.",
            ]
        )
        return Draft(said, "chmod +x *.sh", files, same=files, executable=(one, two))
    word = rng.choice(sentences(rng, 1, 1)[0].split())
    made = f"echo {word}\n"
    said = rng.choice(
        [
            f"Write echo {word} into a new file run.sh and make it executable.",
            f"Make an executable file run.sh with the text echo {word} in it.",
        ]
    )
    return Draft(
        said,
        f"echo echo {word} > run.sh && chmod +x run.sh",
        files,
        same={**files, "run.sh": made},
        executable=("run.sh",),
    )


def finding(rng: random.Random, level: int) -> Draft:
    ending = rng.choice([".cfg", ".md", ".csv"])
    wanted = [
        f"{folder}/{path}"
        for folder, path in zip(rng.sample(FOLDERS, 3), names(rng, 3, ending), strict=True)
    ]
    other = f"{rng.choice(FOLDERS)}/{name(rng, '.dat')}"
    files = dict.fromkeys([*wanted, other], "x\n")
    if level == 1:
        path = rng.choice(wanted)
        bare = path.rpartition("/")[2]
        said = rng.choice(
            [
                f"In which folder is {bare}? Print its path.",
                f"Find the file {bare} and print its path.",
            ]
        )
        return Draft(said, f"find . -name {bare}", files, f"./{path}")
    if level == 2:
        said = rng.choice(
            [
                f"Find all {ending} files in all folders and sort their paths.",
                f"Print the sorted paths of every {ending} file below this folder.",
            ]
        )
        return Draft(
            said,
            f"find . -name '*{ending}' | sort",
            files,
            joined(sorted(f"./{path}" for path in wanted)),
        )
    said = rng.choice(
        [
            f"Delete all {ending} files in all folders.",
            f"Remove every {ending} file below this folder.",
        ]
    )
    return Draft(
        said, f"find . -name '*{ending}' -delete", files, same={other: "x\n"}, absent=tuple(wanted)
    )


def naming(rng: random.Random, level: int) -> Draft:
    found = names(rng, rng.randint(3, 6))
    word = rng.choice(["secret", "invoice", "recipe", "treasure"])
    wanted = rng.sample(found, 2)
    files = {
        path: text([*sentences(rng, 1, 3), *([word] if path in wanted else [])]) for path in found
    }
    if level == 1:
        files = {path: body for path, body in files.items() if path != wanted[1]}
        said = rng.choice(
            [
                f"Which .txt file contains the word {word}?",
                f"Find the .txt file that has {word} in it.",
            ]
        )
        return Draft(said, f"grep -l {word} *.txt", files, wanted[0])
    if level == 2:
        said = rng.choice(
            [
                f"Which .txt files contain the word {word}?",
                f"Print the names of the .txt files that have {word} in them.",
            ]
        )
        return Draft(said, f"grep -l {word} *.txt", files, joined(sorted(wanted)))
    said = rng.choice(
        [
            f"Which .txt files do not contain the word {word}?",
            f"Print the names of the .txt files without {word} in them.",
        ]
    )
    left = sorted(path for path in found if path not in wanted)
    return Draft(said, f"grep -L {word} *.txt", files, joined(left))


def biggest(rng: random.Random, level: int) -> Draft:
    found = names(rng, 5)
    sizes = dict(zip(found, rng.sample(range(1, 40), 5), strict=True))
    files = {path: "x" * 50 * count + "\n" for path, count in sizes.items()}
    ordered = sorted(found, key=lambda path: -sizes[path])
    if level == 1:
        said = rng.choice(
            [
                "List the files here, one per line.",
                "Print the names of all files here in alphabetical order.",
            ]
        )
        return Draft(said, "ls", files, joined(sorted(found)))
    if level == 2:
        said = rng.choice(
            ["Which file here is the largest?", "Print the name of the biggest file."]
        )
        return Draft(said, "ls -S | head -n 1", files, ordered[0])
    said = rng.choice(
        [
            "Which two files here are the smallest, smallest first?",
            "Print the names of the 2 smallest files, starting with the smallest.",
        ]
    )
    return Draft(said, "ls -rS | head -n 2", files, joined(ordered[:-3:-1]))


KINDS = (
    Kind("making", "making folders", making),
    Kind("copying", "copying files", copying),
    Kind("moving", "moving and renaming", moving),
    Kind("deleting", "deleting files", deleting),
    Kind("allowing", "making files executable", allowing),
    Kind("finding", "finding files by name", finding),
    Kind("naming", "finding files by content", naming),
    Kind("biggest", "listing and ordering files", biggest),
)
