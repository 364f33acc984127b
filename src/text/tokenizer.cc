#include "headlight/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "text/tokenizer_files.h"
#include "text/utf8.h"

namespace headlight {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\v\f";

// An encoding in the making, with what the options ask for.
class Encoded {
 public:
  Encoded(std::string_view text, const EncodeOptions& options) : text_(text), options_(options) {}

  void add(int32_t id, std::size_t begin, std::size_t end) {
    encoding_.ids.push_back(id);
    if (options_.spans) encoding_.spans.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
  }
  // Bytes that no token spells: left out or an error.
  void unspelled(std::size_t begin, std::size_t end, std::size_t least_shown, const std::string& expected) {
    if (!options_.drop_unspelled) {
      const std::string_view shown = text_.substr(begin, std::max(end - begin, least_shown));
      throw Error(ErrorKind::kUsage, fmt::format("text, byte {}", begin),
                  "no token of this model spells " + in_quotes(shown), expected);
    }
    encoding_.dropped += static_cast<int64_t>(end - begin);
  }
  Encoding take() { return std::move(encoding_); }

 private:
  std::string_view text_;
  const EncodeOptions& options_;
  Encoding encoding_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  int64_t vocabulary() const override { return 256; }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions&) const override {
    std::string text;
    text.reserve(ids.size());
    for (int32_t id : ids) {
      check_id(id);
      text += static_cast<char>(id);
    }
    return text;
  }

  std::string token_text(int32_t id) const override { return decode(std::span(&id, 1), {}); }
  bool is_special(int32_t id) const override {
    check_id(id);
    return false;
  }
  std::string to_json() const override { return pretty_json({{"kind", kind()}}); }

 protected:
  Encoding encode_bare(std::string_view text, const EncodeOptions& options) const override {
    Encoded encoded(text, options);
    for (std::size_t at = 0; at < text.size(); ++at) encoded.add(static_cast<unsigned char>(text[at]), at, at + 1);
    return encoded.take();
  }
};

// Why these texts cannot be the tokens, or "". Blanks are text to pieces, and what parts symbols.
std::string problem_of(const std::vector<std::string>& names, bool blanks_part) {
  std::unordered_map<std::string, std::size_t> seen;
  if (names.empty()) return "there is no token";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return fmt::format("token {} is empty", i);
    if (blanks_part && names[i].find_first_of(kBlanks) != std::string::npos) {
      return fmt::format("token {}, {}, holds a blank", i, in_quotes(names[i]));
    }
    const auto [first, fresh] = seen.emplace(names[i], i);
    if (!fresh) return fmt::format("tokens {} and {} are both {}", first->second, i, in_quotes(names[i]));
  }
  return "";
}

class SymbolTokenizer final : public Tokenizer {
 public:
  SymbolTokenizer(std::vector<std::string> names, std::optional<int32_t> start)
      : names_(std::move(names)), start_(start) {
    for (std::size_t i = 0; i < names_.size(); ++i) ids_[names_[i]] = static_cast<int32_t>(i);
  }

  std::string kind() const override { return "symbols"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(names_.size()); }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::string text;
    for (int32_t id : ids) {
      if (options.skip_special && is_special(id)) continue;
      text += (text.empty() ? "" : " ") + token_text(id);
    }
    return text;
  }

  std::string token_text(int32_t id) const override {
    check_id(id);
    return names_[static_cast<std::size_t>(id)];
  }
  bool is_special(int32_t id) const override {
    check_id(id);
    return id == start_;
  }
  Frame frame() const override {
    if (!start_) return {};
    return {{*start_}, {}};
  }
  SpecialIds special_ids() const override {
    SpecialIds ids;
    ids.start = start_;
    return ids;
  }

  std::string to_json() const override {
    nlohmann::ordered_json json{{"kind", kind()}};
    if (start_) json["start"] = token_text(*start_);
    json["tokens"] = names_;
    return pretty_json(json);
  }

 protected:
  // the start token is a name like any other, found with or without special_tokens
  Encoding encode_bare(std::string_view text, const EncodeOptions& options) const override {
    Encoded encoded(text, options);
    for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
      const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
      const auto found = ids_.find(std::string(text.substr(begin, end - begin)));
      if (found != ids_.end()) {
        encoded.add(found->second, begin, end);
      } else {
        encoded.unspelled(begin, end, 0,
                          fmt::format("its {} tokens are written {} to {}, with blanks between", names_.size(),
                                      names_.front(), names_.back()));
      }
      begin = text.find_first_not_of(kBlanks, end);
    }
    return encoded.take();
  }

 private:
  std::vector<std::string> names_;
  std::optional<int32_t> start_;
  std::unordered_map<std::string, int32_t> ids_;
};

class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      ids_[pieces_[i]] = static_cast<int32_t>(i);
      longest_ = std::max(longest_, pieces_[i].size());
    }
  }

  std::string kind() const override { return "pieces"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(pieces_.size()); }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions&) const override {
    std::string text;
    for (int32_t id : ids) text += token_text(id);
    return text;
  }

  std::string token_text(int32_t id) const override {
    check_id(id);
    return pieces_[static_cast<std::size_t>(id)];
  }
  bool is_special(int32_t id) const override {
    check_id(id);
    return false;
  }
  std::string to_json() const override { return pretty_json({{"kind", kind()}, {"tokens", pieces_}}); }

 protected:
  Encoding encode_bare(std::string_view text, const EncodeOptions& options) const override {
    Encoded encoded(text, options);
    for (std::size_t at = 0; at < text.size();) {
      const int32_t id = longest_piece(text, at);
      const std::size_t end =
          id < 0 ? at + character_at(text, at).size : at + pieces_[static_cast<std::size_t>(id)].size();
      if (id >= 0) {
        encoded.add(id, at, end);
      } else {
        encoded.unspelled(at, end, 12, fmt::format("its {} tokens are in tokenizer.json", pieces_.size()));
      }
      at = end;
    }
    return encoded.take();
  }

 private:
  // -1: no piece begins here
  int32_t longest_piece(std::string_view text, std::size_t at) const {
    for (std::size_t length = std::min(longest_, text.size() - at); length > 0; --length) {
      const auto found = ids_.find(std::string(text.substr(at, length)));
      if (found != ids_.end()) return found->second;
    }
    return -1;
  }

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
  std::size_t longest_ = 0;  // bytes
};

