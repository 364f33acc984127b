#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/text/tasks.h"
#include "text/sources.h"
#include "text/streams.h"

namespace headlight {
namespace {

enum Class : uint8_t { kText, kNewName, kCopiedName };

constexpr int64_t kFirstNumber = 100;
constexpr int64_t kLastNumber = 999;
constexpr std::string_view kLetters = "PVMTHCFB";

constexpr std::array<std::string_view, 24> kQualities = {"coolant", "feed",   "main",    "drain",  "inlet",  "outlet",
                                                         "brake",   "fuel",   "gear",    "heater", "ice",    "jet",
                                                         "kiln",    "lower",  "nozzle",  "oil",    "port",   "quench",
                                                         "rotor",   "safety", "turbine", "upper",  "vapour", "water"};
constexpr std::array<std::string_view, 16> kParts = {"pump", "valve", "motor",  "sensor", "filter", "seal",
                                                     "belt", "fan",   "gauge",  "hose",   "joint",  "lamp",
                                                     "rod",  "tank",  "switch", "wheel"};
constexpr std::array<std::string_view, 8> kStates = {"hot", "leaking", "low", "noisy", "stuck", "torn", "wet", "worn"};
constexpr std::array<std::string_view, 4> kActions = {"check", "clean", "mend", "swap"};

template <std::size_t N>
std::string_view any_of(RandomStream& random, const std::array<std::string_view, N>& words) {
  return words[random.below(N)];
}

// What the lines are made of: a letter, a dash and three digits are a token each, a word is one with the blank
// before it.
std::shared_ptr<const Tokenizer> tokenizer_of_lines() {
  static const std::shared_ptr<const Tokenizer> tokenizer = [] {
    std::vector<std::string> pieces{"-", ":", "\n"};
    for (char digit = '0'; digit <= '9'; ++digit) pieces.emplace_back(1, digit);
    for (char letter : kLetters) pieces.emplace_back(1, letter);
    for (char letter : kLetters) pieces.push_back({' ', letter});
    for (std::string_view word : kActions) pieces.emplace_back(word);
    const auto add_words = [&](const auto& words) {
      for (std::string_view word : words) pieces.push_back(" " + std::string(word));
    };
    add_words(kQualities);
    add_words(kParts);
    add_words(kStates);
    return piece_tokenizer(std::move(pieces));
  }();
  return tokenizer;
}

struct Machine {
  std::string id;    // "P-104"
  std::string name;  // " coolant pump"
};

// The tokens of one sequence with the class of each. Keeps its memory.
struct Page {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> classes;

  void clear() {
    tokens.clear();
    classes.clear();
  }
  void add(std::string_view words, Class what = kText) {
    const std::vector<int32_t> ids = tokenizer_of_lines()->encode(words);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    classes.resize(tokens.size(), what);
  }
};

void require(bool fits, const char* name, int64_t found, const char* expected) {
  if (!fits) throw Error(ErrorKind::kUsage, "log lines", fmt::format("{} is {}", name, found), expected);
}

class LogLines final : public DataSource {
 public:
  explicit LogLines(const LogLinesOptions& options) : options_(options) {
    require(options.context >= 32, "context", options.context, "expected at least 32, so that a name can return");
    require(options.identifiers >= 1 && options.identifiers <= 16, "identifiers", options.identifiers,
            "expected a number from 1 to 16");
    require(options.held_out_every >= 7 && options.held_out_every <= 100, "held_out_every", options.held_out_every,
            "expected a number from 7 to 100");
    require(options.validation_sequences >= 0, "validation_sequences", options.validation_sequences,
            "expected at least 0");
    for (int64_t number = kFirstNumber; number <= kLastNumber; ++number) {
      (is_held_out(options, number) ? validation_numbers_ : training_numbers_).push_back(number);
    }
  }

  std::string kind() const override { return "log-lines"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_of_lines(); }
  int64_t context() const override { return options_.context; }
  const std::vector<std::string>& classes() const override {
    static const std::vector<std::string> names{"text", "new name", "copied name"};
    return names;
  }

