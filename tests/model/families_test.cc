// Every family against its reference implementation: what scripts/fixtures/make_family_fixtures.py stored of small
// models, whose script says what each value is. A value differs by the largest difference of its numbers, relative to
// the largest expected number.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "headlight/formats/safetensors.h"
#include "headlight/model/cache.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

// float32 through two or three blocks on either side; the reference itself is up to 3e-6 from float64
constexpr double kAllowed = 5e-5;

// nats, of a token's loss
constexpr double kAllowedLoss = 1e-4;

// HEADLIGHT_FAMILIES: another folder of the same layout, such as one that scripts/fixtures/compare_models.py writes of
// real models.
std::filesystem::path families_folder() {
  const char* other = std::getenv("HEADLIGHT_FAMILIES");
  return other != nullptr ? other : HEADLIGHT_SOURCE_DIR "/tests/fixtures/model/families";
}

// "llama" is the folder, "llama.gguf" the GGUF file in it
std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(families_folder())) {
    const std::string name = entry.path().filename().string();
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(name);
    if (std::filesystem::exists(entry.path() / "model.gguf")) names.push_back(name + ".gguf");
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::path folder_of(const std::string& name) {
  return families_folder() / std::filesystem::path(name).stem();
}

std::filesystem::path path_of(const std::string& name) {
  const bool gguf = std::filesystem::path(name).extension() == ".gguf";
  return gguf ? folder_of(name) / "model.gguf" : folder_of(name);
}

class Families : public testing::TestWithParam<std::string> {
 protected:
  Safetensors file_{folder_of(GetParam()) / "expected.safetensors"};
  Model model_ = load_model(path_of(GetParam()));
  std::vector<std::vector<int32_t>> sequences_ = cut(whole_numbers("tokens"));

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }

  std::vector<float> numbers(const std::string& name) const {
    const StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr) throw std::runtime_error("no tensor " + name);
    std::vector<float> out(static_cast<std::size_t>(tensor->count));
    read_floats(*tensor, out);
    return out;
  }

  std::vector<int32_t> whole_numbers(const std::string& name) const {
    const StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr || tensor->dtype != DType::kI32) throw std::runtime_error("no i32 tensor " + name);
    std::vector<int32_t> out(static_cast<std::size_t>(tensor->count));
    std::memcpy(out.data(), tensor->bytes.data(), tensor->bytes.size());
    return out;
  }

  // numbers of all tokens -> those of each sequence
  std::vector<std::vector<int32_t>> cut(const std::vector<int32_t>& all) const {
    std::vector<std::vector<int32_t>> out;
    auto next = all.begin();
    for (const int32_t length : whole_numbers("lengths")) {
      out.emplace_back(next, next + length);
      next += length;
    }
    return out;
  }

  Batch batch_of(const std::vector<std::size_t>& which, PadSide side) const {
    std::vector<std::vector<int32_t>> sequences;
    for (const std::size_t b : which) sequences.push_back(sequences_[b]);
    Batch batch = make_batch(sequences, side);
    if (!has("token_types")) return batch;
    const std::vector<std::vector<int32_t>> types = cut(whole_numbers("token_types"));
    for (std::size_t b = 0; b < which.size(); ++b) {
      std::copy(types[which[b]].begin(), types[which[b]].end(),
                batch.types.begin() + batch.row(static_cast<int64_t>(b), 0));
    }
    return batch;
  }

  Batch batch(PadSide side) const {
    std::vector<std::size_t> all(sequences_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return batch_of(all, side);
  }
};

class Deviation {
 public:
  explicit Deviation(std::string name) : name_(std::move(name)) {}

  void add(double got, double expected, int64_t b, int64_t i, int64_t column) {
    const double difference = std::isnan(got) ? INFINITY : std::abs(got - expected);
    size_ = std::max(size_, std::abs(expected));
    if (difference <= difference_) return;
    difference_ = difference;
    worst_ = "sequence " + std::to_string(b) + ", token " + std::to_string(i) + ", column " + std::to_string(column) +
             ": got " + std::to_string(got) + ", expected " + std::to_string(expected);
  }

  // relative to the largest expected number
  void check() const {
    EXPECT_GT(size_, 0) << name_;
    report(difference_ / size_, kAllowed);
  }
  void check_absolute(double allowed) const { report(difference_, allowed); }

