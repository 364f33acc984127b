#pragma once
// Pages that open offline: what `report` and `attend --out` have in common.

#include <string>
#include <vector>

#include "analysis.h"
#include "console.h"
#include "headlight/explain/report.h"
#include "subject.h"

namespace headlight::cli {

// A text whose maps are shown.
struct PageText {
  std::string name;
  std::vector<int32_t> ids;
  bool start_token = false;
};
// Throws Error (usage) when no tokens spell the text, it is empty, or exceeds the model's context.
PageText text_of(const Subject& subject, const std::string& text, const std::string& start);
// Random tokens and their repetition, short enough to read.
PageText sample_text(const Subject& subject, const std::string& start);

// All that a page says of the model and of how it was made; scores, readings and texts are left to fill in.
Report begin_page(const Subject& subject, const std::string& title, const std::string& data, uint64_t seed,
                  const Console& console);

// A page of maps alone, with each head's scores on this text.
void write_map_page(const std::string& path, const Subject& subject, const PageText& text,
                    const std::vector<AttentionMap>& maps, const Console& console);

}  // namespace headlight::cli
