#include "text/pre_tokenizer.h"

#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"

namespace headlight {
namespace {

bool belongs_to(CharacterClass wanted, int32_t code) {
  switch (wanted) {
    case CharacterClass::kWhiteSpace:
      return is_white_space(code);
    case CharacterClass::kPunctuation:
      return is_punctuation(code);
    case CharacterClass::kNumber:
      return is_number(code);
  }
  return false;
}

void find_class(CharacterClass wanted, std::string_view text, std::vector<Match>& matches) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (belongs_to(wanted, character.code)) matches.push_back({at, at + character.size});
    at += character.size;
  }
}

// A stretch of a piece that is, or is not, a match.
struct Stretch {
  std::size_t begin;
  std::size_t end;
  bool matched;
};

// Cuts pieces by one behaviour, keeping its memory from piece to piece.
class Cutter {
 public:
  explicit Cutter(const Split& split) : split_(split) {}

  void cut(std::string_view text, const Piece& piece, std::vector<Piece>& out) {
    find_stretches(text.substr(piece.begin, piece.end - piece.begin));
    if (split_.behaviour == SplitBehaviour::kMergedWithNext) merge_with_next();
    if (split_.behaviour == SplitBehaviour::kMergedWithPrevious) merge_with_previous();
    if (split_.behaviour == SplitBehaviour::kContiguous) merge_alike();
    for (const Stretch& stretch : stretches_) {
      if (stretch.begin == stretch.end) continue;
      if (split_.behaviour == SplitBehaviour::kRemoved && stretch.matched) continue;
      out.push_back({piece.begin + stretch.begin, piece.begin + stretch.end});
    }
  }

 private:
  void find_stretches(std::string_view text) {
    matches_.clear();
    stretches_.clear();
    if (const auto* pattern = std::get_if<Pattern>(&split_.at)) {
      pattern->find(text, matches_);
    } else {
      find_class(std::get<CharacterClass>(split_.at), text, matches_);
    }
    std::size_t at = 0;
    for (const Match& match : matches_) {
      if (match.begin > at) stretches_.push_back({at, match.begin, split_.invert});
      stretches_.push_back({match.begin, match.end, !split_.invert});
      at = match.end;
    }
    if (at < text.size()) stretches_.push_back({at, text.size(), split_.invert});
  }

  // A match that follows no match goes with what is before it.
  void merge_with_previous() {
    std::vector<Stretch> merged;
    bool after_match = false;
    for (const Stretch& stretch : stretches_) {
      if (stretch.matched && !after_match && !merged.empty()) {
        merged.back().end = stretch.end;
      } else {
        merged.push_back(stretch);
      }
      after_match = stretch.matched;
    }
    stretches_ = std::move(merged);
  }

  // The same from the right.
  void merge_with_next() {
    std::vector<Stretch> merged;
    bool before_match = false;
    for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend(); ++stretch) {
      if (stretch->matched && !before_match && !merged.empty()) {
        merged.back().begin = stretch->begin;
      } else {
        merged.push_back(*stretch);
      }
      before_match = stretch->matched;
    }
    stretches_.assign(merged.rbegin(), merged.rend());
  }

  void merge_alike() {
    std::vector<Stretch> merged;
    for (const Stretch& stretch : stretches_) {
      if (!merged.empty() && merged.back().matched == stretch.matched) {
        merged.back().end = stretch.end;
      } else {
        merged.push_back(stretch);
      }
    }
    stretches_ = std::move(merged);
  }

  const Split& split_;
  std::vector<Match> matches_;
  std::vector<Stretch> stretches_;
};

void apply(const Split& split, Flow& flow) {
  std::vector<Piece> pieces;
  Cutter cutter(split);
  for (const Piece& piece : flow.pieces) {
    if (piece.token >= 0) {
      pieces.push_back(piece);
    } else {
      cutter.cut(flow.text(), piece, pieces);
    }
  }
  flow.pieces = std::move(pieces);
}

// Rewrites piece by piece; each(piece, rewrite) writes what a piece becomes. What is in no piece is left out.
template <class F>
void rewrite_pieces(Flow& flow, F each) {
  Rewrite rewrite(flow);
  std::vector<Piece> pieces;
  pieces.reserve(flow.pieces.size());
  for (const Piece& piece : flow.pieces) {
    const std::size_t begin = rewrite.size();
    if (piece.token >= 0) {
      rewrite.keep(piece.begin, piece.end);
    } else {
      each(piece, rewrite);
    }
    pieces.push_back({begin, rewrite.size(), piece.token});
  }
  rewrite.finish();
  flow.pieces = std::move(pieces);
}

void apply(const PrefixBlank&, Flow& flow) {
  rewrite_pieces(flow, [&](const Piece& piece, Rewrite& rewrite) {
    if (flow.text()[piece.begin] != ' ') rewrite.put(" ", piece.begin, piece.begin);
    rewrite.keep(piece.begin, piece.end);
  });
}

bool wants_mark(const Metaspace& step, const Flow& flow, const Piece& piece) {
  const std::string_view text = flow.text().substr(piece.begin, piece.end - piece.begin);
  if (text.front() == ' ' || text.substr(0, step.mark.size()) == step.mark) return false;
  if (step.prefix == Metaspace::Prefix::kFirst) return piece.begin == 0 && flow.begins_text();
  return step.prefix == Metaspace::Prefix::kAlways;
}

void apply(const Metaspace& step, Flow& flow) {
  rewrite_pieces(flow, [&](const Piece& piece, Rewrite& rewrite) {
    if (wants_mark(step, flow, piece)) rewrite.put(step.mark, piece.begin, piece.begin);
    for (std::size_t at = piece.begin; at < piece.end;) {
      const std::size_t blank = std::min(flow.text().find(' ', at), piece.end);
      rewrite.keep(at, blank);
      if (blank < piece.end) rewrite.put(step.mark, blank, blank + 1);
      at = blank + 1;
    }
  });
  if (step.split) apply(Split{step.mark_pattern, SplitBehaviour::kMergedWithNext}, flow);
}

}  // namespace

void pre_tokenize(const std::vector<PreTokenizerStep>& steps, Flow& flow) {
  for (const PreTokenizerStep& step : steps) {
    std::visit([&](const auto& one) { apply(one, flow); }, step);
  }
}

}  // namespace headlight
