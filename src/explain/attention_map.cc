#include "headlight/explain/attention_map.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "explain/direct_logits.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

constexpr int64_t kRowsAtOnce = 256;

// largest weight of a row of n keys; NaN when one of them is
float largest_weight(const float* p, int64_t n) {
  float largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (std::isnan(p[j])) return p[j];
    largest = std::max(largest, p[j]);
  }
  return largest;
}

uint8_t quantised(float weight, float largest) {
  if (!(largest > 0)) return 0;
  return static_cast<uint8_t>(std::lround(255 * std::sqrt(static_cast<double>(weight) / static_cast<double>(largest))));
}

void add_rows(View<const float, 2> weights, int64_t first, AttentionMap& map) {
  for (int64_t i = 0; i < weights.size(0); ++i) {
    const float* const p = &weights(i, 0);
    const int64_t keys = map.causal ? first + i + 1 : map.time;
    map.row_max.push_back(largest_weight(p, keys));
    for (int64_t j = 0; j < keys; ++j) map.bytes.push_back(quantised(p[j], map.row_max.back()));
  }
}

// z / scale of one head, (T, M)
Buffer<float> scaled_z(const Model& model, const Batch& batch, const Run& run, const HeadId& head) {
  const View<const float, 4> z = run.site("blocks." + std::to_string(head.block) + ".attn.hook_z");
  const std::vector<double> scales = final_scales(model, batch, run);
  const int64_t width = z.size(3);
  Buffer<float> scaled(batch.time * width);
  for (int64_t t = 0; t < batch.time; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      scaled[t * width + c] =
          static_cast<float>(static_cast<double>(z(0, t, head.head, c)) / scales[static_cast<std::size_t>(t)]);
    }
  }
  return scaled;
}

void add_writes(const Model& model, const Batch& batch, const Run& run, int64_t top, AttentionMap& map) {
  const Buffer<float> z = scaled_z(model, batch, run, map.head);
  const auto raised = raised_tokens(model, map.head, z.view<2>({batch.time, model.config().value_width}), top);
  for (const std::vector<TokenWeight>& row : raised) {
    if (static_cast<int64_t>(row.size()) != top) return map.writes.clear();  // some logit was not a number
    map.writes.insert(map.writes.end(), row.begin(), row.end());
  }
  map.top = top;
}

void check_heads(const ModelConfig& config, const std::vector<HeadId>& heads) {
  for (const HeadId& head : heads) {
    if (head.block < 0 || head.block >= config.blocks || head.head < 0 || head.head >= config.heads) {
      throw LogicError("attention_maps", "no head " + to_string(head));
    }
  }
}

}  // namespace

float AttentionMap::weight(int64_t i, int64_t j) const {
  if (causal && j > i) return 0;
  const int64_t at = causal ? i * (i + 1) / 2 + j : i * time + j;
  const float root = static_cast<float>(bytes[static_cast<std::size_t>(at)]) / 255.0f;
  return row_max[static_cast<std::size_t>(i)] * root * root;
}

std::vector<AttentionMap> attention_maps(const Model& model, const std::vector<int32_t>& tokens,
                                         const MapOptions& options) {
  if (tokens.empty()) throw LogicError("attention_maps", "no token");
  const ModelConfig& config = model.config();
  const std::vector<HeadId> heads = options.heads.empty() ? all_heads(config) : options.heads;
  check_heads(config, heads);
  const int64_t top = has_direct_logits(config) ? std::min(options.top, config.vocabulary) : 0;
  const Batch batch = make_batch({tokens});
  RunOptions plan_for{.logits = false};
  std::set<int64_t> blocks;
  for (const HeadId& head : heads) blocks.insert(head.block);
  for (int64_t block : blocks) {
    const std::string name = "blocks." + std::to_string(block) + ".attn.";
    plan_for.capture.push_back(name + "hook_pattern");
    if (top > 0) plan_for.capture.push_back(name + "hook_z");
  }
  if (top > 0 && model.sites().contains(kFinalScale)) plan_for.capture.push_back(kFinalScale);
  Run run = plan(model, batch, plan_for);
  forward(model, batch, run);
  Buffer<float> buffer(kRowsAtOnce * batch.time);
  std::vector<AttentionMap> maps;
  for (const HeadId& head : heads) {
    AttentionMap map{.head = head, .time = batch.time, .causal = config.causal};
    for (int64_t row = 0; row < batch.time; row += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, batch.time - row);
      const View<float, 4> weights = buffer.view<4>({1, 1, rows, batch.time});
      pattern_rows<float>(model, batch, run, head.block, head.head, row, weights);
      add_rows(weights[0][0], row, map);
    }
    if (top > 0) add_writes(model, batch, run, top, map);
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace headlight