 private:
  void report(double deviation, double allowed) const {
    testing::Test::RecordProperty("deviation_" + name_, fmt::format("{:.1e}", deviation));
    EXPECT_LE(deviation, allowed) << name_ << ", " << worst_;
  }

  std::string name_, worst_;
  double difference_ = 0, size_ = 0;
};

// Rows of a batch, each of `columns` numbers, against the stored rows of its tokens.
void compare_rows(const std::string& name, const Batch& batch, const float* rows, int64_t columns,
                  const std::vector<float>& expected) {
  int64_t tokens = 0;
  for (int64_t b = 0; b < batch.size; ++b) tokens += batch.lengths[b];
  ASSERT_EQ(static_cast<int64_t>(expected.size()), tokens * columns) << name;
  Deviation deviation(name);
  auto next = expected.begin();
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      const float* row = rows + batch.row(b, i) * columns;
      for (int64_t c = 0; c < columns; ++c) deviation.add(row[c], *next++, b, i, c);
    }
  }
  deviation.check();
}

void compare_site(const std::string& name, const Batch& batch, const Run& run, const std::vector<float>& expected) {
  const SiteValue<float> site = run.site(name);
  int64_t columns = 1;
  for (std::size_t i = 2; i < site.shape.size(); ++i) columns *= site.shape[i];
  compare_rows(name, batch, site.data, columns, expected);
}

void compare_patterns(const Model& model, const Batch& batch, const Run& run, int64_t block,
                      const std::vector<float>& expected) {
  const int64_t heads = model.config().heads;
  Buffer<float> memory(batch.size * heads * batch.time * batch.time);
  const View<float, 4> weights = memory.view<4>({batch.size, heads, batch.time, batch.time});
  pattern_rows<float>(model, batch, run, block, 0, 0, weights);
  Deviation deviation("blocks." + std::to_string(block) + ".attn.hook_pattern");
  auto next = expected.begin();
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t begin = batch.begins[b];
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < batch.lengths[b]; ++i) {
        for (int64_t j = 0; j < batch.lengths[b]; ++j) {
          const float got = weights(b, head, begin + i, begin + j), want = *next++;
          if (want == 0) {
            ASSERT_EQ(got, 0) << "block " << block << ", head " << head << ", query " << i << " sees key " << j;
          }
          deviation.add(got, want, b, i, head * batch.lengths[b] + j);
        }
      }
    }
  }
  ASSERT_EQ(next, expected.end());
  deviation.check();
}

TEST_P(Families, GiveTheNumbersOfTheReferenceAtEverySite) {
  if (!has("stream.0")) GTEST_SKIP() << "only losses are stored";
  const ModelConfig& config = model_.config();
  for (const PadSide side : {PadSide::kRight, PadSide::kLeft}) {
    SCOPED_TRACE(side == PadSide::kLeft ? "padded left" : "padded right");
    const Batch batch = this->batch(side);
    headlight::Run run = plan(model_, batch, {.logits = has("logits"), .capture = {"*"}});
    forward<float>(model_, batch, run);
    for (int64_t block = 0; block < config.blocks; ++block) {
      const std::string at = "blocks." + std::to_string(block) + ".", number = std::to_string(block);
      compare_site(at + "hook_resid_pre", batch, run, numbers("stream." + number));
      compare_site(at + "attn.hook_q", batch, run, numbers("q." + number));
      compare_site(at + "attn.hook_k", batch, run, numbers("k." + number));
      if (config.query_key_norm) {
        compare_site(at + "attn.hook_norm_q", batch, run, numbers("norm_q." + number));
        compare_site(at + "attn.hook_norm_k", batch, run, numbers("norm_k." + number));
      }
      compare_site(at + "attn.hook_v", batch, run, numbers("v." + number));
      compare_site(at + "attn.hook_z", batch, run, numbers("z." + number));
      compare_site(at + "hook_attn_out", batch, run, numbers("attn_out." + number));
      compare_site(at + "mlp.hook_post", batch, run, numbers("mlp_post." + number));
      compare_site(at + "hook_mlp_out", batch, run, numbers("mlp_out." + number));
      compare_patterns(model_, batch, run, block, numbers("attention." + number));
    }
    const bool post = config.norm_placement == NormPlacement::kPost;
    const std::string last =
        "blocks." + std::to_string(config.blocks - 1) + (post ? ".ln2.hook_normalized" : ".hook_resid_post");
    compare_site(last, batch, run, numbers("stream." + std::to_string(config.blocks)));
    if (has("final")) compare_site("ln_final.hook_normalized", batch, run, numbers("final"));
    if (has("logits")) compare_rows("logits", batch, run.logits().data, config.vocabulary, numbers("logits"));
  }
}

