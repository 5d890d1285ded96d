# SPDX-License-Identifier: Apache-2.0
# Turns a GGUF file of a SmolLM2 model into a Hugging Face folder; src/model/files/gguf_import.h says what comes out.
#
#   python -I import_gguf.py --packages FOLDER --hash HASH FILE.gguf FOLDER
#
# Prints {"tensors", "parameters", "vocabulary", "already_there"}, or {"error", "where", "hint", "kind"} for what src/base/error.h
# calls an Error. The same file gives the same bytes. HASH identifies its content and goes into the weights' metadata.
import argparse
import json
import os
import shutil
import struct
import sys
import types

import numpy as np

IMPORTER = "tritonrl-gguf-1"  # The mark of an import: raise it when the output changes.
FILES = ["config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json",
         "tokenizer_config.json"]
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # Types of tokens.
DAMAGED = "the file is damaged or an unfinished download; fetch it again"
ONLY = "only SmolLM2 models (architecture llama, tokenizer smollm) can be imported"


class Refused(Exception):
    def __init__(self, what, where, hint, kind="usage"):
        super().__init__(what)
        self.record = {"error": what, "where": str(where), "hint": hint, "kind": kind}


def load_gguf(packages):
    """The reader and the de-quantiser of the package gguf, without the rest of it, which needs more packages."""
    package = types.ModuleType("gguf")
    package.__path__ = [os.path.join(packages, "gguf")]
    sys.modules["gguf"] = package
    import gguf.gguf_reader
    import gguf.quants

    return gguf


class File:
    """A GGUF file that has been read whole and makes sense; what it does not hold is Refused."""

    def __init__(self, gguf, path):
        self.path = path
        try:
            with open(path, "rb") as file:
                head = file.read(8)
        except OSError as error:
            raise Refused(f"cannot read: {error.strerror}", path, "give a GGUF file")
        if head[:4] != b"GGUF":
            raise Refused("not a GGUF file", path, 'its first four bytes should be "GGUF"')
        if len(head) == 8 and struct.unpack("<I", head[4:])[0] != 3:
            raise Refused(f"GGUF version {struct.unpack('<I', head[4:])[0]}, we read version 3", path,
                          "convert the model again with a current llama.cpp (little-endian)")

        class Reader(gguf.gguf_reader.GGUFReader):
            def _get(self, offset, dtype, count=1, override_order=None):  # The package's own takes what is left.
                if int(offset) + np.dtype(dtype).itemsize * int(count) > self.data.size:
                    raise ValueError(f"it breaks off at byte {offset} of {self.data.size}")
                found = super()._get(offset, dtype, count, override_order)
                if dtype is np.bool_ and found.view(np.uint8).max() > 1:
                    raise ValueError(f"a bool of value {found.view(np.uint8).max()}")
                return found

            def _push_field(self, field, skip_sum=False):
                if field.name in self.fields:
                    raise ValueError(f'key "{field.name}" comes twice')
                return super()._push_field(field, skip_sum)

        try:
            reader = Reader(path)
            step, end = int(reader.alignment), 0
            if step < 8 or step & (step - 1):
                raise ValueError(f"general.alignment is {step}")
            for tensor in sorted(reader.tensors, key=lambda tensor: tensor.data_offset):
                if (tensor.data_offset - reader.data_offset) % step:
                    raise ValueError(f'tensor "{tensor.name}" is not aligned to {step}')
                if tensor.data_offset < end:
                    raise ValueError(f'tensor "{tensor.name}" overlaps the one before it')
                end = tensor.data_offset + tensor.n_bytes
            self.tensors = {tensor.name: tensor for tensor in reader.tensors}
            self.values = {name: field.contents() for name, field in reader.fields.items()}
        except Exception as error:  # The package raises what comes: a damaged file may be anything.
            raise Refused(f"cannot be read as GGUF: {type(error).__name__}: {error}"[:500], path, DAMAGED)

    def refused(self, what):
        return Refused(what, self.path, ONLY)

    def value(self, key, kind, default=None):
        value = self.values.get(key, default)
        if value is None:
            raise Refused(f'key "{key}" is missing', self.path, "is this a language model with a tokenizer?")
        items = value if isinstance(value, list) else [value]
        if isinstance(value, list) != (kind[-1:] == "s") or not all(type(item).__name__ == kind.rstrip("s") for item in items):
            raise Refused(f'key "{key}" has a value of an unexpected type', self.path, DAMAGED)
        return value


