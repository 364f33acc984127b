#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/file.h"

namespace headlight {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxQuoted = 100;

[[noreturn]] void bad(const std::string& where, const std::string& found, const std::string& expected) {
  throw Error(ErrorKind::kBadData, where, found, expected);
}

// Most keys are plain; those that a file made up may hold anything.
std::string key_text(const std::string& key) {
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127 && c != '"'; });
  return "key " + (plain && key.size() <= kMaxQuoted ? key : in_quotes(key));
}

// What the parser complains about, without its own prefix and without the text it quotes.
std::string complaint(const json::exception& error) {
  std::string text = error.what();
  if (const std::size_t begin = text.find("syntax error"); begin != std::string::npos) text.erase(0, begin);
  if (const std::size_t end = text.find("; last read"); end != std::string::npos) text.erase(end);
  return text;
}

// Builds the value while the parser reads, and stops at the first thing that JSON allows and we do not.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(const std::string& file, uint64_t offset) : file_(file), offset_(offset) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in text

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    json::object_t& object = open_.back()->get_ref<json::object_t&>();
    const auto [member, fresh] = object.emplace(key, nullptr);
    if (!fresh) bad(file_, key_text(key) + " occurs twice", "expected each key once");
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    // the parser counts the bytes it has read, the offending one included
    const uint64_t at = offset_ + (position > 0 ? position - 1 : 0);
    bad(file_, fmt::format("byte {}: {}", at, complaint(error)), "expected JSON in UTF-8");
  }

  json take() { return std::move(root_); }

 private:
  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::move(value);
      return member_;
    }
    json::array_t& array = open_.back()->get_ref<json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }

  bool put(json value) {
    place(std::move(value));
    return true;
  }

  bool open(json container) {
    if (open_.size() == kMaxDepth) {
      bad(file_, fmt::format("JSON is nested deeper than {} levels", kMaxDepth), "expected a flatter file");
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& file_;
  uint64_t offset_;
  json root_;
  std::vector<json*> open_;  // containers begun and not ended, outermost first
  json* member_ = nullptr;   // where the value of the last key goes
};

std::string found_text(const json& value) {
  if (value.is_string()) return "found " + in_quotes(value.get_ref<const std::string&>());
  if (value.is_object()) return "found an object";
  if (value.is_array()) return "found a list";
  return "found " + value.dump();
}

std::string range_text(int64_t min, int64_t max) {
  if (max == JsonReader::kMaxWhole) return fmt::format("expected a whole number >= {}", min);
  return fmt::format("expected a whole number from {} to {}", min, max);
}

}  // namespace

json parse_json(std::string_view text, const std::string& file, uint64_t offset) {
  // the parser would take a zero byte for the end of the text
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    bad(file, fmt::format("byte {}: a zero byte in JSON", offset + zero), "expected JSON in UTF-8");
  }
  Builder builder(file, offset);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

json parse_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > kMaxQuoted;
  const json value = std::string(text.substr(0, kMaxQuoted));
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + (cut ? "..." : "");
}

std::string pretty_json(const nlohmann::ordered_json& value) {
  try {
    return value.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw LogicError("pretty_json", "a string is not UTF-8");
  }
}

JsonReader::JsonReader(const json& value, std::string where) : object_(&value), where_(std::move(where)) {
  if (!value.is_object()) bad(where_, found_text(value), "expected an object");
}

bool JsonReader::has(const std::string& key) {
  asked_.insert(key);
  const auto member = object_->find(key);
  return member != object_->end() && !member->is_null();
}

const json& JsonReader::value(const std::string& key) {
  asked_.insert(key);
  const auto member = object_->find(key);
  if (member == object_->end()) bad(where_, key_text(key) + " is missing", "");
  return *member;
}

int64_t JsonReader::whole_of(const json& value, const std::string& key, int64_t min, int64_t max) const {
  int64_t whole = 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kMaxWhole)) {
    whole = static_cast<int64_t>(value.get<uint64_t>());
  } else if (value.is_number_integer() && !value.is_number_unsigned()) {
    whole = value.get<int64_t>();
  } else {
    fail(key, found_text(value), range_text(min, max));
  }
  if (whole < min || whole > max) fail(key, found_text(value), range_text(min, max));
  return whole;
}

int64_t JsonReader::whole(const std::string& key, int64_t min, int64_t max) {
  return whole_of(value(key), key, min, max);
}

double JsonReader::number_of(const json& found, const std::string& key, double min, double max) const {
  const double number = found.is_number() ? found.get<double>() : std::nan("");
  if (!(number >= min && number <= max)) {
    fail(key, found_text(found), fmt::format("expected a number from {} to {}", min, max));
  }
  return number;
}

double JsonReader::number(const std::string& key, double min, double max) {
  return number_of(value(key), key, min, max);
}

bool JsonReader::boolean(const std::string& key) {
  const json& found = value(key);
  if (!found.is_boolean()) fail(key, found_text(found), "expected true or false");
  return found.get<bool>();
}

std::string JsonReader::text(const std::string& key) {
  const json& found = value(key);
  if (!found.is_string()) fail(key, found_text(found), "expected a string");
  return found.get<std::string>();
}

std::size_t JsonReader::choice(const std::string& key, std::initializer_list<std::string_view> choices) {
  const json& found = value(key);
  std::string expected = "expected one of";
  std::size_t position = 0;
  for (std::string_view choice : choices) {
    if (found.is_string() && found.get_ref<const std::string&>() == choice) return position;
    expected += (position == 0 ? " " : ", ") + in_quotes(choice);
    ++position;
  }
  fail(key, found_text(found), expected);
}

const json& JsonReader::list_of(const std::string& key, const std::string& expected) {
  const json& found = value(key);
  if (!found.is_array()) fail(key, found_text(found), expected);
  return found;
}

std::vector<int64_t> JsonReader::wholes(const std::string& key, int64_t min, int64_t max) {
  std::vector<int64_t> list;
  for (const json& element : list_of(key, "expected a list of whole numbers")) {
    list.push_back(whole_of(element, fmt::format("{}[{}]", key, list.size()), min, max));
  }
  return list;
}

std::vector<double> JsonReader::numbers(const std::string& key, double min, double max) {
  std::vector<double> list;
  for (const json& element : list_of(key, "expected a list of numbers")) {
    list.push_back(number_of(element, fmt::format("{}[{}]", key, list.size()), min, max));
  }
  return list;
}

std::vector<std::string> JsonReader::texts(const std::string& key) {
  std::vector<std::string> list;
  for (const json& element : list_of(key, "expected a list of strings")) {
    if (!element.is_string()) fail(fmt::format("{}[{}]", key, list.size()), found_text(element), "expected a string");
    list.push_back(element.get<std::string>());
  }
  return list;
}

JsonReader JsonReader::object(const std::string& key) { return JsonReader(value(key), where_ + ": " + key_text(key)); }

void JsonReader::finish() const {
  for (const auto& [key, value] : object_->items()) {
    if (asked_.count(key) == 0) bad(where_, key_text(key) + " is unknown", "");
  }
}

void JsonReader::fail(const std::string& key, const std::string& found, const std::string& expected) const {
  bad(where_ + ": " + key_text(key), found, expected);
}

}  // namespace headlight
