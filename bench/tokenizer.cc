// Rates of encoding and decoding, beside a plain copy of the text.
//   bench_tokenizer [tokenizer.json] [TEXT] [ROUNDS] [--json]
// Without a file it takes the trained fixtures of the repository and words made of syllables;
// bench/peers/tokenizer_peer.py measures the library `tokenizers` on the same files.

#include "headlight/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headlight/base/file.h"
#include "report.h"

using namespace headlight;

namespace {

// Words of a few thousand kinds, some of them common, with numbers, punctuation and accents between.
std::string made_text(std::size_t size) {
  const std::vector<std::string> syllables{"ba",  "ten", "the", "in", "s", "\xC3\xA9", "ing",
                                           "wor", "ld",  "qu",  "er", "o", "lo",       "str"};
  std::mt19937 random(1);
  std::vector<std::string> words;
  for (int i = 0; i < 4000; ++i) {
    std::string word;
    for (std::size_t parts = 1 + random() % 4; parts > 0; --parts) word += syllables[random() % syllables.size()];
    words.push_back(word);
  }
  std::string text;
  while (text.size() < size) {
    const std::size_t kind = random() % 20;
    if (kind == 0) text += std::to_string(random() % 10000);
    if (kind == 1) text += ",.;!\n"[random() % 5];
    text += words[random() % 4000 * (random() % 4000) / 4000];
    text += ' ';
  }
  return text;
}

void add(bench::Report& report, const std::string& name, const Tokenizer& tokenizer, const std::string& text) {
  const EncodeOptions ids{.drop_unspelled = true}, spans{.drop_unspelled = true, .spans = true};
  const std::vector<int32_t> encoded = tokenizer.encode(text, ids).ids;
  const std::string letters(text.size(), 'a');
  std::string copy(text.size(), ' ');
  const auto bytes = static_cast<double>(text.size());
  const double amount = 1e3 * bytes;  // so that the report's thousands of millions are millions
  std::vector<bench::Work> all{
      {"copy", amount, [&] { std::memcpy(copy.data(), text.data(), text.size()); }},
      {"encode", amount, [&] { tokenizer.encode(text, ids); }},
      {"encode with spans", amount, [&] { tokenizer.encode(text, spans); }},
      {"decode", amount, [&] { tokenizer.decode(encoded); }},
      {"encode one letter's run", amount, [&] { tokenizer.encode(letters, ids); }},
  };
  report.add(fmt::format("{}, {:.2f} bytes/token", name, bytes / static_cast<double>(encoded.size())), all, "MB/s");
}

int run(std::vector<std::string> given) {
  const auto flag = std::find(given.begin(), given.end(), "--json");
  const bool json = flag != given.end();
  if (json) given.erase(flag);
  bench::Report report(json, given.size() > 2 ? std::stoi(given[2]) : 5);
  const std::string text = given.size() > 1 ? read_file(given[1]) : made_text(1 << 20);
  if (!given.empty()) {
    add(report, std::filesystem::path(given[0]).stem().string(), *tokenizer_from_json(read_file(given[0]), given[0]),
        text);
  } else {
    const std::filesystem::path folder = std::filesystem::path(HEADLIGHT_SOURCE_DIR) / "tests" / "fixtures" / "text";
    for (const char* name : {"gpt2", "smollm", "llama3", "qwen2", "llama_legacy", "bert_uncased", "unigram"}) {
      const std::string file = (folder / (std::string(name) + ".json")).string();
      add(report, name, *tokenizer_from_json(read_file(file), file), text);
    }
  }
  report.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main([&] { return run({argv + 1, argv + argc}); });
}