def shortest(value):
    """The shortest decimal that is this float32: 1e-05 where the double of it prints as 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def read_shape(file):
    if file.value("general.architecture", "str") != "llama":
        raise file.refused(f"architecture {file.values['general.architecture']}")
    for key in sorted(file.values):
        if key.startswith(("llama.rope.scaling.", "llama.expert")):
            raise file.refused(f"the key {key} is not supported")
    s = types.SimpleNamespace()
    s.layers = file.value("llama.block_count", "int")
    s.hidden = file.value("llama.embedding_length", "int")
    s.intermediate = file.value("llama.feed_forward_length", "int")
    s.heads = file.value("llama.attention.head_count", "int")
    s.kv_heads = file.value("llama.attention.head_count_kv", "int", s.heads)
    s.positions = file.value("llama.context_length", "int")
    s.vocab = len(file.value("tokenizer.ggml.tokens", "strs"))
    s.norm_eps = shortest(file.value("llama.attention.layer_norm_rms_epsilon", "float"))
    s.rope_theta = shortest(file.value("llama.rope.freq_base", "float", 10000.0))
    s.tied = "output.weight" not in file.tensors
    sizes = [s.layers, s.hidden, s.intermediate, s.heads, s.kv_heads, s.vocab, s.positions]
    if (min(sizes) <= 0 or s.layers >= 10000 or s.hidden % s.heads or s.heads % s.kv_heads or
            s.hidden // s.heads % 2):
        raise file.refused(f"impossible sizes: {s.layers} layers, {s.hidden} wide, {s.heads}/{s.kv_heads} heads")
    s.head_dim = s.hidden // s.heads
    for key in ["llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length"]:
        if file.value(key, "int", s.head_dim) != s.head_dim:
            raise file.refused(f"{key} is not the head size")
    return s


def mappings(s):
    """(name in the file, name in the folder, shape, heads whose rows are reordered or 0)."""
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    yield "token_embd.weight", "model.embed_tokens.weight", [s.vocab, s.hidden], 0
    yield "output_norm.weight", "model.norm.weight", [s.hidden], 0
    if not s.tied:
        yield "output.weight", "lm_head.weight", [s.vocab, s.hidden], 0
    for i in range(s.layers):
        for source, target, shape, heads in [
                ("attn_norm", "input_layernorm", [s.hidden], 0),
                ("attn_q", "self_attn.q_proj", [q, s.hidden], s.heads),
                ("attn_k", "self_attn.k_proj", [kv, s.hidden], s.kv_heads),
                ("attn_v", "self_attn.v_proj", [kv, s.hidden], 0),
                ("attn_output", "self_attn.o_proj", [s.hidden, q], 0),
                ("ffn_norm", "post_attention_layernorm", [s.hidden], 0),
                ("ffn_gate", "mlp.gate_proj", [s.intermediate, s.hidden], 0),
                ("ffn_up", "mlp.up_proj", [s.intermediate, s.hidden], 0),
                ("ffn_down", "mlp.down_proj", [s.hidden, s.intermediate], 0)]:
            yield f"blk.{i}.{source}.weight", f"model.layers.{i}.{target}.weight", shape, heads


def bfloat16(gguf, tensor, heads):
    """The tensor's values, rounded to the nearest bfloat16 (ties to even), as bytes.

    llama.cpp rotates neighbouring pairs of rows (2i, 2i + 1) where transformers rotates row i of a head with row
    i + head_dim / 2, so its converter interleaved the halves; here they are put back.
    """
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
    if heads:
        rows, columns = values.shape
        values = values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2)
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype("<u2")
    rounded[np.isnan(values).reshape(rounded.shape)] = 0x7FC0
    return rounded.tobytes()


def read_special(file, vocab):
    """Ids of the tokens with a role, by role."""
    special = {}
    for role, key in [("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")]:
        name = f"tokenizer.ggml.{key}_token_id"
        if role in ("unk", "pad") and name not in file.values:
            continue
        special[role] = file.value(name, "int")
        if not 0 <= special[role] < vocab:
            raise file.refused(f"{name} = {special[role]} is not in the vocabulary")
    return special


def model_config(s, special):
    return {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": special["bos"], "eos_token_id": special["eos"], "head_dim": s.head_dim, "hidden_act": "silu",
        "hidden_size": s.hidden, "initializer_range": 0.02, "intermediate_size": s.intermediate,
        "max_position_embeddings": s.positions, "mlp_bias": False, "model_type": "llama", "num_attention_heads": s.heads,
        "num_hidden_layers": s.layers, "num_key_value_heads": s.kv_heads, "pad_token_id": special.get("pad"),
        "pretraining_tp": 1, "rms_norm_eps": s.norm_eps, "rope_scaling": None, "rope_theta": s.rope_theta,
        "tie_word_embeddings": s.tied, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": s.vocab,
    }


def generation_config(special):
    config = {"_from_model_config": True, "bos_token_id": special["bos"], "eos_token_id": special["eos"]}
    if "pad" in special:
        config["pad_token_id"] = special["pad"]
    return config


def tokenizer_files(file, s, special):
    """tokenizer.json, tokenizer_config.json, special_tokens_map.json."""
    kind = f"{file.value('tokenizer.ggml.model', 'str')}/{file.value('tokenizer.ggml.pre', 'str')}"
    if kind != "gpt2/smollm":
        raise file.refused(f"unknown tokenizer pattern {kind}")
    for key in ["add_bos_token", "add_eos_token", "add_space_prefix"]:
        if file.value(f"tokenizer.ggml.{key}", "bool", False):
            raise file.refused(f"tokenizer.ggml.{key} is on")
    tokens = file.value("tokenizer.ggml.tokens", "strs")
    token_types = file.value("tokenizer.ggml.token_type", "ints")
    if len(tokens) != len(token_types):
        raise file.refused("as many token types as tokens are needed")
    vocab, added, by_id = {}, [], {}
    for i, (token, token_type) in enumerate(zip(tokens, token_types)):
        if token_type == UNUSED:  # A padding row: not in the vocabulary, so never produced.
            continue
        if token_type not in (NORMAL, CONTROL, USER_DEFINED):
            raise file.refused(f"token {i} has the unsupported type {token_type}")
        if vocab.setdefault(token, i) != i:
            raise file.refused(f"token {i} comes twice: {token}")
        if token_type != NORMAL:
            by_id[str(i)] = {"content": token, "lstrip": False, "normalized": False, "rstrip": False,
                             "single_word": False, "special": token_type == CONTROL}
            added.append(by_id[str(i)] | {"id": i})
    merges = [merge.split(" ") for merge in file.value("tokenizer.ggml.merges", "strs")]
    for i, merge in enumerate(merges):
        if len(merge) != 2:
            raise file.refused(f"merge {i} is not a pair: {' '.join(merge)}")

    def byte_level(add_prefix_space):
        return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": True}

    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence",
                          "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level(False)]},
        "post_processor": None, "decoder": byte_level(True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": merges},
    }
    config = {"add_prefix_space": False, "added_tokens_decoder": by_id,
              "chat_template": file.value("tokenizer.chat_template", "str"), "clean_up_tokenization_spaces": False,
              "model_max_length": s.positions, "tokenizer_class": "GPT2Tokenizer"}
    roles = {f"{role}_token": tokens[i] for role, i in special.items()}
    config.update(roles)
    special_tokens = {role: {"content": token, "lstrip": False, "normalized": False, "rstrip": False,
                             "single_word": False} for role, token in roles.items()}
    return tokenizer, config, special_tokens


def is_done(folder, source_hash):
    """Whether `folder` is a finished import of this file; Refused for one that holds anything else."""

    def other(what):
        return Refused(what, folder, "choose another folder, or delete this one if it is no longer needed")

    if not os.path.exists(folder) or (os.path.isdir(folder) and not os.listdir(folder)):
        return False
    if not os.path.isdir(folder):
        raise other("there is a file where the model folder should go")
    if not all(os.path.exists(os.path.join(folder, name)) for name in FILES):
        raise other("the folder is not empty and is no imported model")
    try:
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            length, = struct.unpack("<Q", file.read(8))
            metadata = json.loads(file.read(min(length, 100 << 20)))["__metadata__"]
            mark = metadata["importer"], metadata["source_hash"]
    except (ValueError, LookupError, TypeError, struct.error):
        mark = None
    if mark != (IMPORTER, source_hash):
        raise other("the folder holds another model")
    return True


def write_folder(gguf, file, folder, tensors, documents, metadata):
    """The folder appears whole or not at all."""

    def put(name, parts):
        with open(os.path.join(partial, name), "wb") as out:
            for part in parts:
                out.write(part)
            out.flush()
            os.fsync(out.fileno())

    def dump(value, **how):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, **how).encode()

    partial = folder + ".partial"  # Left by an import that was killed; made anew.
    shutil.rmtree(partial, ignore_errors=True)
    try:
        os.makedirs(partial)
        header, at = {"__metadata__": metadata}, 0
        for tensor, name, shape, _ in tensors:
            size = 2 * tensor.n_elements
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = dump(header, separators=(",", ":"))
        text += b" " * (-len(text) % 8)
        put("model.safetensors", (part for parts in (
            [struct.pack("<Q", len(text)), text], (bfloat16(gguf, tensor, heads) for tensor, _, _, heads in tensors))
            for part in parts))
        for name, value in documents.items():
            put(name, [dump(value, indent=2), b"\n"])
        if os.path.isdir(folder):
            os.rmdir(folder)  # Empty: is_done has made sure.
        os.rename(partial, folder)
    except OSError as error:
        raise Refused(f"cannot write the model: {error.strerror}", error.filename or folder, "", "environment")
    except NotImplementedError as error:
        raise Refused(str(error), file.path, "use a file in F32, F16, BF16 or a quantised type that gguf reads")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def import_gguf(gguf, path, folder, source_hash):
    file = File(gguf, path)
    s = read_shape(file)
    special = read_special(file, s.vocab)
    tensors, unused = [], dict(file.tensors)
    for source, target, shape, heads in mappings(s):
        tensor = unused.pop(source, None)
        if tensor is None:
            raise file.refused(f'tensor "{source}" is missing')
        there = [int(size) for size in reversed(tensor.shape)]
        if there != shape:
            raise file.refused(f'tensor "{source}" has shape {there}, the metadata asks for {shape}')
        tensors.append((tensor, target, shape, heads))
    for name in sorted(unused):
        raise file.refused(f'tensor "{name}" has no place in the model')
    tokenizer, tokenizer_config, special_tokens = tokenizer_files(file, s, special)
    folder = os.path.normpath(folder)
    report = {"tensors": len(tensors), "parameters": sum(tensor.n_elements for tensor, *_ in tensors),
              "vocabulary": s.vocab, "already_there": is_done(folder, source_hash)}
    if not report["already_there"]:
        documents = {"config.json": model_config(s, special), "generation_config.json": generation_config(special),
                     "tokenizer.json": tokenizer, "tokenizer_config.json": tokenizer_config,
                     "special_tokens_map.json": special_tokens}
        metadata = {"format": "pt", "importer": IMPORTER, "source": os.path.basename(path), "source_hash": source_hash,
                    "license": file.value("general.license", "str", "unknown")}
        write_folder(gguf, file, folder, tensors, documents, metadata)
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    parser.add_argument("--hash", required=True)
    parser.add_argument("gguf")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    np.seterr(all="ignore")  # Sizes in damaged files.
    try:
        print(json.dumps(import_gguf(load_gguf(arguments.packages), arguments.gguf, arguments.folder, arguments.hash)))
    except Refused as refused:
        print(json.dumps(refused.record))


if __name__ == "__main__":
    main()
