#include "headlight/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"

namespace headlight {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\v\f";

void check_id(int32_t id, int64_t vocabulary) {
  if (id >= 0 && id < vocabulary) return;
  throw LogicError("decode", fmt::format("token {} is not in a vocabulary of {}", id, vocabulary));
}

class ByteTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  int64_t vocabulary() const override { return 256; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids(text.size());
    std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (int32_t id : ids) {
      check_id(id, 256);
      text += static_cast<char>(id);
    }
    return text;
  }

  std::string token_text(int32_t id) const override { return decode(std::span(&id, 1)); }
  std::optional<int32_t> start_token() const override { return std::nullopt; }
  std::string to_json() const override { return pretty_json({{"kind", kind()}}); }
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

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
      const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
      ids.push_back(id_of(text.substr(begin, end - begin)));
      begin = text.find_first_not_of(kBlanks, end);
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) text += (text.empty() ? "" : " ") + token_text(id);
    return text;
  }

  std::string token_text(int32_t id) const override {
    check_id(id, vocabulary());
    return names_[static_cast<std::size_t>(id)];
  }

  std::optional<int32_t> start_token() const override { return start_; }

  std::string to_json() const override {
    nlohmann::ordered_json json{{"kind", kind()}};
    if (start_) json["start"] = token_text(*start_);
    json["tokens"] = names_;
    return pretty_json(json);
  }

 private:
  int32_t id_of(std::string_view name) const {
    const auto found = ids_.find(std::string(name));
    if (found != ids_.end()) return found->second;
    throw Error(ErrorKind::kUsage, "text", in_quotes(name) + " is not a token of this model",
                fmt::format("its {} tokens are written {} to {}, with blanks between", names_.size(), names_.front(),
                            names_.back()));
  }

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

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (std::size_t at = 0; at < text.size();) {
      ids.push_back(longest_piece(text, at));
      at += pieces_[static_cast<std::size_t>(ids.back())].size();
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) text += token_text(id);
    return text;
  }

  std::string token_text(int32_t id) const override {
    check_id(id, vocabulary());
    return pieces_[static_cast<std::size_t>(id)];
  }

  std::optional<int32_t> start_token() const override { return std::nullopt; }
  std::string to_json() const override { return pretty_json({{"kind", kind()}, {"tokens", pieces_}}); }

 private:
  int32_t longest_piece(std::string_view text, std::size_t at) const {
    for (std::size_t length = std::min(longest_, text.size() - at); length > 0; --length) {
      const auto found = ids_.find(std::string(text.substr(at, length)));
      if (found != ids_.end()) return found->second;
    }
    throw Error(ErrorKind::kUsage, fmt::format("text, byte {}", at),
                "no token of this model spells " + in_quotes(text.substr(at, 12)),
                fmt::format("its {} tokens are in tokenizer.json", pieces_.size()));
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
  const std::size_t kind = read.choice("kind", {"bytes", "symbols", "pieces"});
  std::shared_ptr<const Tokenizer> tokenizer = kind == 0   ? byte_tokenizer()
                                               : kind == 1 ? read_symbols(read)
                                                           : piece_tokenizer(read_tokens(read, false));
  read.finish();
  return tokenizer;
}

void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder) {
  make_folder(folder);
  write_file_atomically(folder / "tokenizer.json", tokenizer.to_json());
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  return tokenizer_from_json(read_file(file), file.string());
}

}  // namespace headlight
