# SPDX-License-Identifier: Apache-2.0
# tools/import_gguf.py on made-up files, whole and damaged. src/model/files/gguf_import_test.cpp imports the real model.
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import import_gguf
import numpy as np

np.seterr(all="ignore")
GGUF = import_gguf.load_gguf(os.path.join(os.environ.get("TRITONRL_DEPS", os.path.join(ROOT, ".deps")), "pkg/gguf"))
F32, Q8_0 = 0, 8


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


class Builder:
    """Builds a GGUF file byte by byte."""

    def __init__(self):
        self.keys, self.values, self.tensors, self.infos, self.data = 0, b"", 0, b"", b""

    def add(self, key, kind, body):
        self.keys += 1
        self.values += string(key) + struct.pack("<I", kind) + body
        return self

    def text(self, key, value):
        return self.add(key, 8, string(value))

    def u32(self, key, value):
        return self.add(key, 4, struct.pack("<I", value))

    def f32(self, key, value):
        return self.add(key, 6, struct.pack("<f", value))

    def boolean(self, key, value):
        return self.add(key, 7, struct.pack("<B", value))

    def texts(self, key, values):
        return self.add(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(string, values)))

    def ints(self, key, values):
        return self.add(key, 9, struct.pack(f"<IQ{len(values)}i", 5, len(values), *values))

    def tensor(self, name, dims, kind, data):  # dims: fastest first, as in the file.
        self.tensors += 1
        self.infos += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(self.data))
        self.data += data + b"\0" * (-len(data) % 32)
        return self

    def floats(self, name, dims, start):
        count = int(np.prod(dims))
        return self.tensor(name, dims, F32, struct.pack(f"<{count}f", *range(start, start + count)))

    def bytes(self):
        head = b"GGUF" + struct.pack("<IQQ", 3, self.tensors, self.keys) + self.values + self.infos
        return head + b"\0" * (-len(head) % 32) + self.data


def tiny_model(architecture="llama", pre="smollm", types=(3, 3, 1, 1, 1, 5)):
    """A Llama of one layer: width 8, two heads of 4, one kv head, untied head."""
    b = Builder().text("general.architecture", architecture)
    for key, value in [("block_count", 1), ("embedding_length", 8), ("feed_forward_length", 3), ("context_length", 64),
                       ("attention.head_count", 2), ("attention.head_count_kv", 1)]:
        b.u32("llama." + key, value)
    b.f32("llama.attention.layer_norm_rms_epsilon", 1e-5).f32("llama.rope.freq_base", 1e5)
    b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre).boolean("tokenizer.ggml.add_bos_token", 0)
    b.texts("tokenizer.ggml.tokens", ["<|im_start|>", "<|im_end|>", "a", "b", "ab", "[PAD5]"])
    b.ints("tokenizer.ggml.token_type", types).texts("tokenizer.ggml.merges", ["a b"])
    b.u32("tokenizer.ggml.bos_token_id", 0).u32("tokenizer.ggml.eos_token_id", 1)
    b.text("tokenizer.chat_template", "{{ x }}")
    b.floats("token_embd.weight", [8, 6], 0).floats("output_norm.weight", [8], 1).floats("output.weight", [8, 6], 100)
    b.floats("blk.0.attn_norm.weight", [8], 2).floats("blk.0.attn_q.weight", [8, 8], 0)
    b.floats("blk.0.attn_k.weight", [8, 4], 0).floats("blk.0.attn_v.weight", [8, 4], 0)
    b.floats("blk.0.attn_output.weight", [8, 8], 0).floats("blk.0.ffn_norm.weight", [8], 3)
    b.floats("blk.0.ffn_gate.weight", [8, 3], 0).floats("blk.0.ffn_up.weight", [8, 3], 0)
    return b.floats("blk.0.ffn_down.weight", [3, 8], 0)