TEST_P(Families, LoseWhatTheReferenceLosesAtEveryToken) {
  if (!has("loss")) GTEST_SKIP() << "predicts no next token";
  const Batch batch = this->batch(PadSide::kRight);
  headlight::Run run = plan(model_, batch);
  forward<float>(model_, batch, run);
  Buffer<float> losses(batch.size * batch.time);
  const double sum = token_losses<float>(batch, run, losses.view<2>({batch.size, batch.time}));
  RecordProperty("perplexity", fmt::format("{:.4f}", std::exp(sum / static_cast<double>(batch.target_count()))));
  Deviation deviation("loss");
  const std::vector<float> expected = numbers("loss");
  auto next = expected.begin();
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) deviation.add(losses[batch.row(b, i)], *next++, b, i, 0);
  }
  ASSERT_EQ(next, expected.end());
  deviation.check_absolute(kAllowedLoss);
  const double expected_sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  EXPECT_NEAR(sum, expected_sum, kAllowedLoss * static_cast<double>(batch.target_count()));
}

TEST_P(Families, GiveOneSequenceTheSameBitsAloneAndPaddedOnEitherSide) {
  const bool logits = has("logits");
  const std::string last = "blocks." + std::to_string(model_.config().blocks - 1) + ".hook_mlp_out";
  const auto run_of = [&](const Batch& batch) {
    headlight::Run run = plan(model_, batch, {.logits = logits, .capture = {last}});
    forward<float>(model_, batch, run);
    return run;
  };
  const auto row_of = [&](const headlight::Run& run, int64_t row) {
    const float* data = run.site(last).data + row * model_.config().width;
    std::vector<float> out(data, data + model_.config().width);
    if (logits) {
      const float* more = run.logits().data + row * model_.config().vocabulary;
      out.insert(out.end(), more, more + model_.config().vocabulary);
    }
    return out;
  };
  const Batch right = batch(PadSide::kRight), left = batch(PadSide::kLeft);
  const headlight::Run of_right = run_of(right), of_left = run_of(left);
  for (int64_t b = 0; b < right.size; ++b) {
    const Batch alone = batch_of({static_cast<std::size_t>(b)}, PadSide::kRight);
    const headlight::Run of_alone = run_of(alone);
    for (int64_t i = 0; i < alone.time; ++i) {
      EXPECT_EQ(row_of(of_right, right.row(b, i)), row_of(of_alone, i)) << "padded right, token " << i;
      EXPECT_EQ(row_of(of_left, left.row(b, i)), row_of(of_alone, i)) << "padded left, token " << i;
    }
  }
}

TEST_P(Families, DecodeTokenByTokenWithTheBitsOfTheWholeForward) {
  if (!model_.config().causal) GTEST_SKIP() << "not causal";
  const int64_t columns = model_.config().vocabulary;
  for (const std::vector<int32_t>& sequence : sequences_) {
    const Batch whole = make_batch({sequence});
    headlight::Run expected = plan(model_, whole);
    forward<float>(model_, whole, expected);
    Cache cache(model_, whole.time);
    headlight::Run step(model_, 1, 1, {.positions = whole.time});
    for (int64_t i = 0; i < whole.time; ++i) {
      forward<float>(model_, make_batch({{sequence[static_cast<std::size_t>(i)]}}), step, {.cache = &cache});
      const float* got = step.logits().data;
      const float* want = expected.logits().data + i * columns;
      EXPECT_EQ(std::vector<float>(got, got + columns), std::vector<float>(want, want + columns)) << "token " << i;
    }
  }
}

TEST(Families, AreThere) {
  if (std::getenv("HEADLIGHT_FAMILIES") != nullptr) GTEST_SKIP() << "another folder";
  EXPECT_EQ(family_names().size(), 23u);
}

INSTANTIATE_TEST_SUITE_P(Model, Families, testing::ValuesIn(family_names()), [](const auto& param_info) {
  std::string name = param_info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace headlight
