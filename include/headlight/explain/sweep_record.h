#pragma once
// What a sweep has finished, kept in a file, so that a long one goes on where it stopped.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "headlight/explain/sweep.h"
#include "headlight/model/batch.h"
#include "headlight/model/model.h"

namespace headlight {

// Summed losses by effect and sequence. They hold for one model, batch and choice of losses, in one version of
// Headlight on one instruction set: all of that is the record's key. Several sweeps of the same key may share a record.
class SweepRecord {
 public:
  // Empty. `version` is Headlight's.
  SweepRecord(const Model& model, const Batch& batch, const LossMetric& metric, const std::string& version);

  // 16 hexadecimal digits.
  const std::string& key() const noexcept { return key_; }
  // Effects with at least one finished sequence; the clean run is one of them.
  int64_t effects() const noexcept { return static_cast<int64_t>(sums_.size()); }

  // Adds what a file holds. Errors: missing input; bad data when the file is damaged, or is of another key.
  void load(const std::filesystem::path& path);
  // Writes the whole record, so that a reader sees the old file or the new one. Errors: cannot write.
  void save(const std::filesystem::path& path) const;

  // For sweep(): the name under which a group's sums are kept, and those sums, (B), NaN where not finished.
  static std::string name_of(const std::vector<Intervention>& group);
  const std::vector<double>* find(const std::string& name) const;
  void put(const std::string& name, int64_t sequence, double sum);

 private:
  std::string key_;
  int64_t sequences_;
  std::map<std::string, std::vector<double>> sums_;
};

}  // namespace headlight
