// SPDX-License-Identifier: Apache-2.0
// Token ids against `tokenizers` on thousands of strings; what a tokenizer.json may not hold.
#include "model/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <utf8proc.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/process/build_paths.h"
#include "base/rng.h"
#include "base/text.h"
#include "model/tokenizer/pretokenizer.h"
#include "model/tokenizer/unicode.h"

namespace tritonrl::tokenizer_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kGolden = fs::path(source_dir()) / "tests/golden/tokenizer";

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

struct GoldenString {
  std::string text;
  std::vector<int32_t> ids;
};

// key: "s", "q" or "r" (see ORIGIN.md).
std::vector<GoldenString> golden_strings(const char* key) {
  std::vector<GoldenString> result;
  for_each_json_line(kGolden / "strings.jsonl", [&](int64_t, const Json& row) {
    result.push_back(
        {row.contains("b") ? from_hex(row["b"]) : row["t"].get<std::string>(), row[key].get<std::vector<int32_t>>()});
  });
  return result;
}

void expect_parity(const Tokenizer& tokenizer, const char* key) {
  std::vector<GoldenString> strings = golden_strings(key);
  ASSERT_GE(strings.size(), 2000u);
  int wrong = 0;
  for (const GoldenString& golden : strings) {
    if (tokenizer.encode(golden.text) == golden.ids) continue;
    if (++wrong <= 5) {
      ADD_FAILURE() << Json(utf8_lossy(golden.text)).dump() << "\n  ours " << Json(tokenizer.encode(golden.text)).dump()
                    << "\n  theirs " << Json(golden.ids).dump();
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << strings.size();
  testing::Test::RecordProperty("strings", static_cast<int>(strings.size()));
}

TEST(Tokenizer, MatchesTokenizersWithSmolLm2sPipeline) {
  expect_parity(Tokenizer::load(kGolden / "smollm2_tiny"), "s");
}
TEST(Tokenizer, MatchesTokenizersWithQwen25sPipeline) { expect_parity(Tokenizer::load(kGolden / "qwen2_tiny"), "q"); }

TEST(Tokenizer, MatchesTokenizersWithSmolLm2sVocabulary) {
  const char* given = std::getenv("TRITONRL_MODEL_DIR");
  fs::path folder = given != nullptr ? fs::path(given) : fs::path(source_dir()) / "models/smollm2-135m-instruct";
  if (!fs::exists(folder / "tokenizer.json")) {
    GTEST_SKIP() << "no model in " << folder << "; make it with `tritonrl model import`, or set TRITONRL_MODEL_DIR";
  }
  Tokenizer tokenizer = Tokenizer::load(folder);
  expect_parity(tokenizer, "r");
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_EQ(tokenizer.defined_count(), 49152);
  EXPECT_THAT(tokenizer.eos_ids(), ElementsAre(2));
  EXPECT_EQ(tokenizer.pad_id(), 2);
}

// Llama 3's, GPT-2's and DeepSeek-Coder's against `tokenizers`.
TEST(PreTokenizer, RunsOtherPipelinesStepByStep) {
  std::map<std::string, PreTokenizer> pipelines;
  Json described = read_json(kGolden / "pipelines.json");
  for (const auto& [name, pipeline] : described.items())
    pipelines.emplace(name, PreTokenizer::from_json(pipeline, name));
  ASSERT_EQ(pipelines.size(), 3u);
  int rows = 0;
  for_each_json_line(kGolden / "words.jsonl", [&](int64_t line, const Json& row) {
    auto text = row["t"].get<std::string>();
    std::vector<std::string_view> words;
    pipelines.at(row["p"]).split(text, words);
    std::vector<size_t> lengths;
    std::string joined;
    for (std::string_view word : words) lengths.push_back(word.size()), joined += word;
    EXPECT_EQ(lengths, row["w"].get<std::vector<size_t>>()) << "line " << line << ": " << row.dump();
    EXPECT_EQ(joined, text);
    ++rows;
  });
  EXPECT_EQ(rows, 2100);
}

TEST(Tokenizer, MatchesTokenizersWithLlama2sPipeline) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "llama2_tiny");
  int wrong = 0, rows = 0;
  for_each_json_line(kGolden / "llama2.jsonl", [&](int64_t line, const Json& row) {
    auto ids = row["ids"].get<std::vector<int32_t>>();
    std::string streamed;
    StreamDecoder stream(tokenizer, true);
    for (int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    auto all = row["all"].get<std::string>(), skip = row["skip"].get<std::string>();
    bool equal = tokenizer.encode(row["t"].get<std::string>()) == ids && tokenizer.decode(ids) == all &&
                 tokenizer.decode(ids, true) == skip && streamed == skip;
    if (!equal && ++wrong <= 5) {
      ADD_FAILURE() << "line " << line << ": " << row.dump() << "\n  ours "
                    << Json(tokenizer.encode(row["t"].get<std::string>())).dump() << " "
                    << Json(tokenizer.decode(ids)).dump() << " " << Json(streamed).dump();
    }
    ++rows;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rows, 1200);
  EXPECT_THAT(tokenizer.eos_ids(), ElementsAre(2));
}

TEST(Tokenizer, WithLlama2sPipelineTextGoesOn) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "llama2_tiny");
  auto parts = [&](std::vector<TextPart> list, std::vector<int32_t> behind = {}) {
    return tokenizer.encode_parts(list, behind);
  };
  std::vector<int32_t> whole = tokenizer.encode("<s>[INST] mask [/INST] import triton </s>");
  std::vector<int32_t> out = tokenizer.encode("<s>[INST] mask [/INST]"),
                       answer = parts({{" import triton </s>", true}}, out);
  out.insert(out.end(), answer.begin(), answer.end());
  EXPECT_EQ(out, whole) << "no second space between a prompt and its answer";
  EXPECT_EQ(tokenizer.decode(answer, true), "import triton ") << "one space in front is left out";
  EXPECT_EQ(parts({{"mask", true}}, {1}), tokenizer.encode("mask")) << "<s> ends no text";
  EXPECT_EQ(parts({{"</s>", false}}), tokenizer.encode_plain("</s>"));
  EXPECT_THAT(tokenizer.encode_plain("</s>"), testing::Not(testing::Contains(2)));
  EXPECT_TRUE(parts({{"", false}}).empty());
  // A second text of the same decoder begins anew.
  StreamDecoder stream(tokenizer);
  for (int round = 0; round < 2; ++round) {
    std::string text;
    for (int32_t id : tokenizer.encode("  mask")) text += stream.push(id);
    EXPECT_EQ(text + stream.finish(), "  mask");
  }
}

