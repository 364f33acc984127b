#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "text/byte_tokens.h"
#include "text/utf8.h"

namespace headlight {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::size_t slot_of(uint64_t key, std::size_t mask) {
  // the high bits of the product depend on all bits of the key
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
}

// Whether `mark` occurs in the text after something else.
bool has_inner_mark(std::string_view text, std::string_view mark) {
  while (text.substr(0, mark.size()) == mark) text.remove_prefix(mark.size());
  return text.find(mark) != std::string_view::npos;
}

// The first of the marks that begin words which no rule merges across, or "".
std::string find_word_mark(const Vocabulary& vocabulary, const std::vector<MergeRule>& rules) {
  for (const std::string_view mark : {std::string_view("\xE2\x96\x81"), std::string_view(" ")}) {
    bool used = false, inner = false;
    for (const MergeRule& rule : rules) {
      const std::string& merged = vocabulary.spelling(rule.merged);
      used = used || merged.find(mark) != std::string::npos;
      inner = inner || has_inner_mark(merged, mark);
    }
    if (used && !inner) return std::string(mark);
  }
  return "";
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const std::vector<MergeRule>& rules, const BpeOptions& options)
    : vocabulary_(vocabulary), options_(options) {
  std::size_t slots = 16;
  while (slots < 2 * rules.size()) slots *= 2;
  keys_.assign(slots, 0);
  merges_.assign(slots, {0, -1});
  for (const MergeRule& rule : rules) {
    const uint64_t key = pair_key(rule.left, rule.right);
    std::size_t slot = slot_of(key, slots - 1);
    while (merges_[slot].merged >= 0 && keys_[slot] != key) slot = (slot + 1) & (slots - 1);
    keys_[slot] = key;
    merges_[slot] = {rule.rank, rule.merged};
  }
  if (options.byte_level) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      bytes_[byte] = vocabulary.find(byte_character(static_cast<unsigned char>(byte)));
    }
  } else {
    bytes_ = byte_fallbacks(vocabulary);
    word_mark_ = find_word_mark(vocabulary, rules);
  }
}

const Bpe::Merge* Bpe::find(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  const std::size_t mask = keys_.size() - 1;
  for (std::size_t slot = slot_of(key, mask); merges_[slot].merged >= 0; slot = (slot + 1) & mask) {
    if (keys_[slot] == key) return &merges_[slot];
  }
  return nullptr;
}

// Turns words into tokens, remembering short ones.
class BpeEncoder final : public PieceEncoder {
 public:
  explicit BpeEncoder(const Bpe& model) : model_(model) {}

