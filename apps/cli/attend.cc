// headlight attend: attention maps of a text, in the terminal or in a page.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/explain/attention_map.h"
#include "pages.h"
#include "results.h"
#include "table.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr int kUnlimited = 1 << 30;
constexpr int kLabelWidth = 10;        // columns for a token beside a map
constexpr std::size_t kStrongest = 3;  // keys named beside a row
constexpr float kShown = 0.05F;        // weights below are left out

// one column: how much of the row's weight a key has
std::string shade(float weight) {
  constexpr const char* kShades[] = {" ", "·", "░", "▒", "▓", "█"};
  constexpr float kFrom[] = {kShown, 0.15F, 0.35F, 0.6F, 0.85F};
  std::size_t level = 0;
  while (level < 5 && weight >= kFrom[level]) ++level;
  return kShades[level];
}

std::string padded_label(const std::string& token, int width) {
  std::string label = cut(token, width);
  return std::string(static_cast<std::size_t>(std::max(0, width - columns(label))), ' ') + label;
}

// A text with its tokens made visible.
struct Shown {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;
  int label = 0;  // width of the longest, at most kLabelWidth

  int64_t time() const { return static_cast<int64_t>(ids.size()); }
  const std::string& token(int64_t i) const { return tokens[static_cast<std::size_t>(i)]; }
};

Shown shown(const Subject& subject, const std::vector<int32_t>& ids) {
  Shown text;
  text.ids = ids;
  for (int32_t id : ids) {
    text.tokens.push_back(visible(subject.tokenizer->token_text(id)));
    if (text.tokens.back() == " ") text.tokens.back() = "␣";
    text.label = std::max(text.label, std::min(kLabelWidth, columns(text.tokens.back())));
  }
  return text;
}

std::string map_row(const AttentionMap& map, int64_t i) {
  std::string row;
  for (int64_t j = 0; j < map.time; ++j) row += shade(map.weight(i, j));
  return row;
}

// "2:cabinet 0.62, 1:keys 0.20": the keys that a row reads most, in at most `room` columns.
std::string strongest(const AttentionMap& map, const Shown& text, int64_t i, int room) {
  std::vector<int64_t> keys(static_cast<std::size_t>(map.time));
  std::iota(keys.begin(), keys.end(), 0);
  std::stable_sort(keys.begin(), keys.end(), [&](int64_t a, int64_t b) { return map.weight(i, a) > map.weight(i, b); });
  keys.resize(std::min(keys.size(), kStrongest));
  std::string out;
  for (int64_t j : keys) {
    const float weight = map.weight(i, j);
    const std::string one = fmt::format("{}{}:{} {:.2f}", out.empty() ? "" : ", ", j, text.token(j), weight);
    if (!(weight >= kShown) || columns(out) + columns(one) > room) break;
    out += one;
  }
  return out;
}

// What the shades stand for.
std::string legend(const Screen& screen) {
  return "rows read from columns, weights " + screen.paint(Paint::kCyan, "· ≥ .05  ░ ≥ .15  ▒ ≥ .35  ▓ ≥ .6  █ ≥ .85") +
         "\n\n";
}

// One head large: number and token of each row, its weights, and the keys that it reads most.
std::string large_map(const AttentionMap& map, const Shown& text, const Screen& screen) {
  std::string out = screen.paint(Paint::kBold, "head " + to_string(map.head)) + "\n";
  const auto digits = static_cast<int>(fmt::format("{}", map.time - 1).size());
  const bool fits = !screen.is_terminal || digits + text.label + 4 + map.time < screen.width;
  for (int64_t i = 0; i < map.time; ++i) {
    std::string line = fmt::format("{:>{}} {} ", i, digits, padded_label(text.token(i), text.label));
    if (fits) line += "│" + screen.paint(Paint::kCyan, map_row(map, i)) + "│";
    const int room = screen.is_terminal ? screen.width - 3 - columns(line) : kUnlimited;
    out += line + "  " + screen.paint(Paint::kDim, strongest(map, text, i, room)) + "\n";
  }
  return out;
}

