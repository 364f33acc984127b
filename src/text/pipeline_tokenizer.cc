#include "text/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"

namespace headlight {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& found, const std::string& expected) {
  throw Error(ErrorKind::kBadData, where, found, expected);
}

AddedTokenFinder finder_of(const PipelineParts& parts, bool normalized) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> contents;
  for (const AddedToken& token : parts.added) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    contents.push_back(token.content);
    if (!normalized) continue;
    // what is looked for in normalised text is normalised itself
    Flow flow(token.content, 0, token.content.size(), false);
    normalize(parts.normalizer, flow);
    contents.back() = flow.text();
  }
  return {std::move(tokens), contents};
}

// Added tokens either are tokens of the model or continue its ids without a gap.
void check_added(const Vocabulary& vocabulary, std::vector<AddedToken> added, const std::string& where) {
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  int32_t next = vocabulary.size();
  for (std::size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    const std::string found = fmt::format("added token {} has id {}", in_quotes(token.content), token.id);
    if (token.content.empty()) refuse(where, fmt::format("added token {} is empty", token.id), "expected some text");
    if (i > 0 && token.id == added[i - 1].id) {
      refuse(where, found, fmt::format("{} has it as well", in_quotes(added[i - 1].content)));
    }
    const int32_t known = vocabulary.find(token.content);
    if (known >= 0) {
      if (token.id != known) refuse(where, found, fmt::format("the model's vocabulary gives it id {}", known));
    } else if (token.id < vocabulary.size()) {
      refuse(where, found, fmt::format("the model's token of that id is {}", in_quotes(vocabulary.spelling(token.id))));
    } else if (token.id != next++) {
      refuse(where, found, fmt::format("expected {}, ids without a gap", next - 1));
    }
  }
}

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(PipelineParts parts)
      : parts_(std::move(parts)),
        finder_(finder_of(parts_, false)),
        normalized_finder_(finder_of(parts_, true)),
        decoding_(*parts_.vocabulary, parts_.added, parts_.decoding) {}

  std::string kind() const override { return parts_.kind; }
  int64_t vocabulary() const override { return decoding_.vocabulary(); }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    for (int32_t id : ids) check_id(id);
    return decoding_.decode(ids, options.skip_special);
  }
  std::string token_text(int32_t id) const override {
    check_id(id);
    return decoding_.text(id);
  }
  bool is_special(int32_t id) const override {
    check_id(id);
    return decoding_.is_special(id);
  }
  SpecialIds special_ids() const override { return parts_.special_ids; }
  Frame frame() const override { return parts_.frame; }
  std::string to_json() const override { return parts_.to_json(); }
  HuggingFaceFiles to_hugging_face() const override {
    return parts_.to_hugging_face ? parts_.to_hugging_face() : Tokenizer::to_hugging_face();
  }

 protected:
  Encoding encode_bare(std::string_view text, const EncodeOptions& options) const override {
    Work work{text, parts_.model->encoder(), {}, {}};
    std::vector<Piece> sections;
    if (finder_.empty()) {
      if (!text.empty()) sections.push_back({0, text.size()});
    } else {
      finder_.find(text, options.special_tokens, sections);
    }
    bool after_special = false;
    for (const Piece& section : sections) {
      if (section.token >= 0) {
        after_special = decoding_.is_special(section.token);
        add(section.token, {static_cast<int64_t>(section.begin), static_cast<int64_t>(section.end)}, options, work);
      } else {
        encode_section(Flow(text, section.begin, section.end, options.spans, after_special), options, work);
        after_special = false;
      }
    }
    return std::move(work.encoding);
  }

 private:
  struct Work {
    std::string_view text;
    std::unique_ptr<PieceEncoder> encoder;
    PieceTokens tokens;  // of one piece
    Encoding encoding;
  };

  static void add(int32_t id, const TokenSpan& span, const EncodeOptions& options, Work& work) {
    work.encoding.ids.push_back(id);
    if (options.spans) work.encoding.spans.push_back(span);
  }

  void encode_section(Flow flow, const EncodeOptions& options, Work& work) const {
    if (!parts_.model->keeps_broken_bytes()) normalize({ReplaceBroken{}}, flow);
    normalize(parts_.normalizer, flow);
    if (!normalized_finder_.empty()) {
      flow.pieces.clear();
      normalized_finder_.find(flow.text(), options.special_tokens, flow.pieces);
    }
    pre_tokenize(parts_.pre_tokenizer, flow);
    for (const Piece& piece : flow.pieces) {
      if (piece.token >= 0) {
        add(piece.token, options.spans ? flow.span(piece.begin, piece.end) : TokenSpan{}, options, work);
      } else {
        encode_piece(flow, piece, options, work);
      }
    }
  }

  void encode_piece(const Flow& flow, const Piece& piece, const EncodeOptions& options, Work& work) const {
    const std::string_view bytes = flow.text().substr(piece.begin, piece.end - piece.begin);
    work.tokens.clear();
    work.encoder->encode(bytes, work.tokens);
    for (const Unspelled& part : work.tokens.unspelled) {
      if (!options.drop_unspelled) {
        refuse_unspelled(
            work.text, bytes.substr(part.begin, part.end - part.begin),
            options.spans ? flow.span(piece.begin + part.begin, piece.begin + part.end) : TokenSpan{-1, -1}, options);
      }
      work.encoding.dropped += static_cast<int64_t>(part.end - part.begin);
    }
    for (const PieceToken& token : work.tokens.tokens) {
      work.encoding.ids.push_back(token.id);
      if (options.spans) {
        work.encoding.spans.push_back(flow.span(piece.begin + token.begin, piece.begin + token.end));
      }
    }
  }

  [[noreturn]] void refuse_unspelled(std::string_view text, std::string_view bytes, const TokenSpan& span,
                                     EncodeOptions options) const {
    // where the bytes are in the text is known only when spans are
    if (!options.spans) {
      options.spans = true;
      encode_bare(text, options);
    }
    std::string hexadecimal;
    for (char c : bytes.substr(0, 4)) hexadecimal += fmt::format(" {:02x}", static_cast<unsigned char>(c));
    throw Error(ErrorKind::kUsage, fmt::format("text, byte {}", span.begin),
                fmt::format("no token of this model spells{}", hexadecimal),
                "expected text of its vocabulary; such bytes can be left out");
  }

  PipelineParts parts_;
  AddedTokenFinder finder_;             // in the text as it is
  AddedTokenFinder normalized_finder_;  // in normalised text
  Decoding decoding_;
};

void check_ids(const PipelineParts& parts, int64_t vocabulary, const std::string& where) {
  const auto check = [&](int32_t id, const char* what) {
    if (id >= 0 && id < vocabulary) return;
    refuse(where, fmt::format("{} is {}", what, id), fmt::format("expected an id below {}", vocabulary));
  };
  for (int32_t id : parts.frame.before) check(id, "an id before the text");
  for (int32_t id : parts.frame.after) check(id, "an id after the text");
  const SpecialIds& ids = parts.special_ids;
  for (const auto& id : {ids.start, ids.end, ids.unknown, ids.padding, ids.classification, ids.separator, ids.mask}) {
    if (id) check(*id, "a special id");
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> pipeline_tokenizer(PipelineParts parts, const std::string& where) {
  check_added(*parts.vocabulary, parts.added, where);
  int64_t vocabulary = parts.vocabulary->size();
  for (const AddedToken& token : parts.added) vocabulary = std::max<int64_t>(vocabulary, token.id + 1);
  check_ids(parts, vocabulary, where);
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

}  // namespace headlight
