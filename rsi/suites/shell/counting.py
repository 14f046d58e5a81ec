"""Counting and computing: lines, words, bytes, matches, files, sums and extremes."""

import random

from rsi.suites.shell.kit import (
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


def lines(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    first, second = sentences(rng, 4, 19), sentences(rng, 3, 12)
    files = {one: text(first), two: text(second)}
    if level == 1:
        said = rng.choice(
            [
                f"How many lines are in {one}?",
                f"Count the lines of {one}.",
                f"Tell me the number of lines in {one}.",
            ]
        )
        return Draft(said, f"wc -l < {one}", files, str(len(first)))
    if level == 2:
        said = rng.choice(
            [
                f"How many lines do {one} and {two} have together?",
                f"Count the lines of {one} and {two} in total.",
            ]
        )
        return Draft(said, f"cat {one} {two} | wc -l", files, str(len(first) + len(second)))
    mixed = [line if rng.random() < 0.6 else "" for line in [*first, *second]]
    said = rng.choice(
        [
            f"How many lines of {one} are not empty?",
            f"Count the lines in {one} that have something on them.",
        ]
    )
    count = sum(bool(line) for line in mixed)
    return Draft(said, f"grep -c . {one}", {one: text(mixed)}, str(count))


def words(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = sentences(rng, 3, 12)
    if level == 1:
        said = rng.choice([f"How many words are in {one}?", f"Count the words of {one}."])
        count = sum(len(line.split()) for line in found)
        return Draft(said, f"wc -w < {one}", {one: text(found)}, str(count))
    if level == 2:
        said = rng.choice(
            [
                f"How many words does the first line of {one} have?",
                f"Count the words in line 1 of {one}.",
            ]
        )
        return Draft(
            said, f"head -n 1 {one} | wc -w", {one: text(found)}, str(len(found[0].split()))
        )
    said = rng.choice(
        [f"How many different words are in {one}?", f"Count the distinct words of {one}."]
    )
    command = f"tr -s ' ' '\\n' < {one} | sort -u | wc -l"
    return Draft(said, command, {one: text(found)}, str(len(set(" ".join(found).split()))))


def size(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    first, second = text(sentences(rng, 2, 9)), text(sentences(rng, 2, 9))
    files = {one: first, two: second}
    if level == 1:
        said = rng.choice([f"How many bytes is {one}?", f"What is the size of {one} in bytes?"])
        return Draft(said, f"wc -c < {one}", files, str(len(first)))
    if level == 2:
        said = rng.choice(
            [
                f"How many bytes are {one} and {two} together?",
                f"What is the total size of {one} and {two} in bytes?",
            ]
        )
        return Draft(said, f"cat {one} {two} | wc -c", files, str(len(first) + len(second)))
    said = rng.choice(
        [
            f"How many characters long is the longest line of {one}?",
            f"What is the length of the longest line in {one}?",
        ]
    )
    longest = max(len(line) for line in first.splitlines())
    return Draft(said, f"awk '{{ print length }}' {one} | sort -n | tail -n 1", files, str(longest))


def matches(rng: random.Random, level: int) -> Draft:
    one = name(rng, ".log")
    levels = ["error", "warning", "info"]
    found = [
        f"{rng.choice(levels)} {rng.choice(distinct(rng, 3, 5))}" for _ in range(rng.randint(8, 24))
    ]
    wanted = rng.choice(levels)
    count = sum(line.startswith(wanted) for line in found)
    if level == 1:
        said = rng.choice(
            [
                f"How many lines of {one} contain {wanted}?",
                f"Count the lines with {wanted} in {one}.",
            ]
        )
        return Draft(said, f"grep -c {wanted} {one}", {one: text(found)}, str(count))
    if level == 2:
        said = rng.choice(
            [
                f"How many lines of {one} do not contain {wanted}?",
                f"Count the lines in {one} without {wanted}.",
            ]
        )
        command = f"grep -vc {wanted} {one}"
        return Draft(said, command, {one: text(found)}, str(len(found) - count))
    word = rng.choice(found).split()[1]
    both = sum(line.startswith(wanted) and word in line for line in found)
    said = rng.choice(
        [
            f"How many lines of {one} contain both {wanted} and {word}?",
            f"Count the lines in {one} that have {wanted} and also {word}.",
        ]
    )
    command = f"grep {wanted} {one} | grep -c {word} || true"
    return Draft(said, command, {one: text(found)}, str(both))


def files(rng: random.Random, level: int) -> Draft:
    ending = rng.choice([".csv", ".md", ".cfg"])
    wanted = names(rng, rng.randint(2, 9), ending)
    other = names(rng, rng.randint(1, 5), ".dat")
    made = dict.fromkeys([*wanted, *other], "x\n")
    if level == 1:
        said = rng.choice(
            [f"How many {ending} files are here?", f"Count the files that end in {ending}."]
        )
        return Draft(said, f"ls *{ending} | wc -l", made, str(len(wanted)))
    if level == 2:
        folder = rng.choice(["data", "stuff", "archive"])
        moved = {f"{folder}/{path}": body for path, body in made.items()}
        said = rng.choice(
            [f"How many files are in the folder {folder}?", f"Count the files in folder {folder}."]
        )
        return Draft(said, f"ls {folder} | wc -l", moved, str(len(moved)))
    deep = {f"{rng.choice(['a', 'b/c', 'd'])}/{path}": body for path, body in made.items()}
    said = rng.choice(
        [
            f"How many {ending} files are here and in all folders below?",
            f"Count the {ending} files in this folder and all its subfolders.",
        ]
    )
    return Draft(said, f"find . -name '*{ending}' | wc -l", deep, str(len(wanted)))


def total(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = numbers(rng, 4, 12)
    if level == 1:
        said = rng.choice(
            [f"What is the sum of the numbers in {one}?", f"Add up the numbers in {one}."]
        )
        command = f"awk '{{ s += $1 }} END {{ print s }}' {one}"
        return Draft(said, command, {one: text(found)}, str(sum(found)))
    pairs = [f"{rng.choice(distinct(rng, 3, 4))} {number}" for number in found]
    if level == 2:
        said = rng.choice(
            [f"What is the sum of the second column of {one}?", f"Add up column 2 of {one}."]
        )
        command = f"awk '{{ s += $2 }} END {{ print s }}' {one}"
        return Draft(said, command, {one: text(pairs)}, str(sum(found)))
    limit = sorted(found)[len(found) // 2]
    said = rng.choice(
        [
            f"What is the sum of the numbers in {one} that are above {limit}?",
            f"Add up only the numbers greater than {limit} in {one}.",
        ]
    )
    command = f"awk '$1 > {limit} {{ s += $1 }} END {{ print s }}' {one}"
    return Draft(said, command, {one: text(found)}, str(sum(n for n in found if n > limit)))


def largest(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = numbers(rng, 5, 14)
    if level == 1:
        said = rng.choice(
            [f"What is the largest number in {one}?", f"Find the biggest number in {one}."]
        )
        return Draft(said, f"sort -n {one} | tail -n 1", {one: text(found)}, str(max(found)))
    people = [f"person{place} {number}" for place, number in enumerate(found)]
    if level == 2:
        said = rng.choice(
            [
                f"What is the largest number in the second column of {one}?",
                f"Find the biggest value in column 2 of {one}.",
            ]
        )
        command = f"awk '{{ print $2 }}' {one} | sort -n | tail -n 1"
        return Draft(said, command, {one: text(people)}, str(max(found)))
    best = sorted(found)[-3:][::-1]
    said = rng.choice(
        [
            f"What are the three largest numbers in {one}, largest first?",
            f"Print the 3 biggest numbers of {one}, starting with the biggest.",
        ]
    )
    return Draft(said, f"sort -nr {one} | head -n 3", {one: text(found)}, joined(best))


def smallest(rng: random.Random, level: int) -> Draft:
    one, two = names(rng, 2)
    found, more = numbers(rng, 5, 14), numbers(rng, 5, 9)
    if level == 1:
        said = rng.choice(
            [f"What is the smallest number in {one}?", f"Find the lowest number in {one}."]
        )
        return Draft(said, f"sort -n {one} | head -n 1", {one: text(found)}, str(min(found)))
    if level == 2:
        said = rng.choice(
            [
                f"What is the smallest number in {one} and {two}?",
                f"Find the lowest number over {one} and {two}.",
            ]
        )
        return Draft(
            said,
            f"cat {one} {two} | sort -n | head -n 1",
            {one: text(found), two: text(more)},
            str(min(found + more)),
        )
    second = sorted(found)[1]
    said = rng.choice(
        [
            f"What is the second smallest number in {one}?",
            f"Find the number in {one} that is just above the lowest.",
        ]
    )
    command = f"sort -n {one} | head -n 2 | tail -n 1"
    return Draft(said, command, {one: text(found)}, str(second))


def frequent(rng: random.Random, level: int) -> Draft:
    one = name(rng)
    found = some(rng, 9, 16)
    wanted = rng.choice(found)
    found += [wanted] * 12
    rng.shuffle(found)
    counts = {word: found.count(word) for word in found}
    if level == 1:
        said = rng.choice(
            [
                f"How often does the line {wanted} occur in {one}?",
                f"How many times is {wanted} in {one}?",
            ]
        )
        return Draft(said, f"grep -cx {wanted} {one}", {one: text(found)}, str(counts[wanted]))
    if level == 2:
        said = rng.choice(
            [f"How many different lines does {one} have?", f"Count the distinct lines of {one}."]
        )
        return Draft(said, f"sort -u {one} | wc -l", {one: text(found)}, str(len(counts)))
    said = rng.choice(
        [
            f"Which line is the most frequent in {one}?",
            f"Print the line that occurs most often in {one}.",
        ]
    )
    command = f"sort {one} | uniq -c | sort -nr | head -n 1 | awk '{{ print $2 }}'"
    return Draft(said, command, {one: text(found)}, wanted)


KINDS = (
    Kind("lines", "counting lines", lines),
    Kind("words", "counting words", words),
    Kind("size", "counting bytes", size),
    Kind("matches", "counting lines that match", matches),
    Kind("files", "counting files", files),
    Kind("total", "adding up a column", total),
    Kind("largest", "finding the largest", largest),
    Kind("smallest", "finding the smallest", smallest),
    Kind("frequent", "counting repetitions", frequent),
)
