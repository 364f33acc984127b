// Logits, loss and every gradient against an independent implementation in PyTorch, stored by
// scripts/fixtures/make_model_fixtures.py.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "headlight/formats/safetensors.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HEADLIGHT_SOURCE_DIR "/tests/fixtures/model")) {
    if (entry.is_regular_file()) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <class S>
std::vector<S> values(const Safetensors& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error("no tensor " + name);
  std::vector<S> out(static_cast<std::size_t>(tensor->count));
  if (tensor->bytes.size() != out.size() * sizeof(S)) throw std::runtime_error(name + " is of another type");
  std::memcpy(out.data(), tensor->bytes.data(), tensor->bytes.size());
  return out;
}

template <class T>
struct Fixture {
  Safetensors file;
  BasicModel<T> model;
  Batch batch;

  explicit Fixture(const std::string& name, PadSide side)
      : file(HEADLIGHT_SOURCE_DIR "/tests/fixtures/model/" + name + ".safetensors"),
        model(model_config_from_json(file.metadata().at("config"), name)) {
    for (const Parameter& p : model.parameters().all()) {
      const std::vector<float> stored = values<float>(file, "weight." + p.name);
      EXPECT_EQ(static_cast<int64_t>(stored.size()), p.count) << p.name;
      for (std::size_t i = 0; i < stored.size(); ++i) {
        model.weights()(p.offset + static_cast<int64_t>(i)) = static_cast<T>(stored[i]);
      }
    }
    const std::vector<int32_t> tokens = values<int32_t>(file, "tokens");
    std::vector<std::vector<int32_t>> sequences;
    auto next = tokens.begin();
    for (int32_t length : values<int32_t>(file, "lengths")) {
      sequences.emplace_back(next, next + length);
      next += length;
    }
    batch = make_batch(sequences, side);
  }
};

// largest difference, relative to the largest expected value
struct Deviation {
  double difference = 0;
  double size = 0;
  void add(double got, double expected) {
    difference = std::max(difference, std::isnan(got) ? INFINITY : std::abs(got - expected));
    size = std::max(size, std::abs(expected));
  }
  double relative() const { return difference / size; }
};

template <class T>
void compare(const std::string& name, PadSide side, double bound) {
  Fixture<T> fixture(name, side);
  const Batch& batch = fixture.batch;
  BasicRun<T> run = plan(fixture.model, batch, {.gradients = true});
  forward<T>(fixture.model, batch, run);

  const std::vector<double> logits = values<double>(fixture.file, "logits");
  Deviation of_logits;
  std::size_t next = 0;
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      for (int64_t v = 0; v < fixture.model.config().vocabulary; ++v) {
        of_logits.add(static_cast<double>(run.logits()(b, batch.begins[b] + i, v)), logits[next++]);
      }
    }
  }
  EXPECT_EQ(next, logits.size());
  EXPECT_LE(of_logits.relative(), bound) << "logits";

  Buffer<T> gradients(fixture.model.weights().count());
  const T scale = T(1) / static_cast<T>(batch.target_count());
  const double loss = static_cast<double>(scale) *
                      backward<T>(fixture.model, batch, run, scale, gradients.template view<1>({gradients.count()}));
  const double expected_loss = values<double>(fixture.file, "loss")[0];
  EXPECT_NEAR(loss, expected_loss, bound * expected_loss);
  for (const Parameter& p : fixture.model.parameters().all()) {
    const std::vector<double> expected = values<double>(fixture.file, "gradient." + p.name);
    Deviation deviation;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      deviation.add(static_cast<double>(gradients[p.offset + static_cast<int64_t>(i)]), expected[i]);
    }
    // b_K has no gradient in exact arithmetic: a constant added to all scores of a row changes nothing
    if (deviation.size < 1e-12) deviation.size = 1;
    EXPECT_LE(deviation.relative(), 4 * bound) << p.name;
  }
}

class Fixtures : public testing::TestWithParam<std::string> {};

TEST_P(Fixtures, MatchInDouble) {
  compare<double>(GetParam(), PadSide::kRight, 1e-11);
  compare<double>(GetParam(), PadSide::kLeft, 1e-11);
}

// two dozen products in a row, each good to a few units of 6e-8
TEST_P(Fixtures, MatchInFloat) { compare<float>(GetParam(), PadSide::kRight, 5e-6); }

TEST(Fixtures, AreThere) { EXPECT_GE(fixture_names().size(), 11u); }

INSTANTIATE_TEST_SUITE_P(Model, Fixtures, testing::ValuesIn(fixture_names()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace headlight
