// A training step (fp32, AdamW) as a whole and part by part, in useful operations per second and as a share of the
// fused multiply-add rate measured in the same rounds. Compared with PyTorch by compare_training.sh.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ceiling.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/adamw.h"
#include "headlight/kernels/attention.h"
#include "headlight/kernels/isa.h"
#include "headlight/kernels/matmul.h"
#include "headlight/model/count.h"
#include "headlight/model/run.h"
#include "headlight/text/tasks.h"
#include "headlight/train/batches.h"
#include "headlight/train/trainer.h"

namespace headlight::bench {
namespace {

struct Shape {
  std::string name;
  int64_t blocks, width, heads, context, batch, vocabulary;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{"large", 6, 384, 6, 256, 8, 256}, {"small", 2, 128, 4, 64, 32, 65}};
  return all;
}

TrainerOptions options_of(const Shape& shape) {
  TrainerOptions options;
  options.model = {
      .width = shape.width, .blocks = shape.blocks, .heads = shape.heads, .positions = Positions::kLearned};
  options.data = repeats({.vocabulary = shape.vocabulary - 1, .context = shape.context});
  options.steps = 1'000'000;
  options.batch = shape.batch;
  return options;
}

// The memory of all parts: those of a trainer, once more, so that each part can be run alone.
class Pieces {
 public:
  explicit Pieces(const Shape& shape)
      : trainer_(options_of(shape)),
        options_(trainer_.options()),
        config_(options_.model),
        model_(trainer_.model().clone()),
        run_(model_, options_.batch, config_.context, {.gradients = true}),
        gradients_(model_.weights().count()),
        m_(gradients_.count()),
        v_(gradients_.count()),
        rows_(options_.batch * config_.context),
        widest_(std::max(config_.feed_forward_width, config_.vocabulary)),
        x_(rows_ * widest_),
        y_(rows_ * widest_),
        heads_(8 * rows_ * config_.width),
        statistics_(options_.batch * config_.heads * config_.context) {
    options_.data->training(1, 0, 0, options_.batch, samples_);
    fill_batch(samples_, 0, options_.batch, batch_);
    for (int64_t i = 0; i < x_.count(); ++i) x_[i] = std::sin(static_cast<float>(i));
    for (int64_t i = 0; i < heads_.count(); ++i) heads_[i] = std::sin(static_cast<float>(3 * i));
    for (float& g : gradients_) g = 1e-3f;
  }

  // Work without useful operations has amount 0.
  std::vector<Work> parts() {
    const ModelCost cost = count_cost(config_, config_.context);
    const double batch = static_cast<double>(options_.batch);
    const double forward_flops = batch * cost.forward_flops;
    const double backward_flops = batch * cost.backward_flops;
    const double attention = batch * cost.attention_flops;
    const double products = forward_flops - attention;
    std::vector<Work> list;
    list.push_back({"step", forward_flops + backward_flops, [this] { trainer_.step(); }});
    list.push_back({"forward", forward_flops, [this] { forward(model_, batch_, run_); }});
    list.push_back({"  its products", products, [this] { each_product([this](auto w) { product(w); }); }});
    list.push_back({"  its attention", attention, [this] { each_block([this] { attend(); }); }});
    // a backward needs the forward before it
    list.push_back({"forward, backward", forward_flops + backward_flops, [this] {
                      forward(model_, batch_, run_);
                      go_back();
                    }});
    list.push_back(
        {"  backward products", 2 * products, [this] { each_product([this](auto w) { product_back(w); }); }});
    list.push_back({"  backward attention", 2.5 * attention, [this] { each_block([this] { attend_back(); }); }});
    list.push_back({"norm, AdamW", 0, [this] { optimise(); }});
    list.push_back({"data", 0, [this] {
                      options_.data->training(1, 1, 0, options_.batch, samples_);
                      fill_batch(samples_, 0, options_.batch, batch_);
                    }});
    return list;
  }

  int64_t parameters() const { return model_.parameters().count(); }

 private:
  template <class Call>
  void each_product(Call call) {
    for (const Parameter& p : model_.parameters().all()) {
      const bool is_table = p.name == "embed.W_E" || p.name.rfind("pos_embed", 0) == 0;
      if (p.shape.size() == 2 && !is_table) call(&p);
    }
  }

  template <class Call>
  void each_block(Call call) {
    for (int64_t block = 0; block < config_.blocks; ++block) call();
  }

  View<const float, 2> weight(const Parameter* p) const {
    return {model_.weights().data + p->offset, {p->shape[0], p->shape[1]}};
  }

  void product(const Parameter* p) {
    matmul<float>({.a = x_.view<2>({rows_, p->shape[0]}), .b = weight(p), .c = y_.view<2>({rows_, p->shape[1]})});
  }

  void product_back(const Parameter* p) {
    const View<const float, 2> x = x_.view<2>({rows_, p->shape[0]});
    const View<const float, 2> dy = x_.view<2>({rows_, p->shape[1]});
    matmul<float>({.a = x.swap(0, 1),
                   .b = dy,
                   .c = {gradients_.data() + p->offset, {p->shape[0], p->shape[1]}},
                   .accumulate = true});
    matmul<float>({.a = dy, .b = weight(p).swap(0, 1), .c = y_.view<2>({rows_, p->shape[0]})});
  }

  View<float, 4> head_rows(int64_t which) {
    return heads_.view<4>({options_.batch, config_.context, config_.heads, config_.head_width},
                          which * rows_ * config_.width);
  }
  View<RowStatistic<float>, 3> statistics() {
    return statistics_.view<3>({options_.batch, config_.heads, config_.context});
  }
  AttentionPattern<float> pattern() const {
    return {.scale = 1 / std::sqrt(static_cast<float>(config_.head_width)), .right = 0};
  }

