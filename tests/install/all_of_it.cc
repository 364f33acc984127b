// A model is made, run, saved, and read back with the same logits; wrong input is an Error.

#include <headlight/headlight.h>

#include <cstdio>
#include <cstring>

using namespace headlight;

namespace {

bool same_logits(const Model& model, const Model& other, const Batch& batch) {
  Run run = plan(model, batch);
  Run other_run = plan(other, batch);
  forward(model, batch, run);
  forward(other, batch, other_run);
  const View<const float, 3> logits = run.logits();
  return std::memcmp(logits.data, other_run.logits().data, static_cast<std::size_t>(logits.count()) * sizeof(float)) ==
         0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];

  Model model(ModelConfig{.vocabulary = 16, .context = 8, .width = 8, .blocks = 1, .heads = 2});
  initialise(model, 7);
  save_model(model, folder);
  const Batch batch = make_batch({{1, 2, 3}, {4, 5}});
  if (!same_logits(model, load_model(folder), batch)) {
    std::printf("the model that was read back gives other logits\n");
    return 1;
  }
  try {
    load_model(folder / "absent");
    std::printf("a missing model gave no error\n");
    return 1;
  } catch (const Error& error) {
    std::printf("as expected: %s\n", error.what());
    return error.kind() == ErrorKind::kMissingInput ? 0 : 1;
  }
}