// CodeLlama's markers are words of its vocabulary that merges lead up to.
TEST(Tokenizer, TextDoesNotMergeIntoAControlToken) {
  Json json = read_json(kGolden / "llama2_tiny/tokenizer.json");
  Json &vocab = json["model"]["vocab"], &merges = json["model"]["merges"], &added = json["added_tokens"];
  auto word = [&](const std::string& text, int id) { vocab[text] = id; };
  int marker = added.back()["id"];
  ASSERT_EQ(added.back()["content"], "\u2581<PRE>");
  added.erase(added.size() - 1);
  word("\u2581<", marker), word("\u2581<e", marker + 1), word("\u2581<eo", marker + 2), word("\u2581<eot", marker + 3);
  word("\u2581<eot>", marker + 4);
  Json first =
      Json::array({{"\u2581", "<"}, {"\u2581<", "e"}, {"\u2581<e", "o"}, {"\u2581<eo", "t"}, {"\u2581<eot", ">"}});
  first.insert(first.end(), merges.begin(), merges.end());
  merges = first;
  std::vector<int32_t> merged = Tokenizer::parse(json, "x").encode("<eot>");
  EXPECT_THAT(merged, ElementsAre(marker + 4)) << "a word like others";
  added.push_back({{"id", marker + 4}, {"content", "\u2581<eot>"}, {"special", true}, {"normalized", false}});
  Tokenizer tokenizer = Tokenizer::parse(json, "x");
  EXPECT_EQ(tokenizer.encode("<eot>").size(), 2u) << "up to the last merge";
  EXPECT_EQ(tokenizer.encode_plain("<eot>").front(), marker + 3);
  EXPECT_THAT(tokenizer.encode("\u2581<eot>"), ElementsAre(marker + 4)) << "where the template spells it";
}

