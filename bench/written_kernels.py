#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verifier beside PyTorch's own outcomes, on kernels that language models wrote: written_kernels.py FOLDER [--program PROGRAM] [--verdicts FILE] [-- ARGUMENTS of tritonrl verify ...]

FOLDER/pairs.jsonl has a line for each candidate:
  {"id": "kernelbook/0012/3",                 a text of its own
   "task": "tasks/0012.py",                   path in FOLDER, or {"code": text}, as in the jobs of `tritonrl verify --batch`
   "candidate": "answers/0012_3.py",          path in FOLDER, {"code": text of a Python file} or {"text": answer with a fenced block}
   "pytorch": {"outcome": "pass",             what really happened when PyTorch ran it (below)
               "error": 1.2e-6,               optional: the largest difference that was seen
               "said": "first line of the error", "where": "H200, torch 2.11.0, triton 3.6.0, allclose 1e-4"},   both optional
   "known": {"ours": "rule_break", "why": "the matrix product is torch.matmul"}}   optional: a disagreement that is meant
Outcomes of PyTorch's: pass (imported, ran, and every output was close), wrong (ran, and some output was not), error (an exception or a crash anywhere), timeout.

Runs `tritonrl verify --batch` on them (its verdicts stay in FOLDER/verdicts.jsonl and are continued), or takes --verdicts. Prints how many
candidates ended how with either, and every disagreement:
  rejected      PyTorch passes it, the verifier does not: a false reject, or a rule that PyTorch does not have
  accepted      the verifier passes it, PyTorch does not: a false accept, or a tolerance that PyTorch does not have
  not judged    the verifier says `unsupported` or `harness_fault` of what PyTorch passes
Exit code 1: there is a disagreement that `known` does not name with this very outcome, a `known` one that is none, or a verdict is missing.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

PYTORCH = ("pass", "wrong", "error", "timeout")
NOT_JUDGED = {"unsupported", "harness_fault"}
ROOT = pathlib.Path(__file__).resolve().parent.parent


class BadPairs(Exception):
    pass


def read_pairs(folder):
    path = folder / "pairs.jsonl"
    pairs, seen = [], set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        try:
            pair = json.loads(line)
            outcome = pair["pytorch"]["outcome"]
            missing = {"id", "task", "candidate"} - set(pair)
        except (ValueError, KeyError, TypeError) as error:
            raise BadPairs(f"{where}: no pair: {error!r}") from None
        if missing:
            raise BadPairs(f"{where}: lacks {', '.join(sorted(missing))}")
        if outcome not in PYTORCH:
            raise BadPairs(f"{where}: pytorch.outcome is {outcome!r}, not one of {', '.join(PYTORCH)}")
        if "known" in pair and not (pair["known"].get("ours") and pair["known"].get("why")):
            raise BadPairs(f'{where}: "known" needs "ours" and "why"')
        if pair["id"] in seen:
            raise BadPairs(f"{where}: the id {pair['id']!r} is used twice")
        seen.add(pair["id"])
        pairs.append(pair)
    return pairs


def verify(folder, pairs, program, arguments):
    jobs, verdicts = folder / "jobs.jsonl", folder / "verdicts.jsonl"
    jobs.write_text("".join(json.dumps({key: pair[key] for key in ("id", "task", "candidate")}) + "\n" for pair in pairs), encoding="utf-8")
    command = [str(program), "verify", "--batch", str(jobs), "--out", str(verdicts), *arguments]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode > 2:  # 0 to 2 tell how candidates ended.
        raise BadPairs(f"{' '.join(command)} ended with exit code {done.returncode}")
    return verdicts


def read_verdicts(path):
    return {verdict["id"]: verdict for verdict in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def kind_of_disagreement(pytorch, ours):
    """"" where both agree on whether the candidate is right."""
    if pytorch == "pass" and ours in NOT_JUDGED:
        return "not judged"
    if (pytorch == "pass") == (ours == "pass"):
        return ""
    return "rejected" if pytorch == "pass" else "accepted"


def reason(verdict):
    for stage in verdict.get("stages", []):
        if stage.get("message"):
            return " ".join(stage["message"].split())[:160]
    return ""


def compare(pairs, verdicts):
    """(table {(pytorch, ours): count}, disagreements [(kind, pair, verdict)], problems [text])."""
    table, found, problems = collections.Counter(), [], []
    for pair in pairs:
        verdict, known = verdicts.get(pair["id"]), pair.get("known")
        if verdict is None:
            problems.append(f"{pair['id']}: no verdict")
            continue
        pytorch, ours = pair["pytorch"]["outcome"], verdict["outcome"]
        table[pytorch, ours] += 1
        kind = kind_of_disagreement(pytorch, ours)
        if kind:
            found.append((kind, pair, verdict))
            if not known:
                problems.append(f"{pair['id']}: {kind}, and nobody says why")
            elif known["ours"] != ours:
                problems.append(f"{pair['id']}: {kind} as {ours}, where {known['ours']} is known")
        elif known:
            problems.append(f"{pair['id']}: is named as a disagreement and is none")
    return table, found, problems


def show(table, found, problems):
    outcomes = sorted({ours for _, ours in table}, key=lambda one: (one != "pass", one))
    width = max([len(one) for one in outcomes] + [7])
    print(" " * 10 + "".join(f"{one:>{width + 2}}" for one in outcomes) + f"{'all':>{width + 2}}")
    for pytorch in PYTORCH:
        counts = [table[pytorch, ours] for ours in outcomes]
        if sum(counts):
            print(f"{pytorch:10}" + "".join(f"{count:>{width + 2}}" for count in [*counts, sum(counts)]))
    judged = sum(count for (_, ours), count in table.items() if ours not in NOT_JUDGED)
    print(f"\n{sum(table.values())} candidates, {judged} judged; rows: PyTorch, columns: the verifier")
    for kind in ("rejected", "accepted", "not judged"):
        ones = [(pair, verdict) for one, pair, verdict in found if one == kind]
        print(f"\n{kind}: {len(ones)}")
        for pair, verdict in ones:
            error = pair["pytorch"].get("error")
            told = [f"{pair['pytorch']['outcome']}{'' if error is None else f' (error {error:g})'} and {verdict['outcome']} @{verdict['stopped_at']}",
                    reason(verdict), pair["pytorch"].get("said", ""), f"known: {pair['known']['why']}" if "known" in pair else ""]
            print(f"  {pair['id']}: " + "; ".join(text for text in told if text))
    for problem in problems:
        print(f"\nPROBLEM {problem}", end="")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tritonrl")
    parser.add_argument("--verdicts", type=pathlib.Path, help="verdicts that are there already")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, arguments = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    try:
        pairs = read_pairs(options.folder)
        path = options.verdicts or verify(options.folder, pairs, options.program, arguments)
        table, found, problems = compare(pairs, read_verdicts(path))
    except (BadPairs, OSError) as error:
        sys.exit(f"written_kernels.py: {error}")
    show(table, found, problems)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
