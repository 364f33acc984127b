// Trains a small transformer on repeated random sequences, then asks each head what it does.
//   train_and_score [STEPS]

#include <headlight/headlight.h>

#include <cstdio>
#include <cstdlib>

using namespace headlight;

int main(int argc, char** argv) {
  TrainerOptions options;
  options.data = repeats({});
  options.model = {.width = 64, .blocks = 2, .heads = 4, .feed_forward = FeedForward::kNone};
  options.steps = argc > 1 ? std::atol(argv[1]) : 1500;

  Trainer trainer(options);
  while (trainer.step()) {
    if (trainer.step_number() % 100 == 0) {
      std::printf("step %ld  loss %.3f\n", static_cast<long>(trainer.step_number()), trainer.last_step().loss);
    }
  }

  const HeadScores scores = head_scores(trainer.model(), {.start = options.data->tokenizer()->start_token()});
  for (int64_t block = 0; block < scores.blocks; ++block) {
    for (int64_t head = 0; head < scores.heads; ++head) {
      const HeadId id{block, head};
      std::printf("%ld.%ld  previous %.2f  induction %.2f\n", static_cast<long>(block), static_cast<long>(head),
                  scores.at(id, HeadScore::kPrevious).mean, scores.at(id, HeadScore::kInduction).mean);
    }
  }
  return 0;
}
