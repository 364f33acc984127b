#pragma once
// The keys of a GGUF file that describe the model: all of `ARCHITECTURE.`, each read or refused.

#include <set>
#include <string>

#include "headlight/formats/gguf.h"
#include "headlight/model/config.h"

namespace headlight {

class GgufKeys {
 public:
  // Borrows `file`. Throws Error (bad data) when general.architecture is missing.
  explicit GgufKeys(const Gguf& file);

  const std::string& file_name() const { return file_.name(); }
  const std::string& architecture() const { return architecture_; }
  // Values by key without "ARCHITECTURE.".
  bool has(const std::string& key);
  int64_t size(const std::string& key);
  int64_t size_or(const std::string& key, int64_t otherwise);
  double number(const std::string& key, double min, double max);
  double number_or(const std::string& key, double otherwise, double min, double max);
  bool boolean_or(const std::string& key, bool otherwise);
  std::string text_or(const std::string& key, const std::string& otherwise);

  // The sizes that every architecture has, with the vocabulary that token_embd.weight shows; tied without
  // output.weight.
  void sizes(ModelConfig& config);
  // Base, width and scaling of rotary positions, and the divisors in rope_freqs.weight.
  void rotary(ModelConfig& config);
  bool has_tensor(const std::string& name) const { return file_.find(name) != nullptr; }

  // Refuses every key of the architecture that nothing asked for.
  void finish() const;
  [[noreturn]] void fail(const std::string& what, const std::string& found, const std::string& expected) const;

 private:
  std::string full(const std::string& key);

  const Gguf& file_;
  std::string architecture_;
  std::set<std::string> asked_;
};

}  // namespace headlight