TEST(Tokenizer, WithLlama2sPipelineMegabytesAreNoTrap) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "llama2_tiny");
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "a b ";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Tokenizer, RefusesByteFallbackWithoutAllBytesOrWithAnotherPipeline) {
  Json good = read_json(kGolden / "llama2_tiny/tokenizer.json");
  auto refusal = [](const Json& json) -> std::string {
    try {
      Tokenizer::parse(json, "x");
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(good), "accepted");
  Json bad = good;
  bad["model"]["vocab"].erase("<0x7F>");
  EXPECT_THAT(refusal(bad), HasSubstr("<0x7F>"));
  bad = good;
  bad["normalizer"]["normalizers"].erase(0);
  EXPECT_THAT(refusal(bad), HasSubstr("byte fallback with the normalizer"));
  bad = good;
  bad["pre_tokenizer"] = {{"type", "Metaspace"}};
  EXPECT_THAT(refusal(bad), HasSubstr("byte fallback with the pre_tokenizer"));
  bad = good;
  bad["decoder"]["decoders"].erase(3);
  EXPECT_THAT(refusal(bad), HasSubstr("byte fallback with the decoder"));
  bad = good;
  bad["model"]["ignore_merges"] = true;
  EXPECT_THAT(refusal(bad), HasSubstr("ignore_merges"));
  bad = good;
  for (Json& token : bad["added_tokens"]) token["normalized"] = true;  // As older files of Llama 2 have it.
  std::string chat = "<s>[INST] mask [/INST] x </s><s>[INST] y";
  EXPECT_EQ(Tokenizer::parse(bad, "x").encode(chat), Tokenizer::parse(good, "x").encode(chat));
  bad["added_tokens"][1]["special"] = false;
  EXPECT_THAT(refusal(bad), HasSubstr("normalized"));
}

TEST(PreTokenizer, KnowsAllPunctuation) {
  Json split = {{"type", "Split"}, {"pattern", {{"Regex", "\\p{P}"}}}, {"behavior", "Isolated"}, {"invert", false}};
  Json last = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  Json pipeline = {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, last}}}}};
  PreTokenizer pre = PreTokenizer::from_json(pipeline, "x");
  std::vector<char> is_one(0x110000, 0);
  Json ranges = read_json(kGolden / "unicode.json")["punctuation"];
  for (size_t i = 0; i + 1 < ranges.size(); i += 2) {
    for (int c = ranges[i]; c <= ranges[i + 1].get<int>(); ++c) is_one[static_cast<size_t>(c)] = 1;
  }
  int wrong = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    char encoded[4];
    auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), reinterpret_cast<utf8proc_uint8_t*>(encoded));
    std::string text = cat("a", std::string_view(encoded, static_cast<size_t>(length)), "a");
    std::vector<std::string_view> words;
    pre.split(text, words);
    if (words.size() != (is_one[c] ? 3u : 1u) && ++wrong <= 20) ADD_FAILURE() << "code point " << c;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, PartsAreOneTextInWhichOnlySomeSpellControlTokens) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "qwen2_tiny");
  auto parts = [&](std::vector<TextPart> list) { return tokenizer.encode_parts(list); };
  std::string control = "<|im_end|>", text = "return tl.load";
  EXPECT_EQ(parts({{control, true}}), tokenizer.encode(control));
  EXPECT_EQ(parts({{control, false}}), tokenizer.encode_plain(control));
  for (size_t cut = 0; cut <= text.size(); ++cut) {  // Words across borders.
    EXPECT_EQ(parts({{text.substr(0, cut), false}, {text.substr(cut) + control, true}}),
              tokenizer.encode(text + control));
  }
  // Not across a border either.
  EXPECT_EQ(parts({{"<|im_", true}, {"end|>", false}}), tokenizer.encode_plain(control));
  EXPECT_EQ(parts({{"\xc3", false}, {"\xa9", false}}), tokenizer.encode("é")) << "a character may be in two parts";
  EXPECT_TRUE(parts({}).empty());
}