  void training(uint64_t seed, int64_t step, int64_t first, int64_t size, Samples& out) const override {
    fill(training_numbers_, size, out, [&](int64_t i) { return training_stream(seed, step, first + i); });
  }

  int64_t validation_count() const override { return options_.validation_sequences; }

  void validation(int64_t first, int64_t size, Samples& out) const override {
    check_rows("validation", first, size, options_.validation_sequences);
    fill(validation_numbers_, size, out, [&](int64_t i) { return validation_stream(first + i); });
  }

  std::string to_json() const override {
    return pretty_json({{"kind", kind()},
                        {"context", options_.context},
                        {"identifiers", options_.identifiers},
                        {"held_out_every", options_.held_out_every},
                        {"validation_sequences", options_.validation_sequences}});
  }

 private:
  // A machine whose identifier and name are not among `machines`.
  static Machine new_machine(RandomStream& random, const std::vector<int64_t>& numbers,
                             const std::vector<Machine>& machines) {
    for (;;) {
      Machine made{fmt::format("{}-{}", kLetters[random.below(kLetters.size())], numbers[random.below(numbers.size())]),
                   fmt::format(" {} {}", any_of(random, kQualities), any_of(random, kParts))};
      const bool taken = std::any_of(machines.begin(), machines.end(), [&](const Machine& other) {
        return other.id == made.id || other.name == made.name;
      });
      if (!taken) return made;
    }
  }

  void write_page(RandomStream& random, const std::vector<int64_t>& numbers, std::vector<Machine>& machines,
                  Page& page) const {
    machines.clear();
    page.clear();
    const std::size_t most = static_cast<std::size_t>(options_.identifiers);
    while (static_cast<int64_t>(page.tokens.size()) <= options_.context) {
      const bool fresh = machines.empty() || (machines.size() < most && random.below(2) == 0);
      if (fresh) machines.push_back(new_machine(random, numbers, machines));
      const Machine& machine = fresh ? machines.back() : machines[random.below(machines.size())];
      page.add(fresh ? machine.id : std::string(any_of(random, kActions)) + " " + machine.id);
      page.add(machine.name, fresh ? kNewName : kCopiedName);
      if (fresh) page.add(": " + std::string(any_of(random, kStates)));
      page.add("\n");
    }
  }

  // Row i of `out`. A name that the end cuts off counts as text, so that every copied name is whole.
  void write_row(Page& page, Samples& out, int64_t i) const {
    const std::size_t time = static_cast<std::size_t>(out.time);
    if (page.tokens.size() > time + 1 && page.classes[time + 1] == page.classes[time]) {
      for (std::size_t t = time; page.classes[t] != kText; --t) page.classes[t] = kText;
    }
    for (std::size_t t = 0; t < time; ++t) {
      const std::size_t at = static_cast<std::size_t>(i) * time + t;
      out.tokens[at] = page.tokens[t];
      out.targets[at] = page.tokens[t + 1];
      out.classes[at] = page.classes[t + 1];
    }
  }

  template <class StreamOf>
  void fill(const std::vector<int64_t>& numbers, int64_t size, Samples& out, StreamOf stream_of) const {
    out.resize(size, options_.context);
    thread_local Page page;
    thread_local std::vector<Machine> machines;
    for (int64_t i = 0; i < size; ++i) {
      RandomStream random = stream_of(i);
      write_page(random, numbers, machines, page);
      write_row(page, out, i);
    }
  }

  LogLinesOptions options_;
  std::vector<int64_t> training_numbers_;
  std::vector<int64_t> validation_numbers_;
};

}  // namespace

bool is_held_out(const LogLinesOptions& options, int64_t number) { return number % options.held_out_every == 6; }

std::shared_ptr<const DataSource> log_lines(const LogLinesOptions& options) {
  return std::make_shared<LogLines>(options);
}

std::shared_ptr<const DataSource> read_log_lines(JsonReader& read) {
  LogLinesOptions options;
  options.context = read.whole("context", 1);
  options.identifiers = read.whole("identifiers", 1);
  options.held_out_every = read.whole("held_out_every", 1);
  options.validation_sequences = read.whole("validation_sequences", 0);
  read.finish();
  return log_lines(options);
}

}  // namespace headlight
