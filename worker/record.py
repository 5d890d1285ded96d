# SPDX-License-Identifier: Apache-2.0
# Job `record`: runs a candidate's (or a reference's) module on fake tensors; answers with Plans, kernels and cubins.
import sys

import fake_cuda
import session
from case import Case
from failure import Failure
from reference import ReferenceCase
from tape import NeedRealInit


def run(job, payload, blob, work):
    args = job["args"]
    now = session.current = session.Session()
    fake_cuda.TARGET_ARCH = int(args.get("arch", 90))
    cases = []
    kind = ReferenceCase if args.get("reference") else Case
    for spec in args["cases"]:
        case = kind(args, spec, now, work)
        try:
            plan = case.run()
        except NeedRealInit:
            raise Failure("unsupported", "forward", "forward() uses a tensor of unknown origin") from None
        parameters = [{**entry, "tensor": blob.add(entry["tensor"])} if "tensor" in entry else entry
                      for entry in case.blob_parameters]
        cases.append({"name": spec["name"], "plan": plan, "parameters": parameters, **case.sections,
                      "seconds": {key: round(value, 6) for key, value in case.seconds.items()}})
        sys.modules.pop(case.module_name, None)
    cubins = [{**entry, "tensor": blob.add_bytes(binary)} for entry, binary in now.cubins]
    return {"plan_version": 0, "cases": cases, "kernels": now.kernels.entries, "cubins": cubins, "specs": now.specs,
            "parameters": cases[0]["parameters"] if cases else []}
