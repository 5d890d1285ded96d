# SPDX-License-Identifier: Apache-2.0
"""What the verifier catches of the faults of make_mutants.py: mutants_table.py OUT --one ONE [--five FIVE] [--settings SETTINGS...] [--markdown]

OUT is make_mutants.py's folder; ONE and FIVE are verdicts of its jobs.jsonl with the original case only and with `cases.type: multi_input`; SETTINGS those of
settings.jobs.jsonl. How a mutant counts:
  not counted   its base is rejected by ONE; it does not compile (compile_error, syntax_error, unsupported, rule_break); the verifier failed (harness_fault)
  equivalent    named so in mutants_equivalent.txt, with the reason: nothing can reveal it
  killable      every other: caught by ONE, by FIVE or by a setting; or `undecided` in that file: nothing has revealed it, and nobody has shown that nothing can
  missed        killable and held for correct (a false accept). With FIVE, mutants whose base FIVE rejects are left out of FIVE's columns
A setting reveals a mutant when it rejects the mutant and accepts its base. Exit code 1: a mutant called equivalent was
caught, or one that passed everything is not in the file.
"""
import argparse
import collections
import json
import math
import pathlib

STILLBORN = {"compile_error", "syntax_error", "unsupported", "rule_break", "no_code"}
NOTES = pathlib.Path(__file__).parent / "mutants_equivalent.txt"


def read_verdicts(path):
    return {v["id"]: v for v in map(json.loads, path.read_text().splitlines())}


def read_notes(path):
    """id -> ("equivalent" or "undecided", reason). Lines: `[status] reason`, then the ids it holds for, one a line."""
    notes, current = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            status, reason = line[1:].split("] ", 1)
            current = (status, reason)
        elif line.strip() and not line.startswith("#"):
            notes[line.split()[0]] = current
    return notes


def interval(hits, total):
    """Wilson's 95 % interval of a rate."""
    if total == 0:
        return "-"
    z, rate = 1.96, hits / total
    middle, half = rate + z * z / (2 * total), z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return f"{100 * rate:.1f} % ({100 * (middle - half) / (1 + z * z / total):.1f}-{100 * (middle + half) / (1 + z * z / total):.1f})"


