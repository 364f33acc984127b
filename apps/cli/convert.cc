// headlight convert: any model that can be read, as the Hugging Face library reads it.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/model/model.h"
#include "numbers.h"
#include "subject.h"

namespace headlight::cli {
namespace {

namespace fs = std::filesystem;

class Convert : public Command {
 public:
  Description description() const override {
    return {"convert",
            "work",
            "writes a model as a folder that the Hugging Face library loads",
            "Writes config.json, model.safetensors and tokenizer.json, whole or not at all. Quantised weights are "
            "widened. What no family of that library has (attention only, other positions, ...) is refused by name.",
            {{"headlight convert model.gguf --out model", "from a GGUF file, in fp32"},
             {"headlight convert runs/text --out shared --type bf16", "a run of one's own, in half the bytes"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    options.group("output");
    options.text("--out", "FOLDER", out_, "where to write; made when it is not there");
    add_type_option(options, "--type", type_, "of the numbers");
    options.flag("--overwrite", overwrite_, "replace a model that is there");
  }

  int run(const Options&, Console& console) override {
    if (out_.empty()) throw Error(ErrorKind::kUsage, "", "--out FOLDER is missing");
    const fs::path folder = out_;
    if (!overwrite_ && fs::exists(folder / "config.json")) {
      throw Error(ErrorKind::kCannotCreate, folder.string(), "holds a model already", "give another, or --overwrite");
    }
    const Model model = load_checked_model(model_, console);
    const std::string type = save_hugging_face_model(model, folder, type_);
    const std::string tokenizer = write_tokenizer(folder);
    const auto bytes = static_cast<double>(fs::file_size(folder / "model.safetensors"));
    if (console.wants_json()) {
      console.print_json({{"model", model_.path},
                          {"folder", folder.string()},
                          {"model_type", type},
                          {"type", dtype_info(type_).name},
                          {"parameters", model.parameters().count()},
                          {"tokenizer", tokenizer}});
    } else {
      console.print(fmt::format("{}: {}, {} parameters, {}; {}\n", folder.string(), type,
                                grouped(model.parameters().count()), byte_size(bytes), tokenizer));
    }
    return 0;
  }

 private:
  // What became of the tokenizer. The model stands without one, too.
  std::string write_tokenizer(const fs::path& folder) const {
    std::shared_ptr<const Tokenizer> tokenizer;
    try {
      tokenizer = load_tokenizer_of(model_.path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMissingInput) throw;
      return "no tokenizer beside the model";
    }
    HuggingFaceFiles files;
    try {
      files = tokenizer->to_hugging_face();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;
      save_tokenizer(*tokenizer, folder);
      return "tokenizer.json that only headlight reads: " + tokenizer->kind();
    }
    write_file_atomically(folder / "tokenizer.json", files.tokenizer);
    if (!files.config.empty()) write_file_atomically(folder / "tokenizer_config.json", files.config);
    return "tokenizer.json, " + tokenizer->kind();
  }

  ModelChoice model_;
  std::string out_;
  DType type_ = DType::kF32;
  bool overwrite_ = false;
};

}  // namespace

std::unique_ptr<Command> convert_command() { return std::make_unique<Convert>(); }

}  // namespace headlight::cli