std::vector<std::string> read_tokens(JsonReader& read, bool blanks_part) {
  std::vector<std::string> names;
  const nlohmann::json& tokens = read.value("tokens");
  if (!tokens.is_array()) read.fail("tokens", "found no list", "expected a list of names");
  for (const nlohmann::json& token : tokens) {
    if (!token.is_string()) read.fail("tokens", "found " + token.dump(), "expected a list of names");
    names.push_back(token.get<std::string>());
  }
  if (const std::string problem = problem_of(names, blanks_part); !problem.empty()) read.fail("tokens", problem, "");
  return names;
}

std::shared_ptr<const Tokenizer> read_symbols(JsonReader& read) {
  std::vector<std::string> names = read_tokens(read, true);
  std::optional<int32_t> start;
  if (read.has("start")) {
    const std::string name = read.text("start");
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) read.fail("start", "found " + in_quotes(name), "expected one of the tokens");
    start = static_cast<int32_t>(found - names.begin());
  }
  return std::make_shared<SymbolTokenizer>(std::move(names), start);
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoding encoding = encode_bare(text, options);
  if (!options.framed) return encoding;
  const Frame around = frame();
  const auto put = [&](const std::vector<int32_t>& ids, bool in_front) {
    auto& to = encoding.ids;
    const int64_t at = in_front ? 0 : static_cast<int64_t>(text.size());
    const bool is_there = to.size() >= ids.size() && (in_front ? std::equal(ids.begin(), ids.end(), to.begin())
                                                               : std::equal(ids.rbegin(), ids.rend(), to.rbegin()));
    if (is_there) return;
    to.insert(in_front ? to.begin() : to.end(), ids.begin(), ids.end());
    auto& spans = encoding.spans;
    if (options.spans) spans.insert(in_front ? spans.begin() : spans.end(), ids.size(), TokenSpan{at, at});
  };
  put(around.before, true);
  put(around.after, false);
  return encoding;
}

std::optional<int32_t> Tokenizer::start_token() const {
  const Frame around = frame();
  if (around.before.empty()) return std::nullopt;
  return around.before.front();
}

HuggingFaceFiles Tokenizer::to_hugging_face() const {
  throw Error(ErrorKind::kUsage, "tokenizer", "of kind " + kind() + " has no form in the Hugging Face library");
}

void Tokenizer::check_id(int32_t id) const {
  if (id >= 0 && id < vocabulary()) return;
  throw LogicError("decode", fmt::format("token {} is not in a vocabulary of {}", id, vocabulary()));
}

std::shared_ptr<const Tokenizer> byte_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer = std::make_shared<ByteTokenizer>();
  return tokenizer;
}

std::shared_ptr<const Tokenizer> symbol_tokenizer(std::vector<std::string> names, std::optional<int32_t> start) {
  std::string problem = problem_of(names, true);
  if (problem.empty() && start && (*start < 0 || static_cast<std::size_t>(*start) >= names.size())) {
    problem = fmt::format("start token {} is none of {} tokens", *start, names.size());
  }
  if (!problem.empty()) throw LogicError("symbol_tokenizer", problem);
  return std::make_shared<SymbolTokenizer>(std::move(names), start);
}

std::shared_ptr<const Tokenizer> piece_tokenizer(std::vector<std::string> pieces) {
  const std::string problem = problem_of(pieces, false);
  if (!problem.empty()) throw LogicError("piece_tokenizer", problem);
  return std::make_shared<PieceTokenizer>(std::move(pieces));
}

std::shared_ptr<const Tokenizer> tokenizer_from_json(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  JsonReader read(json, where);
  // a Hugging Face file has a model and no kind
  if (!read.has("kind") && read.has("model")) return hugging_face_tokenizer(json, text, where, {});
  std::shared_ptr<const Tokenizer> tokenizer;
  switch (read.choice("kind", {"bytes", "symbols", "pieces", "hugging-face", "metadata"})) {
    case 0:
      tokenizer = byte_tokenizer();
      break;
    case 1:
      tokenizer = read_symbols(read);
      break;
    case 2:
      tokenizer = piece_tokenizer(read_tokens(read, false));
      break;
    case 3:
      tokenizer = read_hugging_face(read, where);
      break;
    default:
      tokenizer = read_metadata(read, where);
      break;
  }
  read.finish();
  return tokenizer;
}

void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder) {
  make_folder(folder);
  write_file_atomically(folder / "tokenizer.json", tokenizer.to_json());
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json", config = folder / "tokenizer_config.json";
  const std::string text = read_file(file);
  std::error_code absent;
  if (!std::filesystem::exists(config, absent)) return tokenizer_from_json(text, file.string());
  const nlohmann::json json = parse_json(text, file.string());
  if (json.is_object() && json.contains("kind")) return tokenizer_from_json(text, file.string());
  return hugging_face_tokenizer(json, text, file.string(), {read_file(config), config.string()});
}

}  // namespace headlight
