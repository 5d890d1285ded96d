# SPDX-License-Identifier: Apache-2.0
"""Pieces that make_tokenizer_goldens.py builds its texts of."""

NAMES = "x y out x_ptr y_ptr n_elements BLOCK_SIZE offsets mask acc row col tmp stride_xm eps weight bias pid".split()
NAMES += ["num_warps"]
DOTTED = [
    "tl.load", "tl.store", "tl.exp", "tl.sum", "tl.maximum", "tl.program_id", "tl.arange", "torch.empty_like",
    "torch.nn.functional.softmax", "triton.cdiv", "self.weight.shape", "tl.constexpr", "x.stride",
]
LINES = [
    "import torch",
    "import triton\nimport triton.language as tl",
    "@triton.jit",
    "class Model(nn.Module):",
    "# note: don't",
    '"""Doc string."""',
    "grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)",
    "    return out",
    "\treturn\tNone",
    "if x>=0 and y!=1:",
    'assert a.is_cuda, f"bad {a.device!r}"',
    "x = x[:, None] * y[None, :]",
    "pass",
    "```python",
    "```",
    "mask = a | b",
]
WORDS = {
    "latin": "naïve façade Ångström Straße œuvre łódź İstanbul señor déjà ĳ ﬁ ŉ ſtill",
    "greek_cyrillic": "Ελλάδα φίλος ς Москва ёлка Україна њ Љубав",
    "cjk": "你好世界 編程 日本語 カタカナ ひらがな 한국어 컴퓨터 㐀 𠮷野家 。、「」", "semitic": "مرحبا العالم שלום עולם بِسْمِ",
    "indic_thai": "नमस्ते हिन्दी বাংলা தமிழ் ภาษาไทย ກຂ မြန်မာ ខ្មែរ",
    "other": "ქართული Հայերեն አማርኛ ᏣᎳᎩ ᠮᠣᠩᠭᠣᠯ ꦗꦮ 𐍈 𝒜𝓑 ﷺ ①Ⅷ",
}
EMOJI = [
    "😀", "👍🏽", "👩‍💻", "🇩🇪", "❤️", "🏳️‍🌈", "1️⃣", "👨‍👩‍👧‍👦", "🫠", "☃", "→", "∑", "≠", "…", "—", "“", "”", "©",
    "\u200d", "\ufe0f",
]
SPACES = [
    " ", " ", " ", "  ", "\n", "\n", "\t", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u1680", "\u180e",
    "\u2003", "\u200b", "\u2028", "\u2029", "\u202f", "\u3000", "\ufeff",
]
MARKS = [
    "\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u0334", "\u093c", "\u3099", "\u302a", "\u05b0", "\u064b",
    "\u0f71", "\u1dfa", "\u1ac5", "\u08ca", "\u20d0", "\U0001e136", "\U00011930", "\U0001133b", "\U0001d165",
    "\u0338", "\u0c3c",
]
NUMBERS = [
    "0", "7", "42", "1234567890", "3.14159", "1e-5", "0x1F", "½", "²", "Ⅷ", "٣", "९", "𝟘", "①", "\U00010d40",
    "\U0001e4f0", "一", "1,000", "10%",
]
CONTRACTIONS = [
    "don't", "I'LL", "we've", "IT'S", "'re", "'\u017f", "’s", "it's'd", "'ll'", "'M", "'Ve", "rock'n'roll", "'t",
    "''s", "x'd1", " 's", "1's",
]
PIECES = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "im_end|>", "<|", "|>", "<", "<tool_call>",
    "</tool_call>", "<tool_", "<repo_name>", "<|im_start|", "<|IM_END|>", "<file_sep>", "<|fim_prefix|>",
    "<|object_ref_start|>", "< |im_end|>", "<<|im_end|>>", "<empty_output>",
]