def read_model(folder):
    """Tensors of a folder, by name, as float32."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            bits = np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16
            out[name] = bits.view(np.float32).reshape(entry["shape"])
    return out


class ImportGguf(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.to = os.path.join(self.folder, "model")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_import(self, content, to=None, source_hash="one"):
        path = os.path.join(self.folder, "x.gguf")
        with open(path, "wb") as file:
            file.write(content)
        return import_gguf.import_gguf(GGUF, path, to or self.to, source_hash)

    def error_of(self, content, to=None, source_hash="one"):
        if isinstance(content, Builder):
            content = content.bytes()
        try:
            self.run_import(content, to, source_hash)
        except import_gguf.Refused as refused:
            self.assertTrue(refused.record["hint"] and refused.record["where"])
            self.assertEqual(refused.record["kind"], "usage")
            return refused.record["error"]
        return "no error"

    def test_imports_a_tiny_model(self):
        report = self.run_import(tiny_model().bytes(), self.to + "/")
        self.assertEqual((report["tensors"], report["already_there"]), (12, False))
        tensors = read_model(self.to)
        for name, first in [("q_proj", [0, 2, 1, 3, 4, 6, 5, 7]), ("k_proj", [0, 2, 1, 3]), ("v_proj", [0, 1, 2, 3])]:
            column = tensors[f"model.layers.0.self_attn.{name}.weight"][:, 0] / 8
            self.assertEqual(column.tolist(), first, name)
        self.assertEqual(tensors["lm_head.weight"].shape, (6, 8))
        with open(os.path.join(self.to, "config.json")) as file:
            config = json.load(file)
        self.assertEqual((config["tie_word_embeddings"], config["rms_norm_eps"], config["head_dim"]), (False, 1e-5, 4))
        with open(os.path.join(self.to, "tokenizer.json")) as file:
            self.assertNotIn("[PAD5]", json.load(file)["model"]["vocab"])
        self.assertTrue(self.run_import(tiny_model().bytes())["already_there"])
        self.run_import(tiny_model().bytes(), self.to + "2")
        for name in import_gguf.FILES:
            with open(os.path.join(self.to, name), "rb") as one, open(os.path.join(self.to + "2", name), "rb") as two:
                self.assertEqual(one.read(), two.read(), "an import is deterministic")
        self.assertFalse(os.path.exists(self.to + ".partial"))

    def test_rounds_to_the_nearest_and_to_even(self):
        values = np.array([[0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7FA00000, 0xFF800000]], np.uint32)
        tensor = type("Tensor", (), {"data": values.view(np.float32), "tensor_type": F32})
        got = np.frombuffer(import_gguf.bfloat16(GGUF, tensor, 0), "<u2").tolist()
        self.assertEqual(got, [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7FC0, 0xFF80])

    def test_refuses_truncation_anywhere(self):
        whole = tiny_model().bytes()
        for size in range(0, len(whole) - 32, 7):
            self.assertNotEqual(self.error_of(whole[:size]), "no error", size)
            self.assertFalse(os.path.exists(self.to))
        self.assertEqual(self.error_of(whole), "no error")

    def test_never_trusts_a_length(self):
        whole, refused = tiny_model().bytes(), 0
        for seed in range(1000):  # Damage anywhere in the header: refused or read, and never anything else.
            draw, damaged = random.Random(seed), bytearray(whole)
            for _ in range(3):
                damaged[draw.randrange(1500)] = draw.randrange(256)
            refused += self.error_of(bytes(damaged)) != "no error"
            shutil.rmtree(self.to, ignore_errors=True)
        self.assertGreater(refused, 300)

    def test_names_what_is_wrong(self):
        for content, expected in [
                (b"", "not a GGUF file"), (b"GGML" + b"x" * 100, "not a GGUF file"),
                (b"GGUF" + struct.pack("<I", 2) + b"\0" * 16, "GGUF version 2"),
                (b"GGUF" + struct.pack("<I", 3) + b"\xff" * 16, "breaks off"),
                (Builder().text("a", "x").text("a", "y"), '"a" comes twice'),
                (Builder().boolean("a", 2), "a bool of value 2"),
                (Builder().u32("general.alignment", 33), "general.alignment is 33"),
                (Builder().tensor("t", [256], 99, b""), "is not a valid GGMLQuantizationType"),
                (Builder().tensor("t", [33], Q8_0, b""), "not a multiple of Q8_0 block size (32)"),
                (Builder().tensor("t", [64], F32, b""), "breaks off"),
                (Builder().tensor("t", [1 << 62, 8], F32, b""), "cannot be read as GGUF"),
                (Builder().tensor("t", [64], F32, b"").tensor("u", [64], F32, b"x" * 600), "overlaps"),
                (Builder().floats("t", [1], 0).floats("t", [1], 0), "duplicated tensor"),
                (Builder().u32("general.architecture", 1), "unexpected type"),
                (Builder(), '"general.architecture" is missing')]:
            self.assertIn(expected, self.error_of(content))

    def test_refuses_other_models(self):
        for builder, expected in [
                (tiny_model("gemma"), "architecture gemma"),
                (tiny_model(pre="llama-bpe"), "unknown tokenizer pattern gpt2/llama-bpe"),
                (tiny_model(types=(3, 3, 1, 1, 6, 5)), "token 4 has the unsupported type 6"),
                (tiny_model(types=(3, 3)), "as many token types"),
                (tiny_model().floats("rope_freqs.weight", [2], 0), '"rope_freqs.weight" has no place'),
                (tiny_model().text("llama.rope.scaling.type", "yarn"), "llama.rope.scaling.type"),
                (tiny_model().u32("llama.rope.dimension_count", 3), "is not the head size"),
                (tiny_model().u32("tokenizer.ggml.padding_token_id", 6), "is not in the vocabulary"),
                (tiny_model().boolean("tokenizer.ggml.add_eos_token", 1), "add_eos_token is on")]:
            self.assertIn(expected, self.error_of(builder))
        self.assertFalse(os.path.exists(self.to))

    def test_refuses_to_overwrite(self):
        os.mkdir(self.to)
        self.assertEqual(self.error_of(tiny_model()), "no error", "an empty folder is fine")
        self.assertIn("the folder holds another model", self.error_of(tiny_model(), source_hash="two"))
        os.remove(os.path.join(self.to, "config.json"))
        self.assertIn("not empty and is no imported model", self.error_of(tiny_model()))
        self.assertTrue(os.path.exists(os.path.join(self.to, "model.safetensors")))
        notes = os.path.join(self.folder, "notes.txt")
        with open(notes, "w") as file:
            file.write("x")
        self.assertIn("there is a file", self.error_of(tiny_model(), notes))

    def test_a_folder_that_cannot_be_written_is_the_machines_fault(self):
        blocked = os.path.join(self.folder, "blocked")
        with open(blocked, "w") as file:
            file.write("x")
        with self.assertRaises(import_gguf.Refused) as caught:
            self.run_import(tiny_model().bytes(), os.path.join(blocked, "model"))
        self.assertEqual(caught.exception.record["kind"], "environment")


if __name__ == "__main__":
    unittest.main()
