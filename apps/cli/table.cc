#include "table.h"

#include <algorithm>

#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr int kGap = 2;             // columns between columns
constexpr int kNarrowestWrap = 24;  // the last column is not wrapped into less
constexpr int kIndentBelow = 6;     // of a last column on a line of its own

std::string padded(const std::string& text, int width, Align align) {
  const std::string fill(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
  return align == Align::kLeft ? text + fill : fill + text;
}

bool is_heading(const std::vector<Cell>& row) { return row.size() == 1 && row[0].text[0] == '\n'; }

}  // namespace

// Where the last column stands: beside the others, wrapped, or when the screen is narrow on a line of its own.
struct Table::Layout {
  std::vector<int> width;
  int before_last = 0;
  int room = 0;  // for the last column
  bool wraps = false;
  bool below = false;
};

Table::Layout Table::lay_out(const Screen& screen) const {
  const std::size_t n = columns_.size();
  Layout layout;
  layout.width.resize(n);
  for (std::size_t c = 0; c < n; ++c) {
    layout.width[c] = columns(columns_[c].title);
    for (const std::vector<Cell>& row : rows_) {
      if (!is_heading(row) && c < row.size()) layout.width[c] = std::max(layout.width[c], columns(row[c].text));
    }
    if (c + 1 < n) layout.before_last += layout.width[c] + kGap;
  }
  // only a screen has an edge
  layout.wraps = screen.is_terminal && columns_[n - 1].align == Align::kLeft;
  layout.room = layout.wraps ? screen.width - 1 - layout.before_last : layout.width[n - 1];
  if (layout.wraps && layout.room < std::min(kNarrowestWrap, layout.width[n - 1])) {
    layout.below = true;
    layout.room = std::max(kNarrowestWrap, screen.width - 1 - kIndentBelow);
  }
  return layout;
}

std::string Table::line(const std::vector<Cell>& cells, const Layout& layout, const Screen& screen) const {
  std::string out;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool is_last = c + 1 == columns_.size() && layout.wraps;
    if (!is_last) {
      out += std::string(c > 0 ? kGap : 0, ' ') +
             screen.paint(cells[c].paint, padded(cells[c].text, layout.width[c], columns_[c].align));
      continue;
    }
    if (cells[c].text.empty()) break;
    const std::string indent(static_cast<std::size_t>(layout.below ? kIndentBelow : layout.before_last), ' ');
    const std::vector<std::string> parts = wrap(cells[c].text, layout.room);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool breaks = i > 0 || layout.below;
      if (breaks) out.erase(out.find_last_not_of(' ') + 1);
      out += (breaks ? "\n" + indent : std::string(c > 0 ? kGap : 0, ' ')) + screen.paint(cells[c].paint, parts[i]);
    }
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

std::string Table::text(const Screen& screen) const {
  const Layout layout = lay_out(screen);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Paint::kBold);
  std::string out = line(titles, layout, screen);
  for (const std::vector<Cell>& row : rows_) {
    out +=
        is_heading(row) ? "\n" + screen.paint(row[0].paint, row[0].text.substr(1)) + "\n" : line(row, layout, screen);
  }
  return out;
}

}  // namespace headlight::cli
