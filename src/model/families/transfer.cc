#include "model/families/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "model/load_parameter.h"
#include "model/wildcard.h"

namespace headlight {
namespace {

// The names under which files hold what `name` names: as it is, without the prefix, and BERT's old names of norms.
std::vector<std::string> spellings(const std::string& name, const std::string& prefix) {
  std::vector<std::string> out{name};
  if (!prefix.empty() && name.rfind(prefix, 0) == 0) out.push_back(name.substr(prefix.size()));
  const auto add_old = [&](const std::string& ending, const std::string& old) {
    if (name.size() <= ending.size() || name.compare(name.size() - ending.size(), ending.size(), ending) != 0) return;
    for (std::size_t i = 0, n = out.size(); i < n; ++i) {
      out.push_back(out[i].substr(0, out[i].size() - ending.size()) + old);
    }
  };
  add_old("LayerNorm.weight", "LayerNorm.gamma");
  add_old("LayerNorm.bias", "LayerNorm.beta");
  return out;
}

// The shape of each tensor, from the parameters that lie in it.
std::map<std::string, std::vector<int64_t>> shapes_of(const ParameterTable& table,
                                                      const std::vector<TensorPart>& parts) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorPart& part : parts) {
    std::vector<int64_t> shape = table[table.find(part.parameter)].shape;
    if (part.transposed) std::swap(shape[0], shape[1]);
    const auto [at, is_new] = shapes.try_emplace(part.tensor, shape);
    // several maps side by side: their outputs add up
    const std::size_t outputs = part.transposed ? 0 : shape.size() - 1;
    if (!is_new) at->second[outputs] += shape[outputs];
  }
  return shapes;
}

class Loader {
 public:
  Loader(const Family& family, const TensorFile& file)
      : family_(family), file_(file), entries_(file.entries()), used_(entries_.size(), false) {
    for (std::size_t i = 0; i < entries_.size(); ++i) by_name_[entries_[i].name] = i;
  }