def failed_case(verdict):
    for case in verdict.get("cases", []):
        if case["outcome"] not in ("pass", "skipped"):
            return case["name"]
    return "original"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--one", type=pathlib.Path, required=True)
    parser.add_argument("--five", type=pathlib.Path)
    parser.add_argument("--settings", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--notes", type=pathlib.Path, default=NOTES)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    rows = list(map(json.loads, (arguments.out / "mutants.jsonl").read_text().splitlines()))
    one = read_verdicts(arguments.one)
    five = read_verdicts(arguments.five) if arguments.five else None
    settings = {}
    for path in arguments.settings:
        settings.update(read_verdicts(path))
    notes = read_notes(arguments.notes)
    bases = [row["id"] for row in rows if row["kind"] == "base"]
    missing = [row["id"] for row in rows if row["id"] not in one or (five is not None and row["id"] not in five)]
    if missing:
        raise SystemExit(f"{len(missing)} jobs have no verdict yet, the first is {missing[0]}")

    revealed = collections.defaultdict(list)
    for name, verdict in settings.items():
        mutant, setting = name.rsplit("@", 1)
        if mutant.startswith("base/") or verdict["outcome"] in ("pass", "harness_fault"):
            continue
        base = next((row["base"] for row in rows if row["id"] == mutant), None)
        if base is not None and settings.get(f"{base}@{setting}", {"correct": False})["correct"]:
            revealed[mutant].append(setting)

    kinds = list(dict.fromkeys(row["kind"] for row in rows if row["kind"] != "base"))
    count = {kind: collections.Counter() for kind in kinds}
    missed = {"one": [], "five": []}
    left, contradictions, unexplained, by_case = [], [], [], collections.Counter()
    for row in rows:
        name, kind = row["id"], row["kind"]
        if kind == "base":
            continue
        counts, outcome = count[kind], one[name]["outcome"]
        counts["mutants"] += 1
        caught_by_five = five is not None and five[row["base"]]["correct"] and five[name]["outcome"] not in ("pass", "harness_fault")
        if not one[row["base"]]["correct"] or outcome in STILLBORN or outcome == "harness_fault":
            counts["not counted"] += 1
            left.append(name)
            continue
        caught_by_one = outcome != "pass"
        status, _ = notes.get(name, ("", ""))
        if status == "equivalent":
            counts["equivalent"] += 1
            if caught_by_one or caught_by_five or revealed[name]:
                contradictions.append(name)
            continue
        counts["killable"] += 1
        if not caught_by_one and not caught_by_five and not revealed[name]:
            counts["undecided"] += 1
            if status != "undecided":
                unexplained.append(name)
        counts["one caught"] += caught_by_one
        if not caught_by_one:
            missed["one"].append(name)
        if five is not None and five[row["base"]]["correct"]:
            counts["five counted"] += 1
            counts["five caught"] += caught_by_five
            counts["one caught of these"] += caught_by_one
            if caught_by_five:
                by_case[failed_case(five[name])] += 1
            else:
                missed["five"].append(name)

    total = sum(count.values(), collections.Counter())
    head = ["kind", "mutants", "not counted", "equivalent", "killable", "of them undecided", "missed by one input"] + (["missed by five cases"] if five else [])
    table = []
    for kind, c in [*count.items(), ("all", total)]:
        line = [kind, c["mutants"], c["not counted"], c["equivalent"], c["killable"], c["undecided"], c["killable"] - c["one caught"]]
        table.append(line + ([c["five counted"] - c["five caught"]] if five else []))
    if arguments.markdown:
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for line in table:
            print("| " + " | ".join(map(str, line)) + " |")
        print()
    else:
        for line in [head, *table]:
            print(f"{line[0]:24s}" + "".join(f"{str(part):>22s}" for part in line[1:]))
    killable = total["killable"]
    print(f"False accepts with one input: {interval(killable - total['one caught'], killable)} of {killable}")
    rejected_one = [base for base in bases if not one[base]["correct"]]
    print(f"Correct kernels rejected with one input: {len(rejected_one)} of {len(bases)} {' '.join(rejected_one)}")
    if five is not None:
        counted = total["five counted"]
        print(f"False accepts with five cases: {interval(counted - total['five caught'], counted)} of {counted}; "
              f"with one input of the same: {interval(counted - total['one caught of these'], counted)}")
        rejected = [f"{base} ({failed_case(five[base])})" for base in bases if not five[base]["correct"] and one[base]["correct"]]
        print(f"Correct kernels rejected with five cases: {len(rejected)} of {len(bases) - len(rejected_one)} {' '.join(rejected)}")
        skipped = collections.Counter(c["name"] for base in bases for c in five[base].get("cases", []) if c["outcome"] == "skipped")
        print(f"Cases skipped, of {len(bases)} bases: " + (", ".join(f"{name} {number}" for name, number in skipped.most_common()) or "none"))
        print("Caught by: " + ", ".join(f"{name} {number}" for name, number in by_case.most_common()))
    if settings:
        reveal = collections.Counter(setting for name in missed["one"] for setting in revealed[name])
        print("Settings that reveal what one input misses: " + ", ".join(f"{name} {number}" for name, number in reveal.most_common()))
    if not arguments.markdown:
        for run, names in missed.items():
            for name in names:
                print(f"missed {run}: {name} revealed by: {', '.join(revealed[name]) or notes.get(name, ('?', '?'))[0]}")
        for name in left:
            print(f"not counted: {name} {one[name]['outcome']}")
    for name in contradictions:
        print(f"called equivalent, but caught: {name}")
    for name in unexplained:
        print(f"passed everything, not in {arguments.notes.name}: {name}")
    return 1 if contradictions or unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
