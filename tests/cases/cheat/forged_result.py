# task: tests/cases/tasks/swish.py
# expect: tampered @compile
# why: writes a made-up success onto every descriptor it finds, then exits
import torch
import torch.nn as nn
import triton
import triton.language as tl
import json
import os
import struct

HEADER = json.dumps({"nonce": "0" * 32, "ok": True, "plan_version": 0, "cases": [], "kernels": [], "cubins": [],
                     "parameters": []}).encode()
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack("<I", len(HEADER)) + HEADER)
    except OSError:
        pass
os._exit(0)
