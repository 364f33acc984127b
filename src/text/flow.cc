#include "text/flow.h"

#include <utility>

namespace headlight {

TokenSpan Flow::span(std::size_t begin, std::size_t end) const {
  if (origins_.empty()) {
    return {static_cast<int64_t>(base_ + begin), static_cast<int64_t>(base_ + end)};
  }
  if (begin < end) return {origins_[begin].begin, origins_[end - 1].end};
  const int64_t at = begin < origins_.size() ? origins_[begin].begin : origins_.back().end;
  return {at, at};
}

void Rewrite::keep(std::size_t begin, std::size_t end) {
  text_.append(flow_.text(), begin, end - begin);
  if (!flow_.want_spans_) return;
  for (std::size_t i = begin; i < end; ++i) origins_.push_back(flow_.span(i, i + 1));
}

void Rewrite::put(std::string_view bytes, std::size_t begin, std::size_t end) {
  text_ += bytes;
  if (flow_.want_spans_) origins_.insert(origins_.end(), bytes.size(), flow_.span(begin, end));
}

void Rewrite::finish() {
  flow_.owned_ = std::move(text_);
  flow_.text_ = flow_.owned_;
  flow_.origins_ = std::move(origins_);
}

}  // namespace headlight