TEST(Tokenizer, ContentIsNoAddedTokenWhereWholeWordsAreLookedUp) {
  Json json = read_json(kGolden / "qwen2_tiny/tokenizer.json");
  json["model"]["ignore_merges"] = true;
  json["added_tokens"].push_back({{"id", 900}, {"content", "secret"}, {"special", true}});
  Tokenizer tokenizer = Tokenizer::parse(json, "x");
  EXPECT_THAT(tokenizer.encode("secret"), ElementsAre(900));
  EXPECT_THAT(tokenizer.encode_plain("secret"), testing::Not(testing::Contains(900)));
  // Nor where the vocabulary has it.
  int32_t id = json["model"]["vocab"].at("return");
  EXPECT_THAT(tokenizer.encode_plain("return"), ElementsAre(id));
  json["added_tokens"].push_back({{"id", id}, {"content", "return"}, {"special", true}});
  tokenizer = Tokenizer::parse(json, "x");
  EXPECT_THAT(tokenizer.encode("return"), ElementsAre(id));
  EXPECT_THAT(tokenizer.encode_plain("return"), testing::Not(testing::Contains(id)));
}

// Class of every code point, seen through the words around it.
TEST(PreTokenizer, KnowsTheClassOfEveryCodePoint) {
  Json golden = read_json(kGolden / "unicode.json");
  std::vector<char> classes(0x110000, 'O');
  for (auto [key, name] : {std::pair("letters", 'L'), {"numbers", 'N'}, {"spaces", 'S'}}) {
    const Json& ranges = golden[key];
    for (size_t i = 0; i + 1 < ranges.size(); i += 2) {
      for (int c = ranges[i]; c <= ranges[i + 1].get<int>(); ++c) classes[static_cast<size_t>(c)] = name;
    }
  }
  for (const char* family : {"smollm2_tiny", "qwen2_tiny"}) {
    bool qwen = family[0] == 'q';
    PreTokenizer pre = PreTokenizer::from_json(read_json(kGolden / family / "tokenizer.json"), family);
    std::vector<std::string_view> words;
    auto count = [&](const std::string& text) {
      words.clear();
      pre.split(text, words);
      return words.size();
    };
    int wrong = 0;
    for (uint32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      char encoded[4];
      auto length =
          utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), reinterpret_cast<utf8proc_uint8_t*>(encoded));
      std::string s(encoded, static_cast<size_t>(length));
      char kind = classes[c];
      bool line_end = c == '\n' || c == '\r';
      size_t between = kind == 'L' ? 1 : kind == 'N' ? 3 : qwen ? (line_end ? 3 : 2) : (c == ' ' ? 2 : 3);
      size_t twice = kind == 'N' ? 2 : 1;
      size_t after = kind == 'O' || (qwen && (kind == 'L' || line_end)) ? 1 : 2;
      if (count("x" + s + "x") != between || count(s + s) != twice || count("!" + s) != after) {
        if (++wrong <= 5) ADD_FAILURE() << family << " " << std::hex << c << " should be " << kind;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Tokenizer, DecodesLikeTokenizers) {
  std::map<std::string, Tokenizer> tokenizers;
  tokenizers.emplace("smollm2", Tokenizer::load(kGolden / "smollm2_tiny"));
  tokenizers.emplace("qwen2", Tokenizer::load(kGolden / "qwen2_tiny"));
  int rows = 0;
  for_each_json_line(kGolden / "decode.jsonl", [&](int64_t line, const Json& row) {
    const Tokenizer& tokenizer = tokenizers.at(row["family"]);
    auto ids = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.decode(ids), row["all"].get<std::string>()) << "line " << line;
    EXPECT_EQ(tokenizer.decode(ids, true), row["skip"].get<std::string>()) << "line " << line;
    for (bool skip : {false, true}) {
      StreamDecoder stream(tokenizer, skip);
      std::string pieces;
      for (int32_t id : ids) pieces += stream.push(id);
      pieces += stream.finish();
      EXPECT_EQ(pieces, row[skip ? "skip" : "all"].get<std::string>()) << "streamed, line " << line;
    }
    ++rows;
  });
  EXPECT_EQ(rows, 300);
}

