# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/model: tiny random Llama and Qwen2 folders with transformers' logits and PEFT's LoRA gradients.

    .deps/venv/bin/python tools/make_model_goldens.py [--smollm2 models/smollm2-135m-instruct]

Every number is float32 on the CPU. Needs tools/setup.sh --dev. Deterministic up to the libraries' versions (ORIGIN.md).
"""
import argparse
import pathlib
import shutil

import peft
import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "model"


def randomise(model, seed):
    """Norms, biases and embeddings away from their identities, or dropping them would go unseen."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        scale = 0.3 if p.dim() > 1 else 0.2
        noise = torch.randn(p.shape, generator=generator) * scale
        p.data = noise + 1 if name.endswith("norm.weight") or "layernorm" in name else noise


def make(name, config, shard_size, seed):
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    randomise(model, seed)
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size=shard_size)
    tokens = torch.randint(0, config.vocab_size, (1, 70), generator=torch.Generator().manual_seed(seed + 1))
    with torch.no_grad():
        logits = model(tokens).logits
    save_file({"tokens": tokens[0].to(torch.int32), "logits": logits[0].contiguous()}, folder / "expected.safetensors")
    return model, tokens


def lora_gradients(model, tokens, folder, targets):
    """Mean cross-entropy on the second half of the tokens; gradients of every adapter parameter."""
    torch.manual_seed(5)
    config = peft.LoraConfig(r=4, lora_alpha=10, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    generator = torch.Generator().manual_seed(6)
    for name, p in adapted.named_parameters():
        if "lora_B" in name:
            p.data = torch.randn(p.shape, generator=generator) * 0.2
    adapted.save_pretrained(folder / "adapter")
    adapted.eval()
    logits = adapted(tokens).logits[0]
    half = tokens.shape[1] // 2
    log_probs = torch.log_softmax(logits[half - 1 : -1], -1).gather(1, tokens[0, half:, None])[:, 0]
    loss = -log_probs.mean()
    loss.backward()
    out = {"loss": loss.detach().reshape(1), "log_probs": log_probs.detach(), "logits": logits.detach()}
    for name, p in adapted.named_parameters():
        if "lora_" in name:
            out["grad." + name.replace(".default", "")] = p.grad
    save_file({k: v.contiguous() for k, v in out.items()}, folder / "lora_expected.safetensors")
    for file in ("README.md",):
        (folder / "adapter" / file).unlink(missing_ok=True)


def smollm2(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.randint(0, 49152, (1, 48), generator=torch.Generator().manual_seed(11))
    with torch.no_grad():
        logits = model(tokens).logits[0]
    save_file({"tokens": tokens[0].to(torch.int32), "logits_every_64th": logits[::8, ::64].contiguous()},
              ROOT / "smollm2_expected.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smollm2", help="folder made by `tritonrl model import`")
    args = parser.parse_args()
    ROOT.mkdir(parents=True, exist_ok=True)
    common = dict(vocab_size=640, hidden_size=48, intermediate_size=80, num_hidden_layers=2, max_position_embeddings=256,
                  eos_token_id=2, bos_token_id=1)
    llama = transformers.LlamaConfig(num_attention_heads=6, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True,
                                     rope_theta=10000.0, rms_norm_eps=1e-5, **common)
    model, tokens = make("llama_tiny", llama, "1GB", 1)
    lora_gradients(model, tokens, ROOT / "llama_tiny",
                   ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    scaled = transformers.LlamaConfig(
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False, rope_theta=5000.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 32}, **common)
    make("llama3_rope_tiny", scaled, "1GB", 2)
    qwen = transformers.Qwen2Config(**{**common, "hidden_size": 56}, num_attention_heads=7, num_key_value_heads=1,
                                    tie_word_embeddings=False, rope_theta=1000000.0, rms_norm_eps=1e-6)
    model, tokens = make("qwen2_tiny", qwen, "120KB", 3)
    lora_gradients(model, tokens, ROOT / "qwen2_tiny", ["q_proj", "v_proj", "down_proj"])
    if args.smollm2:
        smollm2(args.smollm2)
    (ROOT / "ORIGIN.md").write_text(
        "# Origin\n\nRandom weights and the numbers that transformers and PEFT compute from them, float32 on a CPU.\n\n"
        "    .deps/venv/bin/python tools/make_model_goldens.py --smollm2 models/smollm2-135m-instruct\n\n"
        f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}. "
        "`smollm2_expected.safetensors` holds logits of SmolLM2-135M-Instruct (Apache-2.0), every 8th row and 64th column.\n")


if __name__ == "__main__":
    main()