  void attend() {
    attention_forward({.q = head_rows(0),
                       .k = head_rows(1),
                       .v = head_rows(2),
                       .o = head_rows(3),
                       .statistics = statistics(),
                       .pattern = pattern()});
  }

  void attend_back() {
    attention_backward({.q = head_rows(0),
                        .k = head_rows(1),
                        .v = head_rows(2),
                        .o = head_rows(3),
                        .statistics = statistics(),
                        .d_o = head_rows(4),
                        .dq = head_rows(5),
                        .dk = head_rows(6),
                        .dv = head_rows(7),
                        .pattern = pattern()});
  }

  void go_back() { backward(model_, batch_, run_, 1e-3f, gradients_.view<1>({gradients_.count()})); }

  void optimise() {
    const double norm = sum_of_squares<float>(gradients_.view<1>({gradients_.count()}));
    adamw_step<float>({.w = model_.weights(),
                       .m = m_.view<1>({m_.count()}),
                       .v = v_.view<1>({v_.count()}),
                       .g = gradients_.view<1>({gradients_.count()}),
                       .rate = 1e-9,
                       .decay = 0.1,
                       .gradient_scale = 1 / (1 + std::sqrt(norm))});
  }

  Trainer trainer_;
  TrainerOptions options_;
  ModelConfig config_;
  Model model_;
  Run run_;
  Buffer<float> gradients_, m_, v_;
  int64_t rows_;    // of a batch
  int64_t widest_;  // row of any product
  Buffer<float> x_, y_;
  Buffer<float> heads_;  // q, k, v, o, d_o, dq, dk, dv
  Buffer<RowStatistic<float>> statistics_;
  Samples samples_;
  Batch batch_;
};

nlohmann::ordered_json measure_shape(const Shape& shape, int rounds, bool only_step) {
  Pieces pieces(shape);
  std::vector<Work> all = pieces.parts();
  if (only_step) all.resize(1);
  all.push_back(multiply_add_ceiling(default_pool().threads()));
  measure(all, rounds);
  const double peak = all.back().amount / all.back().median();
  all.pop_back();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Work& work : all) {
    nlohmann::ordered_json json{{"part", work.name}, {"seconds", work.median()}};
    if (work.amount > 0) {
      const double rate = work.amount / work.median();
      json["flops"] = work.amount;
      json["flops_per_second"] = rate;
      json["share_of_peak"] = rate / peak;
    }
    list.push_back(json);
  }
  return {{"shape", shape.name},
          {"blocks", shape.blocks},
          {"width", shape.width},
          {"heads", shape.heads},
          {"context", shape.context},
          {"batch", shape.batch},
          {"vocabulary", shape.vocabulary},
          {"parameters", pieces.parameters()},
          {"threads", default_pool().threads()},
          {"instruction_set", active_isa()},
          {"peak_flops_per_second", peak},
          {"rounds", rounds},
          {"parts", list}};
}

void print(const nlohmann::ordered_json& result) {
  fmt::print("{}: {} blocks, width {}, {} heads, context {}, batch {}, V {}; {} parameters; {} threads, {}\n",
             result["shape"].get<std::string>(), result["blocks"].get<int64_t>(), result["width"].get<int64_t>(),
             result["heads"].get<int64_t>(), result["context"].get<int64_t>(), result["batch"].get<int64_t>(),
             result["vocabulary"].get<int64_t>(), result["parameters"].get<int64_t>(), result["threads"].get<int>(),
             result["instruction_set"].get<std::string>());
  fmt::print("multiply-add peak {:.0f} Gflop/s, medians of {} rounds; useful operations, visible pairs only\n",
             result["peak_flops_per_second"].get<double>() / 1e9, result["rounds"].get<int>());
  fmt::print("{:20} {:>10} {:>10} {:>8}\n", "part", "ms", "Gflop/s", "of peak");
  for (const auto& part : result["parts"]) {
    fmt::print("{:20} {:10.3f}", part["part"].get<std::string>(), 1e3 * part["seconds"].get<double>());
    if (part.contains("flops")) {
      fmt::print(" {:10.1f} {:7.0f}%", part["flops_per_second"].get<double>() / 1e9,
                 100 * part["share_of_peak"].get<double>());
    }
    fmt::print("\n");
  }
}

int run(int count, char** words) {
  CLI::App app("A training step, as a whole and part by part, against the multiply-add rate of the same rounds.");
  std::string shape = "both";
  int rounds = 15;
  int threads = 2;
  std::string only;
  bool json = false;
  app.add_option("--shape", shape, "large, small or both")->check(CLI::IsMember({"large", "small", "both"}));
  app.add_option("--rounds", rounds, "times that everything is measured")->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads, "threads")->check(CLI::Range(1, 1024));
  app.add_option("--only", only, "step: leave out the parts")->check(CLI::IsMember({"step"}));
  app.add_flag("--json", json, "one object per shape");
  CLI11_PARSE(app, count, words);
  set_threads(threads);
  for (const Shape& s : shapes()) {
    if (shape != "both" && shape != s.name) continue;
    const nlohmann::ordered_json result = measure_shape(s, rounds, !only.empty());
    json ? fmt::print("{}\n", result.dump()) : print(result);
  }
  return 0;
}

}  // namespace
}  // namespace headlight::bench

int main(int count, char** words) { return headlight::bench::run(count, words); }
