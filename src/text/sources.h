#pragma once
// How each kind of source is made again from what its to_json() wrote; `kind` has been read.

#include <memory>

#include "base/json_reader.h"
#include "headlight/text/data_source.h"

namespace headlight {

std::shared_ptr<const DataSource> read_text_file(JsonReader& read);
std::shared_ptr<const DataSource> read_repeats(JsonReader& read);
std::shared_ptr<const DataSource> read_log_lines(JsonReader& read);

}  // namespace headlight
