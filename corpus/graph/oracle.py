#!/usr/bin/env python3
"""Orders graphs independently of stead, to compare with. README.md says what a graph and an answer are."""

import multiprocessing
import sys
import zlib
from heapq import heapify, heappop, heappush

MASK = 0xFFFFFFFFFFFFFFFF
USAGE = "usage: oracle.py solve | check FILE | generate|digests|selftest SEED FIRST COUNT [JOBS]"


def parse(line):
    """The needs of each node."""
    count, *rest = line.strip().split(";")
    needs = [[] for _ in range(int(count))]
    for part in rest:
        node, _, wanted = part.partition(":")
        needs[int(node)].extend(int(need) for need in wanted.split(","))
    return needs


def render(needs):
    """The graph as a line."""
    parts = (f"{node}:{','.join(map(str, wanted))}" for node, wanted in enumerate(needs) if wanted)
    return ";".join([str(len(needs)), *parts])


def missing(needs):
    """The first need of the first node that does not exist."""
    count = len(needs)
    for node, wanted in enumerate(needs):
        for need in wanted:
            if need >= count:
                return f"missing {node}->{need}"
    return None


def solve(needs):
    """The answer, by counting what each node still waits for."""
    refused = missing(needs)
    if refused:
        return refused
    waits = [0] * len(needs)
    waiting = [[] for _ in needs]
    for node, wanted in enumerate(needs):
        distinct = set(wanted)
        waits[node] = len(distinct)
        for need in distinct:
            waiting[need].append(node)
    ready = [node for node, count in enumerate(waits) if count == 0]
    heapify(ready)
    order = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for other in waiting[node]:
            waits[other] -= 1
            if waits[other] == 0:
                heappush(ready, other)
    return " ".join(map(str, order)) if len(order) == len(needs) else "cycle"


def solve_slowly(needs):
    """The same by the definition: look from the top for the first node that can go next, again and again."""
    refused = missing(needs)
    if refused:
        return refused
    order = []
    while len(order) < len(needs):
        for node, wanted in enumerate(needs):
            if node not in order and all(need in order for need in wanted):
                order.append(node)
                break
        else:
            return "cycle"
    return " ".join(map(str, order))


def numbers(seed, index):
    """The function `next` for a graph."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    state = (z ^ (z >> 31)) or 1

    def draw():
        nonlocal state
        state ^= state >> 12
        state = (state ^ (state << 25)) & MASK
        state ^= state >> 27
        return (state * 0x2545F4914F6CDD1D) & MASK

    return draw


def generate(seed, index):
    """The graph with a number."""
    draw = numbers(seed, index)

    def below(limit):
        return ((draw() >> 32) * limit) >> 32

    left = below(300)
    count = 1 + left * below(300) // 299
    shape = below(10)
    density = below(4)
    edges = below((count << density) + 1)
    keys = [draw() for _ in range(count)]
    needs = [[] for _ in range(count)]
    if shape >= 8:
        ranked = sorted(range(count), key=lambda node: (keys[node], node))
        for lower, higher in zip(ranked, ranked[1:]):
            needs[higher].append(lower)
        if shape == 9:
            needs[ranked[0]].append(ranked[-1])
    free = shape in (5, 7)
    for _ in range(edges):
        number = draw()
        a = ((number >> 32) * count) >> 32
        b = ((number & 0xFFFFFFFF) * count) >> 32
        if not free:
            if a == b:
                continue
            if (keys[a], a) < (keys[b], b):
                a, b = b, a
        needs[a].append(b)
        if number & 15 == 0:
            needs[a].append(b)
    if shape == 4:
        a = below(count)
        needs[a].append(below(count))
    if shape in (6, 7):
        a = below(count)
        needs[a].append(count + below(3))
    return needs


def digest(answer):
    return f"{zlib.crc32(answer.encode('ascii')):08x}"


def digests(piece):
    seed, first, count = piece
    return "".join(digest(solve(generate(seed, index))) + "\n" for index in range(first, first + count))


def print_digests(seed, first, count, jobs):
    step = 2000
    pieces = [(seed, at, min(step, first + count - at)) for at in range(first, first + count, step)]
    if jobs == 1:
        sys.stdout.writelines(map(digests, pieces))
        return 0
    with multiprocessing.Pool(jobs) as pool:
        sys.stdout.writelines(pool.imap(digests, pieces))
    return 0


def check(path):
    """Whether every example has the answer that both methods give."""
    wrong = 0
    with open(path, encoding="ascii") as file:
        examples = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    for example in examples:
        graph, _, expected = example.partition(" = ")
        needs = parse(graph)
        for method in (solve, solve_slowly):
            answer = method(needs)
            if answer != expected:
                wrong += 1
                print(f"{graph}: expected '{expected}', {method.__name__} says '{answer}'")
    print(f"{len(examples)} examples, {wrong} wrong answers")
    return 1 if wrong or not examples else 0


def selftest(seed, first, count):
    """Whether both methods agree, and what became of the graphs."""
    seen = {"order": 0, "cycle": 0, "missing": 0}
    for index in range(first, first + count):
        needs = generate(seed, index)
        answer = solve(needs)
        word = answer.split(" ")[0]
        seen[word if word in seen else "order"] += 1
        if answer != solve_slowly(needs) or parse(render(needs)) != needs:
            print(f"seed {seed}, graph {index}: the methods differ: {render(needs)}")
            return 1
    print(f"{count} graphs agree: " + ", ".join(f"{number} {word}" for word, number in seen.items()))
    return 0


def solve_lines(lines):
    sys.stdout.writelines(solve(parse(line)) + "\n" for line in lines if line.strip())
    return 0


def print_graphs(seed, first, count):
    sys.stdout.writelines(render(generate(seed, index)) + "\n" for index in range(first, first + count))
    return 0


def main(arguments):
    match arguments:
        case ["solve"]:
            return solve_lines(sys.stdin)
        case ["check", path]:
            return check(path)
        case ["generate", seed, first, count]:
            return print_graphs(int(seed), int(first), int(count))
        case ["digests", seed, first, count]:
            return print_digests(int(seed), int(first), int(count), 1)
        case ["digests", seed, first, count, jobs]:
            return print_digests(int(seed), int(first), int(count), int(jobs))
        case ["selftest", seed, first, count]:
            return selftest(int(seed), int(first), int(count))
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
