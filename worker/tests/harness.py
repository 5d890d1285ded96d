# SPDX-License-Identifier: Apache-2.0
# Test harness: a fork server on the other end of a socket pair, and the jobs in the order the verifier asks for them.
import atexit
import functools
import json
import os
import re
import socket
import struct
import subprocess
import sys

WORKER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, WORKER)

import torch  # noqa: E402

from trace_reader import unpack  # noqa: E402
from truth import truth  # noqa: E402
from wire import content_hash, read_tensor  # noqa: E402

NONCE = "0123456789abcdef"


class ForkServer:
    """`mode`: "record" or "interpret". Not sandboxed unless TRITONRL_SANDBOX_LIBRARY names the library."""

    def __init__(self, mode):
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", os.path.join(WORKER, "broker.py"), "--mode", mode,
                   "--fd", str(theirs.fileno())]
        library = os.environ.get("TRITONRL_SANDBOX_LIBRARY")
        self.process = subprocess.Popen(command + (["--sandbox-library", library] if library else []),
                                        pass_fds=[theirs.fileno()])
        theirs.close()
        self.socket, self.next_id = ours, 0
        self.ready, _ = self.receive()

    def close(self):
        self.socket.close()
        self.process.wait(10)

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise EOFError("the fork server is gone")
            data += part
        return bytes(data)

    def receive(self):
        header, payload = struct.unpack("<IQ", self._read(12))
        return json.loads(self._read(header)), self._read(payload)

    def send(self, header, payload=b""):
        text = json.dumps(header).encode()
        self.socket.sendall(struct.pack("<IQ", len(text), len(payload)) + text + payload)

    def submit(self, job, args, payload=b"", deadline_s=30.0, max_result_bytes=1 << 28, memory_bytes=4 << 30,
               patience_s=300.0):
        self.next_id += 1
        self.send({"type": "job", "id": self.next_id, "job": job, "deadline_s": deadline_s,
                   "patience_s": patience_s, "nonce": NONCE,
                   "max_result_bytes": max_result_bytes, "memory_bytes": memory_bytes, "args": args}, payload)
        return self.next_id

    def run(self, job, args, payload=b"", **limits):
        """(done frame, blob's header or None, tensor area). A trace's dicts are put into the header."""
        self.submit(job, args, payload, **limits)
        done, blob = self.receive()
        header, area = parse_blob(blob)
        if job in ("record", "compile") and header is not None and header["ok"]:
            header.update(unpack(area))
        return done, header, area


def _outcomes():
    """Rule -> outcome, as the verifier's table has them."""
    with open(os.path.join(os.path.dirname(WORKER), "src", "verify", "rules.inc"), encoding="utf-8") as file:
        rows = re.findall(r'^TRITONRL_RULE\(\w+, "(\w+)", k(\w+),', file.read(), re.MULTILINE)
    return {rule: re.sub(r"(?<!^)(?=[A-Z])", "_", outcome).lower() for rule, outcome in rows}


OUTCOMES = _outcomes()


def parse_blob(blob):
    """(header, tensor area). A failure is given its outcome, so that a rule the verifier does not know is an error."""
    try:
        size, = struct.unpack_from("<I", blob)
        header = json.loads(blob[4:4 + size])
    except (struct.error, ValueError):
        return None, b""
    if not isinstance(header, dict) or header.get("nonce") != NONCE:
        return None, b""
    for failure in [header.get("failure"), *(one["failure"] for one in header.get("failures", ()))]:
        if failure is not None:
            failure["outcome"] = OUTCOMES[failure["rule"]]
    return header, blob[4 + size:]


def tensors(structure, area):
    """A STRUCTURE of references as nested Python lists and tensors."""
    if "shape" in structure:
        return read_tensor(structure, area)
    (kind, body), = structure.items()
    if kind == "dict":
        return {key: tensors(item, area) for key, item in body}
    return body if kind == "value" else [tensors(item, area) for item in body]


def close_to(candidate, reference, truth):
    """Same nesting, shapes, dtypes; values within a few units of the dtype's rounding."""
    if isinstance(reference, (list, dict)):
        keys = range(len(reference)) if isinstance(reference, list) else reference
        return type(candidate) is type(reference) and len(candidate) == len(reference) and all(
            close_to(candidate[key], reference[key], truth[key]) for key in keys)
    if not isinstance(candidate, torch.Tensor) or candidate.shape != reference.shape \
            or candidate.dtype != reference.dtype:
        return False
    if not candidate.is_floating_point():
        return bool(torch.equal(candidate, reference))
    error = (candidate.double() - truth.double()).abs()
    unit = torch.finfo(candidate.dtype).eps
    scale = truth.double().abs() + truth.double().square().mean().sqrt()
    return bool((error <= 64 * unit * scale).all())


