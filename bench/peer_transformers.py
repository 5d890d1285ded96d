# SPDX-License-Identifier: Apache-2.0
"""transformers + PEFT on the sizes of bench_model.cpp, as JSON lines: peer_transformers.py FOLDER [fp32] [recompute] [sft|sft2048|sft8192|gen1|gen16|gen64|gen512 ...]."""
import json
import sys
import time

import peft
import torch
import transformers

SFT = {"sft": (4, 400, 240, 4), "sft2048": (2, 2048, 2047, 4), "sft8192": (1, 8192, 8191, 4)}  # Examples, tokens, answer, steps.
PROMPT, NEW = 150, 128
DTYPE = torch.float32 if "fp32" in sys.argv else torch.bfloat16  # CPUs without AVX-512 are slow at bfloat16.


def report(what, tokens, seconds):
    peak = torch.cuda.max_memory_allocated() * 1e-9 if torch.cuda.is_available() else 0
    print(json.dumps({"who": "transformers", "what": what, "dtype": str(DTYPE).removeprefix("torch."), "tokens_per_s": round(tokens / seconds, 1),
                      "peak_gb": round(peak, 2)}), flush=True)


def sft(folder, device, what, recompute):
    examples, length, answer, steps = SFT[what]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPE).to(device)
    config = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, task_type="CAUSAL_LM",
                             target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    model = peft.get_peft_model(model, config).train()
    if recompute:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    tokens = torch.randint(100, 40000, (examples, length), device=device)
    labels = tokens.clone()
    labels[:, : length - answer] = -100
    for step in range(steps + 1):
        if step == 1:
            start = time.perf_counter()
        model(input_ids=tokens, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.synchronize()
    report(what, steps * examples * length, time.perf_counter() - start)


def generate(folder, device, batch, what):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPE).to(device).eval()
    tokens = torch.randint(100, 40000, (batch, PROMPT), device=device)
    arguments = dict(do_sample=True, temperature=0.8, top_k=0, min_new_tokens=NEW, max_new_tokens=NEW, pad_token_id=0,
                     attention_mask=torch.ones_like(tokens))
    with torch.inference_mode():
        model.generate(tokens[:, :16], **{**arguments, "max_new_tokens": 4, "min_new_tokens": 4,
                                          "attention_mask": torch.ones_like(tokens[:, :16])})
        start = time.perf_counter()
        model.generate(tokens, **arguments)
    report(what, batch * NEW, time.perf_counter() - start)


def main():
    recompute = "recompute" in sys.argv
    asked = [word for word in sys.argv[2:] if word not in ("recompute", "fp32")] or ["sft", "gen1", "gen16", "gen64"]
    folder = sys.argv[1]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    transformers.logging.set_verbosity_error()
    for what in SFT:
        if what in asked:
            sft(folder, device, what, recompute)
    for batch in (1, 16, 64, 512):
        if f"gen{batch}" in asked:
            generate(folder, device, batch, f"gen{batch}")


if __name__ == "__main__":
    main()