// All heads side by side, as many as fit, each in a frame of its own.
std::string small_maps(const std::vector<AttentionMap>& maps, const Shown& text, const Screen& screen) {
  const auto time = static_cast<int>(text.time());
  const int each = time + 3;
  const int room = (screen.is_terminal ? screen.width - 1 : 80) - text.label - 1;
  const auto abreast = static_cast<std::size_t>(std::max(1, room / each));
  std::string out;
  for (std::size_t first = 0; first < maps.size(); first += abreast) {
    const std::size_t last = std::min(first + abreast, maps.size());
    std::string title(static_cast<std::size_t>(text.label + 1), ' ');
    for (std::size_t m = first; m < last; ++m) title += fmt::format("{:<{}}", " " + to_string(maps[m].head), each);
    out += screen.paint(Paint::kBold, title.substr(0, title.find_last_not_of(' ') + 1)) + "\n";
    for (int64_t i = 0; i < text.time(); ++i) {
      out += padded_label(text.token(i), text.label) + " ";
      for (std::size_t m = first; m < last; ++m) {
        out += "│" + screen.paint(Paint::kCyan, map_row(maps[m], i)) + "│" + (m + 1 < last ? " " : "");
      }
      out += "\n";
    }
    out += "\n";
  }
  return out;
}

class Attend : public Command {
 public:
  Description description() const override {
    return {
        "attend",
        "explain",
        "attention maps of a text, in the terminal or in a page",
        "Shows where each token reads from, head by head. Weights are those that the forward uses, recomputed row by "
        "row. A map says where a head read from, not why: heads and ablate tell what happens without it.",
        {{"headlight attend runs/text --text 'the cat and the cat' --head 1.2", "one head, large"},
         {"headlight attend runs/text --text 'the cat and the cat' --out maps.html", "all heads, in a page"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    options.group("what to show");
    options.text("--text", "TEXT", text_, "what the model reads [random tokens and their repetition]");
    add_start_option(options, start_);
    options.text("--head", "B.H", head_, "one head, counted from 0 [all]");
    options.text("--out", "FILE.html", out_, "a page that opens offline, instead of the terminal");
    options.group("machine");
    add_compute_options(options, threads_);
  }

  int run(const Options& options, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    const PageText given = options.is_given("--text") ? text_of(subject, text_, start_) : sample_text(subject, start_);
    MapOptions wanted;
    if (!head_.empty()) wanted.heads = {parse_head(head_, subject.model.config())};
    const std::vector<AttentionMap> maps = attention_maps(subject.model, given.ids, wanted);
    if (!out_.empty()) write_map_page(out_, subject, given, maps, console);
    if (console.wants_json()) {
      print_json(subject, given, maps, console);
    } else if (out_.empty()) {
      print(subject, given, maps, console);
    } else {
      console.print(fmt::format("wrote {}\n", out_));
    }
    return 0;
  }

 private:
  void print(const Subject& subject, const PageText& given, const std::vector<AttentionMap>& maps,
             Console& console) const {
    const Shown text = shown(subject, given.ids);
    const bool fits = !console.out().is_terminal || text.label + 4 + text.time() < console.out().width;
    if (maps.size() == 1 || fits) {
      const std::optional<int32_t> start = given.start_token ? std::optional(given.ids.front()) : std::nullopt;
      console.print_wrapped(
          fmt::format("{}, {} tokens; {}, {}", subject.name, text.time(), given.name, start_text(subject, start)));
      if (!reads_bytes(subject)) console.print_wrapped(fmt::format("ids {}", fmt::join(given.ids, " ")));
      console.print(legend(console.out()));
    }
    if (maps.size() == 1) {
      console.print(large_map(maps.front(), text, console.out()));
    } else if (fits) {
      console.print(small_maps(maps, text, console.out()));
    } else {
      throw Error(
          ErrorKind::kUsage, "",
          fmt::format("the text has {} tokens, more than this terminal has columns; name one --head, or write a "
                      "page with --out",
                      text.time()));
    }
  }

  void print_json(const Subject& subject, const PageText& given, const std::vector<AttentionMap>& maps,
                  Console& console) const {
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), heads = nlohmann::ordered_json::array();
    for (int32_t id : given.ids) tokens.push_back(json_of_text(subject.tokenizer->token_text(id)));
    for (const AttentionMap& map : maps) {
      nlohmann::ordered_json rows = nlohmann::ordered_json::array();
      for (int64_t i = 0; i < map.time; ++i) {
        nlohmann::ordered_json row = nlohmann::ordered_json::array();
        for (int64_t j = 0; j < map.time; ++j) row.push_back(map.weight(i, j));
        rows.push_back(std::move(row));
      }
      heads.push_back({{"head", to_string(map.head)}, {"weights", std::move(rows)}});
    }
    nlohmann::ordered_json json{{"model", subject.name}, {"ids", given.ids}, {"tokens", tokens}, {"heads", heads}};
    json["start_token"] = given.start_token;
    json["precision"] = "weights are stored as one byte of a row's largest: exact to 1/255 of it";
    if (!out_.empty()) json["page"] = out_;
    console.print_json(json);
  }

  ModelChoice model_;
  std::string text_, head_, out_, start_ = kStartOfModel;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> attend_command() { return std::make_unique<Attend>(); }

}  // namespace headlight::cli
