// headlight generate: continues a prompt, byte for byte.

#include "headlight/model/generate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "interrupt.h"
#include "results.h"
#include "subject.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

// What `token` adds to the text after the token before it.
std::string continuation(const Tokenizer& tokenizer, int32_t before, int32_t token) {
  const std::vector<int32_t> one{before}, both{before, token};
  return tokenizer.decode(both).substr(tokenizer.decode(one).size());
}

// The text as it comes: exact bytes into a file or pipe, made harmless on a screen, nothing beside a JSON object.
class TextOut {
 public:
  explicit TextOut(Console& console) : console_(console) {}

  void add(const std::string& bytes) {
    if (console_.wants_json()) return;
    console_.print(console_.out().is_terminal ? screen_.add(bytes) : bytes);
    if (console_.out().is_terminal) console_.flush();
  }
  void end() {
    if (!console_.wants_json() && console_.out().is_terminal) console_.print(screen_.end() + "\n");
  }

 private:
  Console& console_;
  VisibleStream screen_;
};

class Generate : public Command {
 public:
  Description description() const override {
    return {
        "generate",
        "work",
        "continues a prompt",
        "Prints the prompt and what the model makes of it, the exact bytes of its tokens (a screen shows control "
        "characters as \\x1b). The same seed gives the same "
        "text, for any number of threads. Beyond the model's context the oldest tokens are left out of what it sees. "
        "Ctrl-C ends the text.",
        {{"headlight generate runs/text --prompt 'ROMEO:' --tokens 300 --temperature 0.8", "sampled"},
         {"headlight generate runs/text --prompt 'ROMEO:' --temperature 0", "always the most likely token"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    options.group("text");
    options.text("--prompt", "TEXT", prompt_, "what comes before [the start token, or a newline for bytes]");
    options.integer("--tokens", generate_.tokens, {1, 1 << 24}, "how many to add");
    options.number("--temperature", generate_.sample.temperature, {0, 100}, "0: always the most likely token");
    options.integer("--top-k", generate_.sample.top_k, {0, 1 << 24}, "draw among the k most likely", "all");
    options.number("--top-p", generate_.sample.top_p, {1e-6, 1}, "and of these the most likely ones that reach p");
    options.seed("--seed", generate_.seed, "of the draws");
    options.flag("--past-end", past_end_, "go on after the token that ends a text");
    options.group("machine");
    add_weights_option(options, model_);
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    std::vector<int32_t> prompt = encode(subject, prompt_);
    if (prompt.empty()) prompt = subject.tokenizer->encode("\n");
    const StopOnSignal signals;
    TextOut out(console);
    out.add(prompt_);
    if (!past_end_) generate_.end = subject.tokenizer->special_ids().end;
    int32_t before = prompt.back();
    generate_.on_token = [&](int32_t token) {
      out.add(continuation(*subject.tokenizer, before, token));
      before = token;
      return !*StopOnSignal::requested();
    };
    const std::vector<int32_t> tokens = generate(subject.model, prompt, generate_);
    out.end();
    if (!console.wants_json()) return 0;
    console.print_json({{"model", subject.name},
                        {"prompt_ids", prompt},
                        {"ids", tokens},
                        {"text", json_of_text(subject.tokenizer->decode(tokens))},
                        {"seed", generate_.seed}});
    return 0;
  }

 private:
  ModelChoice model_;
  std::string prompt_;
  GenerateOptions generate_;
  bool past_end_ = false;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> generate_command() { return std::make_unique<Generate>(); }

}  // namespace headlight::cli
