#include "help.h"

#include <fmt/format.h>

#include <algorithm>

#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr int kWidest = 100;        // lines of prose are not longer, however wide the screen
constexpr int kHelpIndent = 28;     // where an option's help begins
constexpr int kSummaryIndent = 18;  // where a command's summary begins

int text_width(const Screen& screen) { return std::min(screen.width - 1, kWidest); }

// `left` and, from a column on, `right`, wrapped
std::string entry(const std::string& left, const std::string& right, int indent, int width) {
  std::string out = "  " + left;
  const std::string blank(static_cast<std::size_t>(indent), ' ');
  const int used = columns(out);
  out += used + 2 > indent ? "\n" + blank : std::string(static_cast<std::size_t>(indent - used), ' ');
  const std::vector<std::string> lines = wrap(right, std::max(20, width - indent));
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? blank : "") + lines[i] + "\n";
  return out;
}

std::string paragraphs(const std::string& text, int width) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", at), text.size());
    for (const std::string& line : wrap(text.substr(at, end - at), width)) out += line + "\n";
    out += "\n";
    at = end + 2;
  }
  return out;
}

std::string describe(const Option& o) {
  std::string text = o.help;
  if (!o.default_text.empty()) text += fmt::format(" [{}]", visible(o.default_text));
  return text;
}

std::string usage(const Description& d, const Options& options) {
  std::string text = "usage: headlight " + d.name;
  for (const Option& o : options.all()) {
    if (o.is_argument()) text += o.required ? " " + o.name : " [" + o.name + "]";
  }
  return text + " [options]\n";
}

void list(std::string& out, const Command& command, const std::string& shown, const Screen& screen) {
  const Description d = command.description();
  out += entry(screen.paint(Paint::kCyan, shown), d.summary, kSummaryIndent, text_width(screen));
}

std::string closing(const Screen& screen, const std::string& family) {
  return paragraphs(
      fmt::format("headlight {}COMMAND --help explains a command, with examples. Every command takes --json "
                  "(one object on standard output). MODEL is a run's folder, a Hugging Face folder, a .safetensors or "
                  ".gguf file, or a llama2.c .bin.",
                  family),
      text_width(screen));
}

}  // namespace

std::string overview(const std::vector<std::unique_ptr<Command>>& commands, const Screen& screen) {
  std::string out =
      screen.paint(Paint::kBold, "Headlight") +
      " trains transformers, runs them, and explains them head by head\n\nusage: headlight COMMAND [options]\n";
  std::string group;
  for (const std::unique_ptr<Command>& command : commands) {
    const Description d = command->description();
    if (d.group != group) out += "\n" + screen.paint(Paint::kBold, d.group) + "\n";
    group = d.group;
    list(out, *command, d.name, screen);
  }
  return out + "\n" + closing(screen, "");
}

std::string family_overview(const std::vector<std::unique_ptr<Command>>& commands, const std::string& family,
                            const Screen& screen) {
  std::string out = fmt::format("usage: headlight {} COMMAND [options]\n\n", family);
  for (const std::unique_ptr<Command>& command : commands) {
    const std::string name = command->description().name;
    if (name.rfind(family + " ", 0) == 0) list(out, *command, name.substr(family.size() + 1), screen);
  }
  return out + "\n" + closing(screen, family + " ");
}

std::string help(const Description& d, const Options& options, const Screen& screen) {
  const int width = text_width(screen);
  std::string out =
      screen.paint(Paint::kBold, "headlight " + d.name) + ": " + d.summary + "\n\n" + usage(d, options) + "\n";
  out += paragraphs(d.details, width);
  std::vector<std::string> groups;
  for (const Option& o : options.all()) {
    if (std::find(groups.begin(), groups.end(), o.group) == groups.end()) groups.push_back(o.group);
  }
  for (const std::string& group : groups) {
    out += screen.paint(Paint::kBold, group) + "\n";
    for (const Option& o : options.all()) {
      if (o.group != group) continue;
      const std::string left = o.is_argument() || o.value.empty() ? o.name : o.name + " " + o.value;
      out += entry(screen.paint(Paint::kCyan, left), describe(o), kHelpIndent, width);
    }
    out += "\n";
  }
  out += screen.paint(Paint::kBold, d.examples.size() == 1 ? "example" : "examples") + "\n";
  for (const Example& example : d.examples) {
    out += "  " + example.command + "\n";
    for (const std::string& line : wrap(example.meaning, width - 6))
      out += "      " + screen.paint(Paint::kDim, line) + "\n";
  }
  return out;
}

}  // namespace headlight::cli
