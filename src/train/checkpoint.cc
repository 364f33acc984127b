#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/formats/safetensors.h"
#include "train/run_folder.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kFiles = {"config.json", "model.safetensors", "optimizer.safetensors",
                                               "state.json"};
constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kKept = 2;

struct Found {
  int64_t step;
  fs::path path;
};

// The folders of checkpoints, finished or not, last step first.
std::vector<Found> list_checkpoints(const fs::path& folder) {
  std::vector<Found> found;
  if (!fs::is_directory(folder / "checkpoints")) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    int64_t step = 0;
    if (!entry.is_directory() || name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    const char* end = name.data() + name.size();
    const auto [stop, code] = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (code == std::errc() && stop == end && step >= 0) found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return found;
}

void write_optimizer(const fs::path& path, const Progressing& state) {
  const auto tensor = [](const char* name, const Buffer<float>& buffer) {
    return TensorToWrite{name, DType::kF32, {buffer.count()}, std::as_bytes(std::span(buffer.begin(), buffer.end()))};
  };
  write_safetensors(path, {tensor("m", state.m), tensor("v", state.v)});
}

void write_state(const fs::path& path, const Progressing& state) {
  write_file_atomically(path, pretty_json({{"step", state.step},
                                           {"seconds", state.seconds},
                                           {"loss_sums", state.since_entry.sums},
                                           {"loss_targets", state.since_entry.targets}}));
}

void write_manifest(const fs::path& checkpoint) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const char* name : kFiles) {
    const MappedFile file(checkpoint / name);
    files[name] = {{"bytes", file.bytes().size()}, {"hash", content_hash(file.bytes())}};
  }
  write_file_atomically(checkpoint / kManifest, pretty_json({{"files", files}}));
}

// A message before anything is written is kinder than one after two of four files.
void check_space(const fs::path& folder, const Progressing& state) {
  // weights, m and v here, the weights once more for the run's folder, and a little text
  const uint64_t needed = static_cast<uint64_t>(state.m.count()) * sizeof(float) * 4 + 65536;
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code || space.available >= needed) return;
  throw Error(ErrorKind::kCannotWrite, folder.string(),
              fmt::format("the disk is full: the checkpoint of step {} needs {} bytes and {} are free", state.step,
                          needed, space.available),
              "the checkpoints before it are kept; make room and continue with --resume");
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code ignored;  // what cannot be removed does no harm
  fs::remove(checkpoint / kManifest, ignored);
  fs::remove_all(checkpoint, ignored);
}

void prune(const fs::path& folder, int64_t last_step) {
  std::size_t kept = 0;
  for (const Found& found : list_checkpoints(folder)) {
    const bool keep = found.step <= last_step && kept < kKept && fs::exists(found.path / kManifest);
    keep ? static_cast<void>(++kept) : remove_checkpoint(found.path);
  }
}

// Throws Error (bad data or missing input) unless every file is the one that the manifest describes.
void check_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifest;
  const nlohmann::json json = parse_json_file(path);
  JsonReader read(json, path.string());
  JsonReader files = read.object("files");
  read.finish();
  for (const char* name : kFiles) {
    JsonReader expected = files.object(name);
    const int64_t bytes = expected.whole("bytes", 0);
    const std::string hash = expected.text("hash");
    expected.finish();
    const MappedFile file(checkpoint / name);
    const int64_t found = static_cast<int64_t>(file.bytes().size());
    if (found != bytes) {
      throw Error(ErrorKind::kBadData, (checkpoint / name).string(), fmt::format("holds {} bytes", found),
                  fmt::format("its manifest says {}", bytes));
    }
    if (const std::string actual = content_hash(file.bytes()); actual != hash) {
      throw Error(ErrorKind::kBadData, (checkpoint / name).string(), "has content hash " + actual,
                  "its manifest says " + hash);
    }
  }
  files.finish();
}

void read_optimizer(const fs::path& path, Progressing& state) {
  const Safetensors file(path);
  const std::array<int64_t, 1> shape{state.m.count()};
  read_floats(file.tensor("m", shape), std::span(state.m.begin(), state.m.end()));
  read_floats(file.tensor("v", shape), std::span(state.v.begin(), state.v.end()));
}

void read_state(const fs::path& path, Progressing& state) {
  const nlohmann::json json = parse_json_file(path);
  JsonReader read(json, path.string());
  state.step = read.whole("step", 0);
  state.seconds = read.number("seconds", 0, 1e18);
  const nlohmann::json& sums = read.value("loss_sums");
  if (!sums.is_array()) read.fail("loss_sums", "found no list", "expected a list of numbers");
  for (const nlohmann::json& sum : sums) {
    if (!sum.is_number()) read.fail("loss_sums", "found " + sum.dump(), "expected a list of numbers");
    state.since_entry.sums.push_back(sum.get<double>());
  }
  state.since_entry.targets = read.wholes("loss_targets", 0);
  read.finish();
}

Progressing read_checkpoint(const fs::path& checkpoint, const ModelConfig& config) {
  check_manifest(checkpoint);
  Model model = load_model(checkpoint);
  if (!(model.config() == config)) {
    throw Error(ErrorKind::kBadData, (checkpoint / "config.json").string(),
                "describes another model than training.json");
  }
  const int64_t count = model.weights().count();
  Progressing state{std::move(model), Buffer<float>(count), Buffer<float>(count)};
  read_optimizer(checkpoint / "optimizer.safetensors", state);
  read_state(checkpoint / "state.json", state);
  return state;
}

}  // namespace

void write_checkpoint(const fs::path& folder, const Progressing& state) {
  check_space(folder, state);
  const fs::path checkpoint = folder / "checkpoints" / fmt::format("{}{:08}", kPrefix, state.step);
  make_folder_durably(folder / "checkpoints");
  make_folder_durably(checkpoint);
  // an unfinished or damaged one of this step may be there; without its manifest it counts for nothing
  std::error_code ignored;
  fs::remove(checkpoint / kManifest, ignored);
  try {
    save_model(state.model, checkpoint);
    write_optimizer(checkpoint / "optimizer.safetensors", state);
    write_state(checkpoint / "state.json", state);
    write_manifest(checkpoint);
  } catch (const Error&) {
    remove_checkpoint(checkpoint);
    throw;
  }
  prune(folder, state.step);
}

std::optional<Progressing> read_last_checkpoint(const fs::path& folder, const ModelConfig& config,
                                                std::vector<std::string>& messages) {
  bool any_finished = false;
  for (const Found& found : list_checkpoints(folder)) {
    if (!fs::exists(found.path / kManifest)) {
      messages.push_back(found.path.string() + ": was not finished; ignored");
      continue;
    }
    any_finished = true;
    try {
      return read_checkpoint(found.path, config);
    } catch (const Error& error) {
      messages.push_back(fmt::format("{}; trying the checkpoint before", error.what()));
    }
  }
  if (any_finished) {
    throw Error(ErrorKind::kBadData, (folder / "checkpoints").string(), "no checkpoint is whole: " + messages.back(),
                "start a new run, with another --out");
  }
  return std::nullopt;
}

}  // namespace headlight