  void encode(std::string_view piece, PieceTokens& out) override {
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t end = word_end(piece, begin);
      encode_word(piece.substr(begin, end - begin), begin, out);
      begin = end;
    }
  }

 private:
  static constexpr std::size_t kSlots = 1 << 13;
  static constexpr std::size_t kLongestKey = 23;
  static constexpr std::size_t kMostTokens = 6;
  // words before memory for remembering is worth its while
  static constexpr int kWordsBefore = 64;

  struct Remembered {
    uint8_t length = 0;  // 0: nothing
    uint8_t count = 0;
    std::array<uint8_t, kMostTokens> ends{};
    std::array<char, kLongestKey> key{};
    std::array<int32_t, kMostTokens> ids{};
  };
  struct Symbol {
    int32_t id;  // -1: merged into the one before, or unspelled
    std::size_t begin, end;
    std::size_t before, after;  // neighbours, kNone at the ends
  };
  struct Candidate {
    uint32_t rank;
    int32_t merged;
    std::size_t at;

    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };

  // The end of the word that begins at `begin`: words are cut where no rule merges across.
  std::size_t word_end(std::string_view piece, std::size_t begin) const {
    const std::string& mark = model_.word_mark_;
    if (mark.empty()) return piece.size();
    std::size_t at = begin;
    while (piece.substr(at, mark.size()) == mark) at += mark.size();
    return std::min(piece.find(mark, at), piece.size());
  }

  void encode_word(std::string_view word, std::size_t offset, PieceTokens& out) {
    if (word.size() > kLongestKey) return merge_word(word, offset, out);
    if (remembered_.empty() && ++words_ > kWordsBefore) remembered_.resize(kSlots);
    if (remembered_.empty()) return merge_word(word, offset, out);
    Remembered& slot = remembered_[std::hash<std::string_view>{}(word) % kSlots];
    if (slot.length == word.size() && std::equal(word.begin(), word.end(), slot.key.begin())) {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < slot.count; ++i) {
        out.tokens.push_back({slot.ids[i], offset + begin, offset + slot.ends[i]});
        begin = slot.ends[i];
      }
      return;
    }
    const std::size_t first = out.tokens.size(), unspelled = out.unspelled.size();
    merge_word(word, offset, out);
    if (out.unspelled.size() == unspelled) remember(word, offset, out, first, slot);
  }

  static void remember(std::string_view word, std::size_t offset, const PieceTokens& out, std::size_t first,
                       Remembered& slot) {
    const std::size_t count = out.tokens.size() - first;
    if (count > kMostTokens) return;
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(count);
    std::copy(word.begin(), word.end(), slot.key.begin());
    for (std::size_t i = 0; i < count; ++i) {
      slot.ids[i] = out.tokens[first + i].id;
      slot.ends[i] = static_cast<uint8_t>(out.tokens[first + i].end - offset);
    }
  }

  void merge_word(std::string_view word, std::size_t offset, PieceTokens& out) {
    if (model_.options_.whole_first) {
      const int32_t whole = model_.vocabulary_.find(spelled(word));
      if (whole >= 0) return out.tokens.push_back({whole, offset, offset + word.size()});
    }
    symbols_.clear();
    if (model_.options_.byte_level) {
      begin_as_bytes(word, offset, out);
    } else {
      begin_as_characters(word, offset, out);
    }
    merge();
    for (const Symbol& symbol : symbols_) {
      if (symbol.id >= 0) out.tokens.push_back({symbol.id, offset + symbol.begin, offset + symbol.end});
    }
  }

  std::string_view spelled(std::string_view word) {
    if (!model_.options_.byte_level) return word;
    spelling_.clear();
    for (char c : word) spelling_ += byte_character(static_cast<unsigned char>(c));
    return spelling_;
  }

  void add_symbol(int32_t id, std::size_t begin, std::size_t end) {
    const std::size_t at = symbols_.size();
    if (at > 0) symbols_.back().after = at;
    symbols_.push_back({id, begin, end, at == 0 ? kNone : at - 1, kNone});
  }

  void begin_as_bytes(std::string_view word, std::size_t offset, PieceTokens& out) {
    for (std::size_t at = 0; at < word.size(); ++at) {
      const int32_t id = model_.bytes_[static_cast<unsigned char>(word[at])];
      if (id >= 0) {
        add_symbol(id, at, at + 1);
      } else {
        add_unknown(at, at + 1, offset, out);
      }
    }
  }

  void begin_as_characters(std::string_view word, std::size_t offset, PieceTokens& out) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t size = character_at(word, at).size;
      const int32_t id = model_.vocabulary_.find(word.substr(at, size));
      if (id >= 0) {
        add_symbol(id, at, at + size);
      } else if (!fall_back(word, at, size)) {
        add_unknown(at, at + size, offset, out);
      }
      at += size;
    }
  }

  // A character as tokens of its bytes, when there is one for each.
  bool fall_back(std::string_view word, std::size_t at, std::size_t size) {
    if (!model_.options_.byte_fallback) return false;
    const auto id_of = [&](char byte) { return model_.bytes_[static_cast<unsigned char>(byte)]; };
    const std::string_view bytes = word.substr(at, size);
    if (std::any_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) < 0; })) return false;
    for (std::size_t i = 0; i < size; ++i) add_symbol(id_of(bytes[i]), at + i, at + i + 1);
    return true;
  }

  void add_unknown(std::size_t begin, std::size_t end, std::size_t offset, PieceTokens& out) {
    const int32_t unknown = model_.options_.unknown;
    if (unknown < 0) return out.unspelled.push_back({offset + begin, offset + end});
    const bool fuses = model_.options_.fuse_unknown && !symbols_.empty() && symbols_.back().id == unknown &&
                       symbols_.back().end == begin;
    if (fuses) {
      symbols_.back().end = end;
    } else {
      add_symbol(unknown, begin, end);
    }
  }

  void push(std::size_t at) {
    const std::size_t after = symbols_[at].after;
    if (after == kNone) return;
    const Bpe::Merge* merge = model_.find(symbols_[at].id, symbols_[after].id);
    if (merge == nullptr) return;
    candidates_.push_back({merge->rank, merge->merged, at});
    std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  }

  // n log n: each merge takes one symbol away and offers at most two new candidates
  void merge() {
    candidates_.clear();
    for (std::size_t at = 0; at + 1 < symbols_.size(); ++at) push(at);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& symbol = symbols_[best.at];
      if (symbol.id < 0 || symbol.after == kNone) continue;
      // a candidate of symbols that have merged since is stale
      const Bpe::Merge* now = model_.find(symbol.id, symbols_[symbol.after].id);
      if (now == nullptr || now->merged != best.merged) continue;
      absorb_next(best.at, best.merged);
      if (symbol.before != kNone) push(symbol.before);
      push(best.at);
    }
  }

  void absorb_next(std::size_t at, int32_t merged) {
    Symbol& symbol = symbols_[at];
    Symbol& next = symbols_[symbol.after];
    symbol.id = merged;
    symbol.end = next.end;
    symbol.after = next.after;
    if (next.after != kNone) symbols_[next.after].before = at;
    next.id = -1;
  }

  const Bpe& model_;
  int words_ = 0;
  std::vector<Remembered> remembered_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap, the best first
  std::string spelling_;
};

std::unique_ptr<PieceEncoder> Bpe::encoder() const { return std::make_unique<BpeEncoder>(*this); }

}  // namespace headlight
