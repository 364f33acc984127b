#include "headlight/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/kernels/adamw.h"
#include "headlight/model/run.h"
#include "headlight/train/batches.h"
#include "headlight/train/schedule.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace headlight {
namespace {

// Neighbours in the packed run that decay alike, so that one call of AdamW serves them.
struct Group {
  int64_t begin = 0;
  int64_t end = 0;
  bool decays = false;
};

std::vector<Group> decay_groups(const ParameterTable& table) {
  std::vector<Group> groups;
  for (const Parameter& p : table.all()) {
    if (groups.empty() || groups.back().decays != p.decays) groups.push_back({p.offset, 0, p.decays});
    groups.back().end = p.offset + p.count;
  }
  return groups;
}

Progressing first_state(const TrainerOptions& options) {
  Model model(options.model);
  initialise(model, static_cast<uint64_t>(options.seed));
  const int64_t count = model.weights().count();
  return {std::move(model), Buffer<float>(count), Buffer<float>(count)};
}

void clear(LossSums& losses, std::size_t classes) {
  losses.sums.assign(classes, 0.0);
  losses.targets.assign(classes, 0);
}

void add(const LossSums& from, LossSums& to) {
  for (std::size_t c = 0; c < from.sums.size(); ++c) {
    to.sums[c] += from.sums[c];
    to.targets[c] += from.targets[c];
  }
}

double mean(double sum, int64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double mean_of_all(const LossSums& losses) {
  return mean(std::accumulate(losses.sums.begin(), losses.sums.end(), 0.0),
              std::accumulate(losses.targets.begin(), losses.targets.end(), int64_t{0}));
}

// list = mean losses by class; keeps its memory.
void set_means(const LossSums& losses, const std::vector<std::string>& names, NamedNumbers& list) {
  list.resize(names.size());
  for (std::size_t c = 0; c < names.size(); ++c) {
    list[c].first = names[c];
    list[c].second = mean(losses.sums[c], losses.targets[c]);
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

struct Trainer::State {
  State(const TrainerOptions& given, Progressing first)
      : options(given),
        now(std::move(first)),
        gradients(now.model.weights().count()),
        rows(options.batch / options.microbatches),
        run(now.model, rows, options.data->context(), {.gradients = true}),
        losses(rows * options.data->context()),
        groups(decay_groups(now.model.parameters())) {
    if (now.since_entry.sums.empty()) clear(now.since_entry, classes());
    clear(of_step, classes());
  }

  std::size_t classes() const { return options.data->classes().size(); }
  Schedule schedule() const { return {options.rate, options.warmup, options.steps, options.final_rate}; }

  void run_batch();
  void add_losses(int64_t first);
  double clipping_scale(double norm) const { return options.clip > 0 && norm > options.clip ? options.clip / norm : 1; }
  void update(double rate, double scale);

  TrainerOptions options;
  Progressing now;
  Buffer<float> gradients;
  int64_t rows;  // sequences run at a time
  Run run;
  Samples samples;  // of the whole step
  Batch batch;      // the part that runs
  Buffer<float> losses;
  LossSums of_step;
  StepReport last;
  std::vector<Group> groups;
  std::optional<Evaluator> evaluator;
  std::unique_ptr<RunFolder> folder;
  int64_t saved_step = -1;  // of the last checkpoint in the folder
};

// losses of the part that begins at sequence `first`, after forward()
void Trainer::State::add_losses(int64_t first) {
  token_losses(batch, run, losses.view<2>({rows, batch.time}));
  const uint8_t* what = samples.classes.data() + first * batch.time;
  for (int64_t i = 0; i < rows * batch.time; ++i) {
    if (batch.targets[i] == kNoTarget) continue;
    of_step.sums[what[i]] += static_cast<double>(losses[i]);
    ++of_step.targets[what[i]];
  }
}

// gradients = d(mean loss of the step's batch) / d(weights), part by part
void Trainer::State::run_batch() {
  options.data->training(static_cast<uint64_t>(options.seed), now.step, 0, options.batch, samples);
  const int64_t targets = static_cast<int64_t>(samples.targets.size()) -
                          std::count(samples.targets.begin(), samples.targets.end(), kNoTarget);
  const float scale = targets > 0 ? 1.0f / static_cast<float>(targets) : 0.0f;
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  clear(of_step, classes());
  for (int64_t first = 0; first < options.batch; first += rows) {
    fill_batch(samples, first, rows, batch);
    forward(now.model, batch, run);
    if (classes() > 1) add_losses(first);
    const double sum = backward(now.model, batch, run, scale, gradients.view<1>({gradients.count()}));
    if (classes() > 1) continue;
    of_step.sums[0] += sum;
    of_step.targets[0] += batch.target_count();
  }
}

void Trainer::State::update(double rate, double scale) {
  for (const Group& group : groups) {
    const std::array<int64_t, 1> size{group.end - group.begin};
    adamw_step<float>({.w = {now.model.weights().data + group.begin, size},
                       .m = now.m.view<1>(size, group.begin),
                       .v = now.v.view<1>(size, group.begin),
                       .g = gradients.view<1>(size, group.begin),
                       .step = now.step + 1,
                       .rate = rate,
                       .beta1 = options.beta1,
                       .beta2 = options.beta2,
                       .epsilon = options.epsilon,
                       .decay = group.decays ? options.decay : 0.0,
                       .gradient_scale = scale});
  }
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Trainer::Trainer(const TrainerOptions& options) {
  const TrainerOptions resolved = resolve(options);
  state_ = std::make_unique<State>(resolved, first_state(resolved));
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

Trainer Trainer::resume(const std::filesystem::path& folder, std::vector<std::string>* messages) {
  std::vector<std::string> local;
  std::vector<std::string>& said = messages != nullptr ? *messages : local;
  std::unique_ptr<RunFolder> run = RunFolder::open(folder);
  const TrainerOptions options = run->options(said);
  std::optional<Progressing> last = read_last_checkpoint(folder, options.model, said);
  const int64_t saved_step = last ? last->step : -1;
  run->prepare_resume(options, saved_step);
  Trainer trainer(std::make_unique<State>(options, last ? std::move(*last) : first_state(options)));
  trainer.state_->folder = std::move(run);
  trainer.state_->saved_step = saved_step;
  return trainer;
}

const TrainerOptions& Trainer::options() const noexcept { return state_->options; }
const Model& Trainer::model() const noexcept { return state_->now.model; }
int64_t Trainer::step_number() const noexcept { return state_->now.step; }
int64_t Trainer::tokens_seen() const noexcept {
  return state_->now.step * state_->options.batch * state_->options.data->context();
}
bool Trainer::done() const noexcept { return state_->now.step >= state_->options.steps; }
int64_t Trainer::bytes() const noexcept {
  return 4 * state_->gradients.count() * static_cast<int64_t>(sizeof(float)) + state_->run.bytes();
}
const StepReport& Trainer::last_step() const noexcept { return state_->last; }

bool Trainer::step() {
  if (done()) return false;
  State& s = *state_;
  const auto begin = std::chrono::steady_clock::now();
  s.run_batch();
  const double norm = std::sqrt(sum_of_squares<float>(s.gradients.view<1>({s.gradients.count()})));
  const double loss = mean_of_all(s.of_step);
  if (!std::isfinite(norm) || !std::isfinite(loss)) {
    throw Error(ErrorKind::kRuntime, "step " + std::to_string(s.now.step + 1),
                "the loss is " + std::to_string(loss) + ", the gradient's norm " + std::to_string(norm),
                "a smaller learning rate than " + std::to_string(s.options.rate) + " or a longer warm-up may help");
  }
  const double rate = learning_rate(s.schedule(), s.now.step + 1);
  s.update(rate, s.clipping_scale(norm));
  ++s.now.step;
  add(s.of_step, s.now.since_entry);
  const double seconds = seconds_since(begin);
  s.now.seconds += seconds;
  s.last.step = s.now.step;
  s.last.loss = loss;
  set_means(s.of_step, s.options.data->classes(), s.last.losses);
  s.last.rate = rate;
  s.last.gradient_norm = norm;
  s.last.seconds = seconds;
  return true;
}

Evaluation Trainer::evaluate() {
  State& s = *state_;
  if (!s.evaluator) s.evaluator.emplace(s.now.model, s.options.data, s.rows);
  return s.evaluator->run(s.now.model);
}

void Trainer::open(const std::filesystem::path& folder) {
  State& s = *state_;
  std::error_code code;
  if (s.folder && std::filesystem::equivalent(s.folder->path(), folder, code)) return;
  s.folder = RunFolder::create(folder, s.options);
  s.saved_step = -1;
}

void Trainer::save(const std::filesystem::path& folder) {
  State& s = *state_;
  open(folder);
  if (s.saved_step != s.now.step) write_checkpoint(folder, s.now);
  s.saved_step = s.now.step;
  save_model(s.now.model, folder);
}

LogEntry Trainer::take_log_entry() {
  State& s = *state_;
  LogEntry entry{s.now.step, tokens_seen(), s.now.seconds};
  if (s.now.step == 0) return entry;
  entry.loss = mean_of_all(s.now.since_entry);
  set_means(s.now.since_entry, s.options.data->classes(), entry.losses);
  entry.rate = s.last.rate;
  entry.gradient_norm = s.last.gradient_norm;
  clear(s.now.since_entry, s.classes());
  return entry;
}

}  // namespace headlight