TEST(Tokenizer, StreamsWholeCharactersOnly) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "qwen2_tiny");
  StreamDecoder stream(tokenizer);
  std::vector<std::string> pieces;
  for (int32_t id : tokenizer.encode("\xF0\x9F\x98\x80")) pieces.push_back(stream.push(id));
  EXPECT_THAT(pieces, ElementsAre("", "", "", "\xF0\x9F\x98\x80"));
  EXPECT_EQ(stream.finish(), "");
  stream.push(*tokenizer.token_to_id("\xC3\xB0"));  // Byte F0.
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, PlainTextNeverBecomesASpecialToken) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "qwen2_tiny");
  int32_t end = *tokenizer.token_to_id("<|im_end|>");
  EXPECT_THAT(tokenizer.encode("a<|im_end|>"), testing::Contains(end));
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special(*tokenizer.token_to_id("<tool_call>")));
  int seen = 0;
  for (const GoldenString& golden : golden_strings("q")) {
    std::vector<int32_t> ids = tokenizer.encode_plain(golden.text);
    for (int32_t id : ids) EXPECT_LT(id, 600) << golden.text;
    EXPECT_EQ(tokenizer.decode(ids), nfc(utf8_lossy(golden.text)));
    seen += ids != golden.ids;
  }
  EXPECT_GT(seen, 50) << "the golden strings should spell special tokens";
  EXPECT_EQ(tokenizer.defined_count(), tokenizer.vocab_size());
  EXPECT_FALSE(tokenizer.is_defined(tokenizer.vocab_size()));
  EXPECT_FALSE(tokenizer.is_defined(-1));
  EXPECT_EQ(tokenizer.bytes_of(1 << 30), "");
}

