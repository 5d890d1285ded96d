# SPDX-License-Identifier: Apache-2.0
# Job `record`: runs a candidate's (or a reference's) module on fake tensors; answers with a trace (docs/trace.md).
import sys

import fake_cuda
import session
from case import Case
from failure import Failure
from trace_format import pack
from reference import ReferenceCase
from tape import UnknownTensor
from wire import tensor_bytes


def record(args, work, failures=None):
    """The trace as a dict: {"kernels", "specs", "cubins", "cases"}. Additional cases that fail are left out of it and
    listed in `failures`."""
    now = session.current = session.Session()
    fake_cuda.set_target(args.get("gpu", {}))
    cases = []
    kind = ReferenceCase if args.get("reference") else Case
    for spec in args["cases"]:
        case = kind(args, spec, now, work)
        try:
            case_trace = _trace(case)
        except Failure as failure:
            if failures is None or not spec.get("additional"):
                raise
            failures.append({"case": spec["name"], "failure": failure.to_json()})
            sys.modules.pop(case.module_name, None)
            continue
        parameters = [{**entry, "tensor": tensor_bytes(entry["tensor"]).tobytes()} if "tensor" in entry else entry
                      for entry in case.blob_parameters]
        cases += [{"name": spec["name"] + suffix, "trace": trace, "parameters": parameters, **case.sections,
                   "seconds": case.seconds} for suffix, trace in [("", case_trace), *case.further]]
        sys.modules.pop(case.module_name, None)
    cubins = [{**entry, "tensor": binary} for entry, binary in now.cubins]
    return {"kernels": now.kernels.entries, "specs": now.specs, "cubins": cubins, "cases": cases}


def _trace(case):
    try:
        return case.run()
    except UnknownTensor:
        raise Failure("not_recordable", "forward", "forward() uses a tensor of unknown origin") from None


def run(job, payload, blob, work):
    failures = []
    blob.add_bytes(pack(record(job["args"], work, failures)))
    return {"failures": failures} if failures else {}
