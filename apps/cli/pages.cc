#include "pages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "curves.h"
#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/explain/identities.h"
#include "headlight/kernels/isa.h"

namespace headlight::cli {

PageText text_of(const Subject& subject, const std::string& text, const std::string& start) {
  PageText page;
  page.name = "given text";
  page.ids = encode(subject, text, start);
  page.start_token = start_token(subject, start).has_value();
  if (page.ids.empty()) throw Error(ErrorKind::kUsage, "", "--text is empty");
  const auto found = static_cast<int64_t>(page.ids.size());
  if (found > subject.model.config().context) {
    throw Error(
        ErrorKind::kUsage, "",
        fmt::format("--text has {} tokens; {} reads at most {}", found, subject.name, subject.model.config().context));
  }
  return page;
}

PageText sample_text(const Subject& subject, const std::string& start) {
  constexpr int64_t kLength = 16;
  const ModelConfig& config = subject.model.config();
  RepeatOptions options = scoring_repeats(config, *subject.tokenizer);
  if (start != kStartOfModel) options.start = start_token(subject, start);
  options.lengths = {std::min(kLength, usual_repeat_length(config, options))};
  options.sequences = 1;
  const RepeatedBatch repeated = repeat_random_tokens(config, options);
  PageText page;
  page.name = "random tokens, repeated";
  page.ids.assign(repeated.batch.tokens.begin(), repeated.batch.tokens.end());
  page.start_token = options.start.has_value();
  return page;
}

Report begin_page(const Subject& subject, const std::string& title, const std::string& data, uint64_t seed,
                  const Console& console) {
  Report report;
  report.title = title;
  report.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report.version = HEADLIGHT_VERSION;
  report.run.model = subject.name;
  report.run.data = data;
  report.run.seed = seed;
  report.run.isa = active_isa();
  report.run.threads = default_pool().threads();
  report.run.command = console.command_line();
  report.config = subject.model.config();
  report.cost.time = subject.model.config().context;
  const std::shared_ptr<const Tokenizer> tokenizer = subject.tokenizer;
  report.token_text = [tokenizer](int32_t id) { return tokenizer->token_text(id); };
  return report;
}

void write_map_page(const std::string& path, const Subject& subject, const PageText& text,
                    const std::vector<AttentionMap>& maps, const Console& console) {
  const Batch batch = make_batch({text.ids});
  Report report = begin_page(subject, "Attention of " + subject.name, text.name, 0, console);
  report.checks = check_identities(subject.model, batch);
  report.scores = text_scores(subject.model, batch, text.name);
  report.readings = read_heads(report.scores, nullptr, nullptr);
  report.texts.push_back({text.name, text.ids, text.start_token, maps});
  demand(report.checks);
  write_report(path, report);
}

}  // namespace headlight::cli
