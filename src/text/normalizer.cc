#include "text/normalizer.h"

#include <algorithm>
#include <optional>

#include "text/utf8.h"

namespace headlight {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// What a step does with one character.
struct Keep {};
struct Drop {};
using Change = std::variant<Keep, Drop, std::string_view>;

// Rewrites character by character; change(character, bytes) says what becomes of each.
template <class F>
void rewrite_each(Flow& flow, F change) {
  const std::string_view text = flow.text();
  Rewrite rewrite(flow);
  std::size_t kept = 0, at = 0;  // [kept, at) is to be kept
  bool changed = false;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    const Change what = change(character.code, text.substr(at, character.size));
    if (!std::holds_alternative<Keep>(what)) {
      rewrite.keep(kept, at);
      kept = at + character.size;
      changed = true;
    }
    if (const auto* bytes = std::get_if<std::string_view>(&what)) rewrite.put(*bytes, at, at + character.size);
    at += character.size;
  }
  if (!changed) return;
  rewrite.keep(kept, at);
  rewrite.finish();
}

void apply(const ReplaceBroken&, Flow& flow) {
  if (is_utf8(flow.text())) return;
  rewrite_each(flow, [](int32_t code, std::string_view) -> Change {
    if (code == kBroken) return kReplacementCharacter;
    return Keep{};
  });
}

// Normalises from one place where nothing reaches over to the next.
void apply(const UnicodeForm& step, Flow& flow) {
  const std::string_view text = flow.text();
  if (is_ascii(text)) return;
  Rewrite rewrite(flow);
  std::vector<int32_t> pending, next;  // decomposed characters of [begin, at)
  std::string bytes;
  std::size_t begin = 0, at = 0;
  const auto flush = [&] {
    order_and_compose(step.form, pending);
    bytes.clear();
    for (int32_t code : pending) append_character(bytes, code);
    if (bytes == text.substr(begin, at - begin)) {
      rewrite.keep(begin, at);
    } else {
      rewrite.put(bytes, begin, at);
    }
    pending.clear();
    begin = at;
  };
  while (at < text.size()) {
    const Character character = character_at(text, at);
    next.clear();
    if (character.code != kBroken) decompose(character.code, step.form, next);
    if (next.empty() || begins_anew(next.front())) flush();
    pending.insert(pending.end(), next.begin(), next.end());
    at += character.size;
    if (character.code == kBroken) {
      rewrite.keep(begin, at);
      begin = at;
    }
  }
  flush();
  rewrite.finish();
}

void apply(const LowerCase&, Flow& flow) {
  std::string bytes;
  rewrite_each(flow, [&](int32_t code, std::string_view) -> Change {
    const int32_t lower = lower_case(code);
    if (lower == code) return Keep{};
    bytes.clear();
    append_character(bytes, lower);
    if (code == 0x130) bytes = "i\xCC\x87";
    return std::string_view(bytes);
  });
}

void apply(const StripMarks& step, Flow& flow) {
  rewrite_each(flow, [&](int32_t code, std::string_view) -> Change {
    if (step.all ? is_mark(code) : is_nonspacing_mark(code)) return Drop{};
    return Keep{};
  });
}

void apply(const CleanText&, Flow& flow) {
  rewrite_each(flow, [](int32_t code, std::string_view) -> Change {
    if (code == 0 || code == 0xFFFD || is_control(code)) return Drop{};
    if (code != ' ' && is_white_space(code)) return std::string_view(" ");
    return Keep{};
  });
}

void apply(const SpaceIdeographs&, Flow& flow) {
  std::string bytes;
  rewrite_each(flow, [&](int32_t code, std::string_view own) -> Change {
    if (!is_ideograph(code)) return Keep{};
    bytes = " ";
    bytes += own;
    bytes += ' ';
    return std::string_view(bytes);
  });
}

void apply(const Replace& step, Flow& flow) {
  std::vector<Match> matches;
  step.what.find(flow.text(), matches);
  if (matches.empty()) return;
  Rewrite rewrite(flow);
  std::size_t at = 0;
  for (const Match& match : matches) {
    rewrite.keep(at, match.begin);
    rewrite.put(step.by, match.begin, match.end);
    at = match.end;
  }
  rewrite.keep(at, flow.text().size());
  rewrite.finish();
}

