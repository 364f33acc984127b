#pragma once
// A section of text on its way to tokens: rewritten by normalisers, cut into pieces by pre-tokenizers, with each
// byte knowing where it came from.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/text/tokenizer.h"

namespace headlight {

// Bytes [begin, end) of a flow's text. A piece that is a token already (an added one) is not cut further.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  int32_t token = -1;
};

class Flow {
 public:
  // Bytes [begin, end) of `whole`, which must outlive the flow. Spans cost memory only when asked for.
  Flow(std::string_view whole, std::size_t begin, std::size_t end, bool want_spans, bool after_special = false)
      : text_(whole.substr(begin, end - begin)), base_(begin), want_spans_(want_spans), after_special_(after_special) {
    if (end > begin) pieces.push_back({0, end - begin});
  }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  std::string_view text() const { return text_; }
  // Whether the section is where the whole text begins.
  bool begins_text() const { return base_ == 0; }
  // Whether a special token is right in front of it.
  bool after_special() const { return after_special_; }

  // Where bytes [begin, end) of text() come from in the whole text; empty for bytes that were put in.
  TokenSpan span(std::size_t begin, std::size_t end) const;

  // In order, without gaps that matter: bytes in no piece are lost to the tokens.
  std::vector<Piece> pieces;

 private:
  friend class Rewrite;

  std::string_view text_;  // of the whole text, or of owned_
  std::string owned_;
  std::vector<TokenSpan> origins_;  // one per byte once rewritten, when spans are wanted
  std::size_t base_;
  bool want_spans_;
  bool after_special_;
};

// Makes a flow's next text from left to right.
class Rewrite {
 public:
  explicit Rewrite(Flow& flow) : flow_(flow) { text_.reserve(flow.text().size() + flow.text().size() / 8); }

  // The flow's own bytes.
  void keep(std::size_t begin, std::size_t end);
  // Other bytes in place of the flow's [begin, end), which may be empty.
  void put(std::string_view bytes, std::size_t begin, std::size_t end);
  // How much has been written.
  std::size_t size() const { return text_.size(); }
  // Hands the text to the flow. Its pieces are as they were: set them where sizes changed.
  void finish();

 private:
  Flow& flow_;
  std::string text_;
  std::vector<TokenSpan> origins_;
};

}  // namespace headlight
