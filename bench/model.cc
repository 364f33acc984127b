// A model as people run it: a prompt at once, in useful operations per second and as a share of the fused
// multiply-add rate, and then a token at a time, in bytes of weights read per second and as a share of the read
// bandwidth. Both ceilings are measured in the same rounds.

#include "headlight/model/model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "ceiling.h"
#include "headlight/base/thread_pool.h"
#include "headlight/model/count.h"
#include "headlight/model/run.h"
#include "report.h"

namespace headlight::bench {
namespace {

std::vector<int32_t> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % vocabulary));
  return tokens;
}

// Bytes of the weights that one token reads: all but the rows of tables that it does not look up.
double bytes_per_token(const Model& model) {
  double elements = 0;
  for (const Parameter& p : model.parameters().all()) {
    const bool is_table = p.name == "embed.W_E" || p.name == "pos_embed.W_pos";
    if (!is_table || (p.name == "embed.W_E" && model.config().tied)) elements += static_cast<double>(p.count);
  }
  return elements * static_cast<double>(dtype_info(model.matrices()).bytes);
}

// The weights that a token reads, where they lie: pages of the same machine are not all equally fast to read.
View<const float, 1> matrices_of(const Model& model) {
  if (model.matrices() == DType::kF32) return model.weights();
  const char* begin = nullptr;
  const char* end = nullptr;
  const auto& all = model.parameters().all();
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (all[static_cast<std::size_t>(i)].shape.size() != 2) continue;
    const StoredMatrix<float> matrix = model.stored(i);
    const char* at = model.matrices() == DType::kBF16 ? reinterpret_cast<const char*>(matrix.bf16.data)
                                                      : reinterpret_cast<const char*>(matrix.f16.data);
    if (begin == nullptr) begin = at;
    end = at + all[static_cast<std::size_t>(i)].count * dtype_info(model.matrices()).bytes;
  }
  return {reinterpret_cast<const float*>(begin), {(end - begin) / static_cast<int64_t>(sizeof(float))}};
}

int run(int count, char** words) {
  CLI::App app("A prompt and decoding on a model, against the multiply-add rate and the read bandwidth.");
  std::string path;
  int64_t prompt = 512, past = 128;
  int rounds = 7, threads = 2;
  bool json = false;
  DType matrices = DType::kF32;
  const std::map<std::string, DType> types{{"f32", DType::kF32}, {"bf16", DType::kBF16}, {"f16", DType::kF16}};
  app.add_option("MODEL", path, "anything that headlight loads")->required();
  app.add_option("--prompt", prompt, "tokens of the prompt")->check(CLI::Range(1, 1 << 20));
  app.add_option("--past", past, "tokens in the cache when one more is decoded")->check(CLI::Range(0, 1 << 20));
  app.add_option("--rounds", rounds, "times that everything is measured")->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads, "threads")->check(CLI::Range(1, 1024));
  app.add_option("--weights", matrices, "f32, bf16 or f16")->transform(CLI::CheckedTransformer(types));
  app.add_flag("--json", json, "one object");
  CLI11_PARSE(app, count, words);
  set_threads(threads);
  const Model model = load_model(path, matrices);
  const ModelConfig& config = model.config();
  Report report(json, rounds);

  const Batch batch = make_batch({some_tokens(prompt, config.vocabulary)});
  Run whole = plan(model, batch, {.logits = false});
  // what follows a prompt reads the last row's logits only
  const double unembedding = 2.0 * static_cast<double>(config.width * config.vocabulary);
  const double flops = count_cost(config, prompt).forward_flops - unembedding * static_cast<double>(prompt);
  std::vector<Work> at_once{multiply_add_ceiling(threads), {"prompt", flops, [&] { forward(model, batch, whole); }}};
  report.add(fmt::format("prompt of {} tokens", prompt), at_once, "Gflop/s");
  if (!json) fmt::print("{:.1f} tokens/s\n", static_cast<double>(prompt) / at_once[1].median());

  BasicCache<float> cache(model, past + 1);
  if (past > 0) {
    const Batch before = make_batch({some_tokens(past, config.vocabulary)});
    Run fill(model, 1, past, {.logits = false, .positions = past + 1});
    forward(model, before, fill, {.cache = &cache});
  }
  const Batch one = make_batch({some_tokens(1, config.vocabulary)});
  Run next(model, 1, 1, {.positions = past + 1});
  std::vector<Work> decoding{read_ceiling(matrices_of(model)), {"token", bytes_per_token(model), [&] {
                                                                  forward(model, one, next, {.cache = &cache});
                                                                  cache.shorten(past);
                                                                }}};
  report.add(fmt::format("one token after {}", past), decoding, "GB/s");
  if (!json) fmt::print("{:.1f} tokens/s\n", 1 / decoding[1].median());
  report.finish();
  return 0;
}

}  // namespace
}  // namespace headlight::bench

int main(int count, char** words) {
  return headlight::bench::run_main([&] { return headlight::bench::run(count, words); });
}