void apply(const Prepend& step, Flow& flow) {
  if (flow.text().empty()) return;
  if (step.only_where_text_begins && !flow.begins_text() && !flow.after_special()) return;
  Rewrite rewrite(flow);
  rewrite.put(step.what, 0, 0);
  rewrite.keep(0, flow.text().size());
  rewrite.finish();
}

void apply(const Strip& step, Flow& flow) {
  const std::string_view text = flow.text();
  std::size_t begin = 0, end = text.size();
  while (step.left && begin < end) {
    const Character character = character_at(text, begin);
    if (!is_white_space(character.code)) break;
    begin += character.size;
  }
  while (step.right && begin < end) {
    const std::size_t before = character_before(text, end);
    if (!is_white_space(character_at(text, before).code)) break;
    end = before;
  }
  if (begin == 0 && end == text.size()) return;
  Rewrite rewrite(flow);
  rewrite.keep(begin, end);
  rewrite.finish();
}

// Where blanks begin that go on to the end; the mark that SentencePiece has for them counts as one there.
std::size_t end_without_blanks(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t before = character_before(text, end);
    const int32_t code = character_at(text, before).code;
    if (code != ' ' && code != 0x2581) break;
    end = before;
  }
  return end;
}

void apply(const SingleBlanks&, Flow& flow) {
  const std::size_t end = end_without_blanks(flow.text());
  bool after_blank = true;
  std::size_t at = 0;
  rewrite_each(flow, [&](int32_t code, std::string_view own) -> Change {
    const bool drop = (code == ' ' && after_blank) || at >= end;
    after_blank = code == ' ';
    at += own.size();
    if (drop) return Drop{};
    return Keep{};
  });
}

// One grapheme: as a whole when it is short and the map knows it, otherwise character by character.
void map_grapheme(const Charsmap& map, std::string_view text, std::size_t begin, std::size_t end, Rewrite& rewrite) {
  constexpr std::size_t kShort = 6;  // as the reference has it
  if (end - begin < kShort) {
    if (const auto entry = map.shortest(text.substr(begin, end - begin))) {
      return rewrite.put(entry->becomes, begin, end);
    }
  }
  while (begin < end) {
    const std::size_t size = character_at(text, begin).size;
    if (const auto entry = map.shortest(text.substr(begin, size))) {
      rewrite.put(entry->becomes, begin, begin + size);
    } else {
      rewrite.keep(begin, begin + size);
    }
    begin += size;
  }
}

void apply(const ApplyCharsmap& step, Flow& flow) {
  const std::string_view text = flow.text();
  Rewrite rewrite(flow);
  for (std::size_t at = 0; at < text.size();) {
    const auto entry = step.map->longest(text.substr(at));
    const std::size_t size = entry ? entry->size : character_at(text, at).size;
    if (entry) {
      rewrite.put(entry->becomes, at, at + size);
    } else {
      rewrite.keep(at, at + size);
    }
    at += size;
  }
  rewrite.finish();
}

void apply(const ApplyCharsmapToGraphemes& step, Flow& flow) {
  const std::string_view text = flow.text();
  if (text.empty()) return;
  Rewrite rewrite(flow);
  int32_t state = 0;
  Character before = character_at(text, 0);
  std::size_t begin = 0, at = before.size;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (breaks_between(before.code, character.code, state)) {
      map_grapheme(*step.map, text, begin, at, rewrite);
      begin = at;
    }
    before = character;
    at += character.size;
  }
  map_grapheme(*step.map, text, begin, at, rewrite);
  rewrite.finish();
}

}  // namespace

void normalize(const std::vector<NormalizerStep>& steps, Flow& flow) {
  for (const NormalizerStep& step : steps) {
    std::visit([&](const auto& one) { apply(one, flow); }, step);
  }
  flow.pieces.clear();
  if (!flow.text().empty()) flow.pieces.push_back({0, flow.text().size()});
}

}  // namespace headlight
