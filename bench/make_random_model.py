# SPDX-License-Identifier: Apache-2.0
"""A model of a known shape with random weights, for speed and memory: make_random_model.py qwen2.5-7b|smollm2-135m FOLDER.

Needs torch and transformers; writes bfloat16 safetensors. Nothing is downloaded, there is no tokenizer."""
import sys

import torch
import transformers

SHAPES = {
    "qwen2.5-7b": transformers.Qwen2Config(
        vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, max_position_embeddings=32768, rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=False),
    "smollm2-135m": transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=8192, rms_norm_eps=1e-5, rope_theta=1e5, tie_word_embeddings=True),
}


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        model = transformers.AutoModelForCausalLM.from_config(SHAPES[sys.argv[1]], dtype=torch.bfloat16)
    model.save_pretrained(sys.argv[2])


if __name__ == "__main__":
    main()
