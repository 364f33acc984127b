#pragma once
// Strict JSON for what comes from outside: configurations, headers, indexes, manifests. Every error names the
// file, the key, what was found and what is expected.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

// Parses all of `text`. Throws Error (bad data) on anything that is not JSON in UTF-8, on a key that occurs
// twice in one object (compared after unescaping), and on nesting beyond 64 levels. `offset` is where the text
// begins in its file, for messages.
nlohmann::json parse_json(std::string_view text, const std::string& file, uint64_t offset = 0);

// The JSON of a whole file. Errors as read_file and parse_json.
nlohmann::json parse_json_file(const std::filesystem::path& path);

// `text` between quotation marks with what a terminal could trip over escaped, cut when long: for messages.
std::string in_quotes(std::string_view text);

// JSON with two blanks of indentation and a final newline; members keep their order. Throws LogicError when a
// string is not UTF-8.
std::string pretty_json(const nlohmann::ordered_json& value);

// Reads the members of one object by name, type and range. It borrows the object. An absent key is an error
// unless `has` was asked first; `finish` refuses every key that was never asked for.
//   JsonReader read(json, "config.json");
//   config.heads = read.whole("heads", 1);
//   if (read.has("window")) config.window = read.whole("window", 1);
//   read.finish();
class JsonReader {
 public:
  static constexpr int64_t kMaxWhole = std::numeric_limits<int64_t>::max();

  // Throws Error (bad data) when `value` is not an object.
  JsonReader(const nlohmann::json& value, std::string where);

  // Whether the key is there with a value other than null.
  bool has(const std::string& key);

  int64_t whole(const std::string& key, int64_t min, int64_t max = kMaxWhole);
  // finite, min <= value <= max
  double number(const std::string& key, double min, double max);
  bool boolean(const std::string& key);
  std::string text(const std::string& key);
  // the position in `choices` of the key's text
  std::size_t choice(const std::string& key, std::initializer_list<std::string_view> choices);
  std::vector<int64_t> wholes(const std::string& key, int64_t min, int64_t max = kMaxWhole);
  std::vector<std::string> texts(const std::string& key);
  std::vector<double> numbers(const std::string& key, double min, double max);
  JsonReader object(const std::string& key);
  // any value
  const nlohmann::json& value(const std::string& key);

  // Throws Error (bad data) naming the first key that nothing asked for.
  void finish() const;

  // Throws Error (bad data) about one key, for checks between several.
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const;

 private:
  int64_t whole_of(const nlohmann::json& value, const std::string& key, int64_t min, int64_t max) const;
  double number_of(const nlohmann::json& value, const std::string& key, double min, double max) const;
  const nlohmann::json& list_of(const std::string& key, const std::string& expected);

  const nlohmann::json* object_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace headlight