class Pair:
    """Both fork servers, and the way of a candidate through them."""

    def __init__(self):
        self.recorder, self.interpreter = ForkServer("record"), ForkServer("interpret")

    def close(self):
        self.recorder.close()
        self.interpreter.close()

    def record_args(self, task, candidate, answer, constants=None, compile=True):
        inputs = [{"shape": i["tensor"]["shape"], "dtype": i["tensor"]["dtype"], "stride": i["tensor"]["stride"]}
                  if i["kind"] == "tensor" else {"value": i["value"]} for i in answer["inputs"]]
        return {"task_source": task, "candidate_source": candidate,
                "init_inputs": answer["init_inputs"],
                "cases": [{"name": "full", "constants": constants or {}, "inputs": inputs, "compile": compile}]}

    def interpret(self, trace, own, answer, area, case=0, poison=6, max_programs=4096, launches=True, others=()):
        """Runs a recorded case on the task's inputs; parameters as the verifier would match them."""
        case = trace["cases"][case]
        payload = own + bytes(-len(own) % 16)
        inputs, shift = [], len(payload)
        refs, made = self._weights(case, own, answer, area, len(payload) + len(area))
        for item in answer["inputs"]:
            inputs.append(moved(item["tensor"], shift) if item["kind"] == "tensor" else {"value": item["value"]})
        return self.interpreter.run("interpret", {
            "trace": len(own), "tensors": 0, "case": case["name"], "launches": launches, "parameters": refs, "inputs": inputs,
            "poison": poison, "max_programs": max_programs, **({"others": list(others)} if others else {})}, payload + area + made)

    def _weights(self, case, own, answer, area, at):
        """([[value id, ref]], bytes of those that begin at `at`) of what forward() finds of __init__. Those that have the
        bytes which the task's __init__ leaves get the task's values."""
        shift = len(own) + -len(own) % 16
        by_name = {p["name"]: p for p in answer["parameters"]}
        by_hash = {p["init_hash"]: p for p in answer["parameters"]}
        refs, want = [], []
        for (_, value, *_), parameter in zip(case["trace"]["parameters"], case["parameters"]):
            known = by_name.get(parameter["name"])
            if known is not None and (known["tensor"]["shape"], known["tensor"]["dtype"]) == \
                    (parameter["shape"], parameter["dtype"]):
                refs.append([value, moved(known["tensor"], shift)])
            elif "tensor" in parameter:
                refs.append([value, parameter["tensor"]])  # Inside the trace.
            else:
                want.append(value)
        init, forward = case["trace"]["tape"][:case["init_steps"]], case["trace"]["tape"][case["init_steps"]:]
        made = set(numbers([step["out"] for step in init], "id"))
        read = set(numbers([forward, case["trace"]["outputs"]], "t")) | set(numbers(case["trace"]["outputs"], "id"))
        want += sorted((made & read) - {value for value, _ in refs} - set(want))
        if not want:
            return refs, b""
        _, answered, bytes_made = self.interpreter.run("interpret", {
            "trace": len(own), "tensors": 0, "case": case["name"], "poison": 6,
            "parameters": [[value, parameter["tensor"]] for (_, value, *_), parameter
                           in zip(case["trace"]["parameters"], case["parameters"]) if "tensor" in parameter],
            "init": {"seed": 11, "pins": [], "want": want}}, own + bytes(-len(own) % 16))
        for value, ref in zip(want, answered["values"]):
            known = by_hash.get(content_hash(read_tensor(ref, bytes_made)))
            refs.append([value, moved(known["tensor"], shift) if known else moved(ref, at)])
        return refs, bytes_made

    def judge(self, task, candidate, constants=None, compile=True, deadline_s=60.0):
        """(outcome, detail): "pass", "wrong_output", a failure's outcome, or how the child died."""
        answer, area = truth(task, constants)
        done, trace, own_area = self.recorder.run("record", self.record_args(task, candidate, answer, constants,
                                                                                compile), deadline_s=deadline_s)
        if trace is None or not trace["ok"]:
            return verdict(done, trace)
        done, result, result_area = self.interpret(trace, own_area, answer, area)
        if result is None or not result["ok"]:
            return verdict(done, result)
        same = close_to(tensors(result["outputs"], result_area), tensors(answer["outputs"], area),
                        tensors(answer["outputs64"], area))
        intact = not result["guards_broken"] and (answer["inputs_mutated"] or not any(result["inputs_after"]))
        return ("pass" if same and intact else "wrong_output"), trace


def numbers(nest, key):
    """All integers under `key`, however deep."""
    for name, item in nest.items() if isinstance(nest, dict) else enumerate(nest):
        if name == key and isinstance(item, int):
            yield item
        elif isinstance(item, (dict, list, tuple)):
            yield from numbers(item, key)


def moved(ref, shift):
    return {**ref, "offset": ref["offset"] + shift}


def verdict(done, blob):
    if blob is None:
        return {"memory": "out_of_memory"}.get(done["status"], done["status"]), done
    return blob["failure"]["outcome"], blob["failure"]


@functools.cache
def pair():
    """The fork servers that test files share; they end with this process."""
    servers = Pair()
    atexit.register(servers.close)
    return servers


def recorder():
    return pair().recorder


def record_reference(task, constants=None, weight_seed=7, **case):
    """(answer of the job, tensor area) for a task's own module."""
    done, answer, area = recorder().run("record", {
        "reference": True, "task_source": task, "weight_seed": weight_seed,
        "cases": [{"name": "full", "constants": constants or {}, **case}]})
    if answer is None:
        raise AssertionError(f"no answer: {done}")
    return answer, area
