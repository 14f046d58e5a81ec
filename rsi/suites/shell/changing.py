"""Changing texts and joining files: case, replacing, deleting, pasting, comparing, writing."""

import random

from rsi.suites.shell.kit import (
    WORDS,
    Draft,
    Kind,
    distinct,
    joined,
    name,
    names,
    numbers,
    sentences,
    some,
    text,
)


def upper(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found = sentences(rng, 2, 6)
    changed = [line.upper() for line in found]
    if level == 1:
        said = rng.choice([f"Show {one} in upper case.", f"Print {one} in capital letters."])
        return Draft(said, f"tr a-z A-Z < {one}", {one: text(found)}, joined(changed))
    if level == 2:
        said = rng.choice(
            [f"Write {one} in upper case to {two}.", f"Put {one} in capital letters into {two}."]
        )
        return Draft(
            said,
            f"tr a-z A-Z < {one} > {two}",
            {one: text(found)},
            same={one: text(found), two: text(changed)},
        )
    said = rng.choice(
        [
            f"Show the first line of {one} in upper case.",
            f"Print line 1 of {one} in capital letters.",
        ]
    )
    command = f"head -n 1 {one} | tr a-z A-Z"
    return Draft(said, command, {one: text(found)}, changed[0])


def replacing(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    old, new = rng.sample(WORDS, 2)
    found = [*sentences(rng, 3, 6), f"{old} and {rng.choice(WORDS)}"]
    rng.shuffle(found)
    changed = [line.replace(old, new) for line in found]
    if level == 1:
        said = rng.choice(
            [
                f"Show {one} with {old} replaced by {new}.",
                f"Print {one} with every {old} changed to {new}.",
            ]
        )
        return Draft(said, f"sed s/{old}/{new}/g {one}", {one: text(found)}, joined(changed))
    if level == 2:
        said = rng.choice(
            [f"Replace {old} by {new} in {one}.", f"Change every {old} to {new} in the file {one}."]
        )
        command = f"sed -i s/{old}/{new}/g {one}"
        return Draft(said, command, {one: text(found)}, same={one: text(changed)})
    line = next(place for place, line in enumerate(found, 1) if old in line)
    only = [
        new_line if place == line else kept
        for place, (kept, new_line) in enumerate(zip(found, changed, strict=True), 1)
    ]
    said = rng.choice(
        [
            f"Replace {old} by {new} only on line {line} of {one}.",
            f"Change {old} to {new} in {one}, but on line {line} alone.",
        ]
    )
    command = f"sed -i {line}s/{old}/{new}/g {one}"
    return Draft(said, command, {one: text(found)}, same={one: text(only)})


def dropping(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = sentences(rng, 5, 9)
    place = rng.randint(1, 4)
    left = [line for number, line in enumerate(found, 1) if number != place]
    if level == 1:
        said = rng.choice(
            [f"Show {one} without line {place}.", f"Print all lines of {one} except line {place}."]
        )
        return Draft(said, f"sed {place}d {one}", {one: text(found)}, joined(left))
    if level == 2:
        said = rng.choice(
            [f"Delete line {place} from {one}.", f"Remove line number {place} from the file {one}."]
        )
        return Draft(said, f"sed -i {place}d {one}", {one: text(found)}, same={one: text(left)})
    gaps = [line if rng.random() < 0.6 else "" for line in found] + ["", "end"]
    said = rng.choice(
        [f"Delete all empty lines from {one}.", f"Remove the blank lines of the file {one}."]
    )
    command = f"sed -i '/^$/d' {one}"
    return Draft(said, command, {one: text(gaps)}, same={one: text([g for g in gaps if g])})


def stripping(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    sign = rng.choice(["#", "-", ";", "%"])
    found = [f"{sign}".join(some(rng, 2, 4)) for _ in range(rng.randint(3, 6))]
    if level == 1:
        said = rng.choice(
            [f"Show {one} without the character {sign}.", f"Print {one} with every {sign} removed."]
        )
        return Draft(
            said,
            f"tr -d '{sign}' < {one}",
            {one: text(found)},
            joined([line.replace(sign, "") for line in found]),
        )
    if level == 2:
        said = rng.choice(
            [
                f"Show {one} with every {sign} turned into a space.",
                f"Print {one} with a space in place of each {sign}.",
            ]
        )
        return Draft(
            said,
            f"tr '{sign}' ' ' < {one}",
            {one: text(found)},
            joined([line.replace(sign, " ") for line in found]),
        )
    parts = [word for line in found for word in line.split(sign)]
    said = rng.choice(
        [
            f"Split {one} at every {sign} and show the parts sorted.",
            f"Show all parts of {one} between the {sign} signs, in sorted order.",
        ]
    )
    command = f"tr '{sign}' '\\n' < {one} | sort"
    return Draft(said, command, {one: text(found)}, joined(sorted(parts)))


def numbering(rng: random.Random, level: int) -> Draft:
    low, count = rng.randint(2, 40), rng.randint(3, 9)
    if level == 1:
        said = rng.choice(
            [
                f"Print the numbers from {low} to {low + count}.",
                f"Count from {low} to {low + count}, one number per line.",
            ]
        )
        return Draft(said, f"seq {low} {low + count}", {}, joined(range(low, low + count + 1)))
    if level == 2:
        step = rng.randint(2, 5)
        end = low + step * count
        said = rng.choice(
            [
                f"Print the numbers from {low} to {end} in steps of {step}.",
                f"Count from {low} to {end} by {step}, one number per line.",
            ]
        )
        return Draft(said, f"seq {low} {step} {end}", {}, joined(range(low, end + 1, step)))
    said = rng.choice(
        [
            f"What is the sum of the numbers from {low} to {low + count}?",
            f"Add up all whole numbers from {low} to {low + count}.",
        ]
    )
    command = f"seq {low} {low + count} | awk '{{ s += $1 }} END {{ print s }}'"
    return Draft(said, command, {}, str(sum(range(low, low + count + 1))))


def chaining(rng: random.Random, level: int) -> Draft:
    one, two, three = names(rng, 3)
    found, more = sentences(rng, 2, 5), sentences(rng, 2, 5)
    files = {one: text(found), two: text(more)}
    if level == 1:
        said = rng.choice([f"Show {one} followed by {two}.", f"Print {one} and then {two}."])
        return Draft(said, f"cat {one} {two}", files, joined(found + more))
    if level == 2:
        said = rng.choice(
            [f"Join {one} and {two} into {three}.", f"Write {one} followed by {two} to {three}."]
        )
        return Draft(
            said, f"cat {one} {two} > {three}", files, same={**files, three: text(found + more)}
        )
    said = rng.choice(
        [
            f"Join {one} and {two}, sort the lines, and write them to {three}.",
            f"Write all lines of {one} and {two} in sorted order to {three}.",
        ]
    )
    return Draft(
        said,
        f"sort {one} {two} > {three}",
        files,
        same={**files, three: text(sorted(found + more))},
    )


def pasting(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found = distinct(rng, 3, 7)
    more = numbers(rng, len(found), len(found))
    files = {one: text(found), two: text(more)}
    pairs = list(zip(found, more, strict=True))
    if level == 1:
        said = rng.choice(
            [
                f"Show the lines of {one} and {two} side by side, with a comma between.",
                f"Put the lines of {one} next to those of {two}, separated by commas.",
            ]
        )
        return Draft(said, f"paste -d , {one} {two}", files, joined([f"{a},{b}" for a, b in pairs]))
    if level == 2:
        said = rng.choice(
            [
                f"Put all lines of {one} on one line, separated by commas.",
                f"Show the lines of {one} as one line with commas between them.",
            ]
        )
        return Draft(said, f"paste -s -d , {one}", files, ",".join(found))
    said = rng.choice(
        [
            f"Put the lines of {one} next to those of {two}, a comma between, sorted by number.",
            f"Show {one} and {two} side by side with commas, ordered by the number of {two}.",
        ]
    )
    command = f"paste -d , {one} {two} | sort -t , -n -k 2"
    ordered = sorted(pairs, key=lambda pair: pair[1])
    return Draft(said, command, files, joined([f"{a},{b}" for a, b in ordered]))


def common(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    every = sorted(distinct(rng, 10, 12))
    shared = set(rng.sample(every, 4))
    left = [word for place, word in enumerate(every) if word in shared or place % 2]
    right = [word for place, word in enumerate(every) if word in shared or not place % 2]
    files = {one: text(left), two: text(right)}
    both = [word for word in left if word in right]
    if level == 1:
        said = rng.choice(
            [
                f"Which lines are in both {one} and {two}? Both are sorted.",
                f"Show the lines that the sorted files {one} and {two} share.",
            ]
        )
        return Draft(said, f"comm -12 {one} {two}", files, joined(both))
    if level == 2:
        only = [word for word in left if word not in right] or both
        said = rng.choice(
            [
                f"Which lines are in {one} but not in {two}? Both are sorted.",
                f"Show the lines of the sorted file {one} that {two} lacks.",
            ]
        )
        if only == both:
            return Draft(said, f"comm -12 {one} {two}", files, joined(both))
        return Draft(said, f"comm -23 {one} {two}", files, joined(only))
    rng.shuffle(left)
    rng.shuffle(right)
    said = rng.choice(
        [
            f"How many lines of {one} are also in {two}? They are not sorted.",
            f"Count the lines that the unsorted files {one} and {two} share.",
        ]
    )
    return Draft(
        said, f"grep -c -x -f {one} {two}", {one: text(left), two: text(right)}, str(len(both))
    )


def writing(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    words = " ".join(distinct(rng, 2, 4))
    if level == 1:
        said = rng.choice(
            [f"Write the text {words} to {one}.", f"Make a file {one} with the text {words} in it."]
        )
        return Draft(said, f"echo {words} > {one}", {}, same={one: f"{words}\n"})
    found = sentences(rng, 2, 5)
    if level == 2:
        said = rng.choice(
            [f"Append the text {words} to {one}.", f"Add a last line {words} to {one}."]
        )
        return Draft(
            said, f"echo {words} >> {one}", {one: text(found)}, same={one: text([*found, words])}
        )
    said = rng.choice(
        [
            f"Insert the text {words} as the first line of {one}.",
            f"Put a new first line {words} into {one}.",
        ]
    )
    return Draft(
        said, f"sed -i '1i {words}' {one}", {one: text(found)}, same={one: text([words, *found])}
    )


KINDS = (
    Kind("upper", "upper case", upper),
    Kind("replacing", "replacing a word", replacing),
    Kind("dropping", "deleting lines", dropping),
    Kind("stripping", "deleting characters", stripping),
    Kind("numbering", "runs of numbers", numbering),
    Kind("chaining", "joining files end to end", chaining),
    Kind("pasting", "joining files side by side", pasting),
    Kind("common", "lines that files share", common),
    Kind("writing", "writing lines into files", writing),
)