TEST(Tokenizer, ThreadsShareOne) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "smollm2_tiny");
  std::vector<GoldenString> strings = golden_strings("s");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Rng rng = Rng(1).at(static_cast<uint64_t>(t));
      for (int i = 0; i < 3000; ++i) {
        const GoldenString& golden = rng.pick(strings);
        wrong += tokenizer.encode(golden.text) != golden.ids;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, HugeWordsAreNoTrap) {
  Tokenizer tokenizer = Tokenizer::load(kGolden / "qwen2_tiny");
  for (const char* unit : {"a", " ", "!", "\n", "\xC3\xA9", "<", "ab "}) {
    std::string text;
    while (text.size() < 500'000) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << unit;
  }
}

std::string error_of(const Json& tokenizer) {
  try {
    Tokenizer::parse(tokenizer, "x/tokenizer.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_EQ(error.where(), "x/tokenizer.json");
    EXPECT_FALSE(error.hint().empty());
    return error.message();
  }
  return "no error";
}

TEST(Tokenizer, RefusesUnknownPipelines) {
  Json good = read_json(kGolden / "qwen2_tiny/tokenizer.json"), bad = good;
  EXPECT_EQ(error_of(good), "no error");
  auto changed = [&](const char* pointer, Json value) {
    Json copy = good;
    copy[Json::json_pointer(pointer)] = std::move(value);
    return error_of(copy);
  };
  // What PCRE2 might take in another way, or not at all; what can match nothing.
  for (const char* regex : {"\\w+", "\\p{L}+|.", "^a", "(?<=a)b", "[a-z&&[^b]]", "a{2,x}", "\\p{Lu}", "[\\S]", "(?>a)",
                            "a*", "[a", "(a", ""}) {
    EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", regex), HasSubstr("unknown tokenizer pattern"))
        << regex;
  }
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), HasSubstr("unknown tokenizer pattern"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/1", {{"type", "Whitespace"}}),
              HasSubstr("unknown tokenizer pattern"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasSubstr("unknown tokenizer pattern"));
  EXPECT_THAT(changed("/pre_tokenizer", {{"type", "Metaspace"}}), HasSubstr("unknown tokenizer pattern"));
  EXPECT_THAT(changed("/pre_tokenizer", nullptr), HasSubstr("unknown tokenizer pattern"));
  EXPECT_THAT(changed("/pre_tokenizer", 3), HasSubstr("unknown tokenizer pattern"));
  EXPECT_EQ(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(ab)+|\\p{L}{1,3}"), "no error");
  EXPECT_EQ(changed("/normalizer", {{"type", "Sequence"}, {"normalizers", Json::array()}}), "no error");
  EXPECT_THAT(changed("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}),
              HasSubstr("unknown tokenizer pattern: normalizer"));
  EXPECT_THAT(changed("/normalizer", {{"type", "NFKC"}}), HasSubstr("unknown tokenizer pattern: normalizer"));
  EXPECT_THAT(changed("/model/type", "Unigram"), HasSubstr("unknown tokenizer model type \"Unigram\""));
  EXPECT_THAT(changed("/model/unk_token", "<unk>"), HasSubstr("unk_token"));
  EXPECT_THAT(changed("/model/byte_fallback", true), HasSubstr("byte fallback with the normalizer"));
  EXPECT_THAT(changed("/decoder/type", "WordPiece"), HasSubstr("unknown decoder"));
  EXPECT_THAT(changed("/post_processor/type", "RobertaProcessing"), HasSubstr("post_processor"));
  EXPECT_THAT(changed("/post_processor", {{"type", "Sequence"}, {"processors", {{{"type", "BertProcessing"}}}}}),
              HasSubstr("post_processor"));
  // What adds tokens at the ends of a text is there in many models and does nothing here.
  EXPECT_EQ(changed("/post_processor", {{"type", "Sequence"}, {"processors", {{{"type", "TemplateProcessing"}}}}}),
            "no error");
}

TEST(Tokenizer, RefusesBrokenVocabularies) {
  Json good = read_json(kGolden / "smollm2_tiny/tokenizer.json");
  auto changed = [&](const char* pointer, Json value) {
    Json copy = good;
    copy[Json::json_pointer(pointer)] = std::move(value);
    return error_of(copy);
  };
  EXPECT_THAT(changed("/model/vocab/a", -1), HasSubstr("token a has the id -1"));
  EXPECT_THAT(changed("/model/vocab/a", 4e9), HasSubstr("token a has the id"));
  EXPECT_THAT(changed("/model/vocab/a", 99999999), HasSubstr("token a has the id"));
  EXPECT_THAT(changed("/model/vocab/a", good["model"]["vocab"]["b"]), HasSubstr("two tokens have the id"));
  EXPECT_THAT(changed("/model/vocab", Json::array()), HasSubstr("wrong type"));
  EXPECT_THAT(changed("/model/merges/0", "onlyone"), HasSubstr("merge 0 is not a pair"));
  EXPECT_THAT(changed("/model/merges/1", {"a", 1}), HasSubstr("merge 1 is not a pair"));
  EXPECT_THAT(changed("/model/merges/1", {"a", "nope"}), HasSubstr("merge 1 needs the token nope, which is missing"));
  EXPECT_THAT(changed("/added_tokens/0/lstrip", true), HasSubstr("lstrip is not supported"));
  EXPECT_EQ(changed("/added_tokens/0/normalized", true), "no error") << "there is no normalizer";
  good["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(changed("/added_tokens/0/normalized", true), HasSubstr("normalized is not supported"));
  good["normalizer"] = nullptr;
  EXPECT_THAT(changed("/added_tokens/0/content", ""), HasSubstr("no content"));
  EXPECT_THAT(changed("/added_tokens/0/id", 5), HasSubstr("has the ids 0 and 5"));
  EXPECT_THAT(error_of(Json::array()), HasSubstr("not a JSON object"));
  Json copy = good;
  copy["model"].erase("merges");
  EXPECT_THAT(error_of(copy), HasSubstr("\"merges\" is missing"));
}

TEST(Tokenizer, ReadsEndTokensWhereTheyAre) {
  fs::path folder = fs::path(testing::TempDir()) / cat("tokenizer_", ::getpid());
  fs::create_directories(folder);
  fs::copy_file(kGolden / "qwen2_tiny/tokenizer.json", folder / "tokenizer.json", fs::copy_options::overwrite_existing);
  EXPECT_TRUE(Tokenizer::load(folder).eos_ids().empty());
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_THAT(Tokenizer::load(folder).eos_ids(), ElementsAre(602));
  write_file(folder / "tokenizer_config.json", R"({"eos_token": {"content": "<|im_end|>"}})");
  EXPECT_THAT(Tokenizer::load(folder).eos_ids(), ElementsAre(602));
  write_file(folder / "config.json", R"({"eos_token_id": 600})");
  EXPECT_THAT(Tokenizer::load(folder).eos_ids(), ElementsAre(600));
  write_file(folder / "generation_config.json", R"({"eos_token_id": [602, 600], "pad_token_id": 600})");
  Tokenizer tokenizer = Tokenizer::load(folder);
  EXPECT_THAT(tokenizer.eos_ids(), ElementsAre(602, 600));
  EXPECT_EQ(tokenizer.pad_id(), 600);
  write_file(folder / "generation_config.json", R"({"eos_token_id": 9999})");
  EXPECT_THROW(Tokenizer::load(folder), Error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tritonrl::tokenizer_test