  void find_all(const std::map<std::string, std::vector<int64_t>>& shapes) {
    for (const auto& [name, shape] : shapes) find(name, shape);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!used_[i]) demand_known(entries_[i].name);
    }
  }

  void load(const TensorPart& part, const Parameter& parameter, float* to) const {
    const std::size_t index = found_.at(part.tensor);
    if (parameter.shape.size() == 1) {
      load_vector(index, part.order, {to, static_cast<std::size_t>(parameter.count)});
    } else if (part.transposed) {
      load_transposed(index, part.order, {to, {parameter.shape[0], parameter.shape[1]}});
    } else {
      load_rows(index, part.order, {to, {parameter.shape[0], parameter.shape[1]}});
    }
  }

 private:
  void find(const std::string& name, const std::vector<int64_t>& shape) {
    for (const std::string& spelling : spellings(name, family_.prefix)) {
      const auto at = by_name_.find(spelling);
      if (at == by_name_.end()) continue;
      const TensorEntry& entry = entries_[at->second];
      if (entry.shape != shape) {
        throw Error(ErrorKind::kBadData, fmt::format("{}: tensor {}", file_.name(), entry.name),
                    "shape " + text(entry.shape), "expected " + text(shape));
      }
      used_[at->second] = true;
      found_[name] = at->second;
      return;
    }
    throw Error(ErrorKind::kBadData, file_.name(), fmt::format("tensor {} is missing", name),
                fmt::format("expected the tensors of a {} model", family_.name));
  }

  void demand_known(const std::string& name) const {
    for (const std::string& pattern : family_.skipped) {
      if (matches_wildcard(pattern, name) || matches_wildcard(pattern, family_.prefix + name)) return;
    }
    // a tied model may store its embedding a second time
    if (name == "lm_head.weight" || name == "embed_out.weight") return;
    throw Error(ErrorKind::kBadData, file_.name(), fmt::format("tensor {} belongs to no part of the model", name),
                fmt::format("expected the {} tensors of a {} model", found_.size(), family_.name));
  }

  static std::string text(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

  int64_t outputs(std::size_t index) const { return entries_[index].shape.back(); }

  void load_vector(std::size_t index, const OutputOrder& order, std::span<float> to) const {
    if (order.is_plain()) return file_.read_rows(index, 0, to);
    Buffer<float> whole(outputs(index));
    file_.read_rows(index, 0, {whole.data(), static_cast<std::size_t>(whole.count())});
    for (std::size_t o = 0; o < to.size(); ++o) to[o] = whole[order.in_file(static_cast<int64_t>(o))];
  }

  // to(in, out) = file(out, in)
  void load_transposed(std::size_t index, const OutputOrder& order, View<float, 2> to) const {
    constexpr int64_t kRows = 64;
    const int64_t ins = to.size(0), outs = to.size(1);
    default_pool().run((outs + kRows - 1) / kRows, [&](int64_t task, int) {
      const int64_t first = task * kRows, count = std::min(kRows, outs - first);
      Buffer<float> rows(count * ins);
      const auto run = [&](int64_t row, int64_t n) {
        return std::span<float>(rows.data() + row * ins, static_cast<std::size_t>(n * ins));
      };
      if (order.is_plain()) {
        file_.read_rows(index, first, run(0, count));
      } else {
        for (int64_t row = 0; row < count; ++row) file_.read_rows(index, order.in_file(first + row), run(row, 1));
      }
      for (int64_t in = 0; in < ins; ++in) {
        for (int64_t out = 0; out < count; ++out) to(in, first + out) = rows[out * ins + in];
      }
    });
  }

  // to(in, out) = file(in, out)
  void load_rows(std::size_t index, const OutputOrder& order, View<float, 2> to) const {
    constexpr int64_t kRows = 64;
    const int64_t outs = outputs(index);
    default_pool().run((to.size(0) + kRows - 1) / kRows, [&](int64_t task, int) {
      const int64_t first = task * kRows;
      const View<float, 2> part = to.slice(0, first, std::min(to.size(0), first + kRows));
      if (order.is_plain()) {
        return file_.read_rows(index, first, {part.data, static_cast<std::size_t>(part.count())});
      }
      Buffer<float> rows(part.size(0) * outs);
      file_.read_rows(index, first, {rows.data(), static_cast<std::size_t>(rows.count())});
      for (int64_t in = 0; in < part.size(0); ++in) {
        for (int64_t out = 0; out < part.size(1); ++out) part(in, out) = rows[in * outs + order.in_file(out)];
      }
    });
  }

  const Family& family_;
  const TensorFile& file_;
  std::vector<TensorEntry> entries_;
  std::vector<bool> used_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::size_t> found_;  // by the family's name
};

// the numbers of one parameter, where they lie in the tensor
void write_part(const Model& model, const TensorPart& part, NamedTensor& to) {
  const Parameter& parameter = model.parameters()[model.parameters().find(part.parameter)];
  const float* const from = model.weights().data + parameter.offset;
  float* const values = to.values.data();
  const int64_t outs = parameter.shape.back(), ins = parameter.count / std::max<int64_t>(1, outs);
  for (int64_t in = 0; in < ins; ++in) {
    for (int64_t o = 0; o < outs; ++o) {
      const int64_t there = part.order.in_file(o);
      values[part.transposed ? there * ins + in : in * to.shape.back() + there] = from[in * outs + o];
    }
  }
}

}  // namespace

Model load_parts(const ModelConfig& config, const Family& family, const std::vector<TensorPart>& parts,
                 const TensorFile& file, DType matrices) {
  const ParameterTable table = parameter_table(config);
  Loader loader(family, file);
  loader.find_all(shapes_of(table, parts));
  Model model(config, matrices);
  for (const TensorPart& part : parts) {
    const int index = table.find(part.parameter);
    load_parameter(model, index, [&](float* to) { loader.load(part, table[index], to); });
  }
  return model;
}

void for_each_tensor(const Model& model, const std::vector<TensorPart>& parts,
                     const std::function<void(const NamedTensor&)>& each) {
  std::map<std::string, std::vector<const TensorPart*>> by_tensor;
  for (const TensorPart& part : parts) by_tensor[part.tensor].push_back(&part);
  for (const auto& [name, shape] : shapes_of(model.parameters(), parts)) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    NamedTensor tensor{name, shape, Buffer<float>(count)};
    for (const TensorPart* part : by_tensor[name]) write_part(model, *part, tensor);
    each(tensor);
  }
}

}  // namespace headlight
