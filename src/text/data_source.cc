#include "headlight/text/data_source.h"

#include <fmt/format.h>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/sources.h"
#include "text/streams.h"

namespace headlight {

void Samples::resize(int64_t new_size, int64_t new_time) {
  size = new_size;
  time = new_time;
  const std::size_t count = static_cast<std::size_t>(new_size * new_time);
  tokens.resize(count);
  targets.resize(count);
  classes.resize(count);
}

RandomStream training_stream(uint64_t seed, int64_t step, int64_t row) {
  constexpr int64_t kMostSteps = int64_t{1} << 43;
  if (step < 0 || step >= kMostSteps) throw LogicError("training", fmt::format("step {} is out of range", step));
  check_rows("training", row, 1, kMostRows);
  return RandomStream(seed, 0x74726169, static_cast<uint64_t>(step * kMostRows + row));
}

RandomStream validation_stream(int64_t row) { return RandomStream(0, 0x76616c69, static_cast<uint64_t>(row)); }

RandomStream request_stream(uint64_t seed, int64_t row) {
  return RandomStream(seed, 0x72657175, static_cast<uint64_t>(row));
}

void check_rows(const char* operation, int64_t first, int64_t size, int64_t count) {
  if (first >= 0 && size >= 0 && first <= count - size) return;
  throw LogicError(operation, fmt::format("sequences {} to {} of {}", first, first + size, count));
}

namespace {

std::shared_ptr<const DataSource> read_source(JsonReader& read) {
  switch (read.choice("kind", {"text", "repeats", "log-lines"})) {
    case 0:
      return read_text_file(read);
    case 1:
      return read_repeats(read);
    default:
      return read_log_lines(read);
  }
}

}  // namespace

std::shared_ptr<const DataSource> data_source_from_json(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  JsonReader read(json, where);
  try {
    return read_source(read);
  } catch (const Error& error) {
    // an option that a person may not give is bad data when a file holds it
    if (error.kind() != ErrorKind::kUsage) throw;
    throw Error(ErrorKind::kBadData, where + ": " + error.where(), error.found(), error.expected());
  }
}

}  // namespace headlight
