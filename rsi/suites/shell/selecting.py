"""Selecting and ordering: first, last and matching lines, columns, sorting, unique lines."""

import random

from rsi.suites.shell.kit import (
    PEOPLE,
    TOWNS,
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


def first(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found, count = sentences(rng, 8, 16), rng.randint(2, 6)
    if level == 1:
        said = rng.choice(
            [f"Show the first {count} lines of {one}.", f"Print the top {count} lines of {one}."]
        )
        return Draft(said, f"head -n {count} {one}", {one: text(found)}, joined(found[:count]))
    if level == 2:
        said = rng.choice(
            [
                f"Write the first {count} lines of {one} to {two}.",
                f"Put the top {count} lines of {one} into {two}.",
            ]
        )
        return Draft(
            said,
            f"head -n {count} {one} > {two}",
            {one: text(found)},
            same={one: text(found), two: text(found[:count])},
        )
    said = rng.choice(
        [
            f"Show all lines of {one} except the first {count}.",
            f"Print {one} without its first {count} lines.",
        ]
    )
    command = f"tail -n +{count + 1} {one}"
    return Draft(said, command, {one: text(found)}, joined(found[count:]))


def last(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found, count = sentences(rng, 8, 16), rng.randint(2, 6)
    if level == 1:
        said = rng.choice(
            [f"Show the last {count} lines of {one}.", f"Print the final {count} lines of {one}."]
        )
        return Draft(said, f"tail -n {count} {one}", {one: text(found)}, joined(found[-count:]))
    if level == 2:
        said = rng.choice(
            [
                f"Write the last {count} lines of {one} to {two}.",
                f"Put the final {count} lines of {one} into {two}.",
            ]
        )
        return Draft(
            said,
            f"tail -n {count} {one} > {two}",
            {one: text(found)},
            same={one: text(found), two: text(found[-count:])},
        )
    said = rng.choice(
        [
            f"Show all lines of {one} except the last {count}.",
            f"Print {one} without its final {count} lines.",
        ]
    )
    return Draft(said, f"head -n -{count} {one}", {one: text(found)}, joined(found[:-count]))


def nth(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = sentences(rng, 9, 18)
    place = rng.randint(2, 8)
    if level == 1:
        said = rng.choice(
            [f"Show line {place} of {one}.", f"Print the line number {place} of {one}."]
        )
        return Draft(said, f"sed -n {place}p {one}", {one: text(found)}, found[place - 1])
    if level == 2:
        end = place + rng.randint(1, 3)
        said = rng.choice(
            [
                f"Show lines {place} to {end} of {one}.",
                f"Print {one} from line {place} up to line {end}.",
            ]
        )
        return Draft(
            said, f"sed -n {place},{end}p {one}", {one: text(found)}, joined(found[place - 1 : end])
        )
    word = rng.randint(1, 2)
    said = rng.choice(
        [
            f"What is word {word} on line {place} of {one}?",
            f"Print the word number {word} in line {place} of {one}.",
        ]
    )
    command = f"sed -n {place}p {one} | cut -d ' ' -f {word}"
    return Draft(said, command, {one: text(found)}, found[place - 1].split()[word - 1])


def holding(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = sentences(rng, 8, 14)
    wanted = rng.choice(rng.choice(found).split())
    hits = [line for line in found if wanted in line]
    if level == 1:
        said = rng.choice(
            [
                f"Show the lines of {one} that contain {wanted}.",
                f"Print every line with {wanted} in {one}.",
            ]
        )
        return Draft(said, f"grep {wanted} {one}", {one: text(found)}, joined(hits))
    if level == 2:
        found = [
            line.replace(wanted, wanted.upper()) if rng.random() < 0.5 else line for line in found
        ]
        hits = [line for line in found if wanted in line.lower()]
        said = rng.choice(
            [
                f"Show the lines of {one} that contain {wanted} in upper or lower case.",
                f"Print every line of {one} with {wanted}, ignoring case.",
            ]
        )
        return Draft(said, f"grep -i {wanted} {one}", {one: text(found)}, joined(hits))
    said = rng.choice(
        [
            f"Show the line numbers of the lines in {one} that contain {wanted}.",
            f"On which line numbers of {one} is {wanted}?",
        ]
    )
    places = [place for place, line in enumerate(found, 1) if wanted in line]
    command = f"grep -n {wanted} {one} | cut -d : -f 1"
    return Draft(said, command, {one: text(found)}, joined(places))


def lacking(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found = sentences(rng, 8, 14)
    wanted = rng.choice(rng.choice(found).split())
    found.append(next(word for word in WORDS if wanted not in word))
    left = [line for line in found if wanted not in line]
    if level == 1:
        said = rng.choice(
            [
                f"Show the lines of {one} that do not contain {wanted}.",
                f"Print every line without {wanted} in {one}.",
            ]
        )
        return Draft(said, f"grep -v {wanted} {one}", {one: text(found)}, joined(left))
    if level == 2:
        said = rng.choice(
            [
                f"Write the lines of {one} without {wanted} to {two}.",
                f"Put every line of {one} that lacks {wanted} into {two}.",
            ]
        )
        return Draft(
            said,
            f"grep -v {wanted} {one} > {two}",
            {one: text(found)},
            same={one: text(found), two: text(left)},
        )
    said = rng.choice(
        [
            f"Sort the lines of {one} that do not contain {wanted}.",
            f"Show every line of {one} without {wanted}, in alphabetical order.",
        ]
    )
    command = f"grep -v {wanted} {one} | sort"
    return Draft(said, command, {one: text(found)}, joined(sorted(left)))


def column(rng: random.Random, level: int) -> Draft:
    one = name(rng, ".csv")
    rows = [
        (rng.choice(PEOPLE), rng.choice(TOWNS), str(rng.randint(18, 80)))
        for _ in range(rng.randint(4, 9))
    ]
    files = {one: text([",".join(row) for row in rows])}
    place = rng.randint(1, 3)
    if level == 1:
        said = rng.choice([f"Show column {place} of {one}.", f"Print field {place} of {one}."])
        return Draft(
            said, f"cut -d , -f {place} {one}", files, joined([r[place - 1] for r in rows])
        )
    if level == 2:
        other = place % 3 + 1
        low, high = sorted((place, other))
        said = rng.choice(
            [f"Show columns {low} and {high} of {one}.", f"Print fields {low} and {high} of {one}."]
        )
        return Draft(
            said,
            f"cut -d , -f {low},{high} {one}",
            files,
            joined([f"{r[low - 1]},{r[high - 1]}" for r in rows]),
        )
    town = rows[0][1]
    said = rng.choice(
        [
            f"Show column 1 of the lines with {town} in {one}.",
            f"Print the first field of every line of {one} that has {town}.",
        ]
    )
    command = f"grep {town} {one} | cut -d , -f 1"
    return Draft(said, command, files, joined([r[0] for r in rows if r[1] == town]))


def letters(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = [f"{word}{rng.randint(100, 999)}{rng.choice('xyz')}" for word in distinct(rng, 4, 9)]
    count = rng.randint(2, 4)
    if level == 1:
        said = rng.choice(
            [
                f"Show the first {count} characters of each line of {one}.",
                f"Print characters 1 to {count} of every line in {one}.",
            ]
        )
        return Draft(
            said,
            f"cut -c 1-{count} {one}",
            {one: text(found)},
            joined([line[:count] for line in found]),
        )
    if level == 2:
        said = rng.choice(
            [
                f"Show each line of {one} from character {count} on.",
                f"Print every line of {one} starting at character {count}.",
            ]
        )
        return Draft(
            said,
            f"cut -c {count}- {one}",
            {one: text(found)},
            joined([line[count - 1 :] for line in found]),
        )
    said = rng.choice(
        [
            f"Show the last {count} characters of each line of {one}.",
            f"Print the final {count} characters of every line in {one}.",
        ]
    )
    command = f"rev {one} | cut -c 1-{count} | rev"
    return Draft(said, command, {one: text(found)}, joined([line[-count:] for line in found]))


def alphabet(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found = distinct(rng, 6, 12)
    if level == 1:
        said = rng.choice([f"Sort the lines of {one}.", f"Show {one} in alphabetical order."])
        return Draft(said, f"sort {one}", {one: text(found)}, joined(sorted(found)))
    if level == 2:
        said = rng.choice(
            [
                f"Sort the lines of {one} in reverse order.",
                f"Show {one} in reverse alphabetical order.",
            ]
        )
        return Draft(said, f"sort -r {one}", {one: text(found)}, joined(sorted(found)[::-1]))
    said = rng.choice(
        [
            f"Sort the lines of {one} in reverse order and write them to {two}.",
            f"Put {one} in reverse alphabetical order into {two}.",
        ]
    )
    return Draft(
        said,
        f"sort -r {one} > {two}",
        {one: text(found)},
        same={one: text(found), two: text(sorted(found)[::-1])},
    )


def numeric(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = numbers(rng, 6, 12)
    if level == 1:
        said = rng.choice(
            [f"Sort the numbers in {one}.", f"Show the numbers of {one} from smallest to largest."]
        )
        return Draft(said, f"sort -n {one}", {one: text(found)}, joined(sorted(found)))
    if level == 2:
        said = rng.choice(
            [
                f"Sort the numbers in {one} from largest to smallest.",
                f"Show the numbers of {one} in descending order.",
            ]
        )
        return Draft(said, f"sort -nr {one}", {one: text(found)}, joined(sorted(found)[::-1]))
    rows = list(zip(distinct(rng, len(found), len(found)), found, strict=True))
    said = rng.choice(
        [
            f"Sort the lines of {one} by the number in the second column.",
            f"Show {one} ordered by the number in column 2.",
        ]
    )
    return Draft(
        said,
        f"sort -n -k 2 {one}",
        {one: text([f"{w} {n}" for w, n in rows])},
        joined([f"{w} {n}" for w, n in sorted(rows, key=lambda row: row[1])]),
    )


def unique(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = some(rng, 6, 10)
    found += rng.sample(found, 3)
    if level == 1:
        said = rng.choice(
            [
                f"Show the lines of {one} sorted without repeats.",
                f"Sort {one} and print each line only once.",
            ]
        )
        return Draft(said, f"sort -u {one}", {one: text(found)}, joined(sorted(set(found))))
    twice = sorted({word for word in found if found.count(word) > 1})
    if level == 2:
        said = rng.choice(
            [
                f"Which lines of {one} occur more than once? Sort them.",
                f"Show the repeated lines of {one}, sorted.",
            ]
        )
        return Draft(said, f"sort {one} | uniq -d", {one: text(found)}, joined(twice))
    count = sum(found.count(word) == 1 for word in set(found))
    said = rng.choice(
        [
            f"How many lines of {one} occur exactly once?",
            f"Count the lines of {one} that are not repeated.",
        ]
    )
    return Draft(said, f"sort {one} | uniq -u | wc -l", {one: text(found)}, str(count))


def backwards(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found = sentences(rng, 4, 10)
    if level == 1:
        said = rng.choice(
            [
                f"Show the lines of {one} from last to first.",
                f"Print {one} with its lines in reverse order.",
            ]
        )
        return Draft(said, f"tac {one}", {one: text(found)}, joined(found[::-1]))
    if level == 2:
        said = rng.choice(
            [
                f"Write the lines of {one} from last to first into {two}.",
                f"Put {one} with its lines reversed into {two}.",
            ]
        )
        return Draft(
            said,
            f"tac {one} > {two}",
            {one: text(found)},
            same={one: text(found), two: text(found[::-1])},
        )
    said = rng.choice(
        [
            f"Reverse the characters of each line of {one}, and the order of its lines.",
            f"Show {one} upside down and with each line spelled backwards.",
        ]
    )
    return Draft(
        said, f"tac {one} | rev", {one: text(found)}, joined([line[::-1] for line in found[::-1]])
    )


KINDS = (
    Kind("first", "the first lines", first),
    Kind("last", "the last lines", last),
    Kind("nth", "a line by its number", nth),
    Kind("holding", "lines that contain a word", holding),
    Kind("lacking", "lines that lack a word", lacking),
    Kind("column", "fields of a table", column),
    Kind("letters", "characters of each line", letters),
    Kind("alphabet", "alphabetical order", alphabet),
    Kind("numeric", "numeric order", numeric),
    Kind("unique", "lines without repeats", unique),
    Kind("backwards", "lines from last to first", backwards),
)
