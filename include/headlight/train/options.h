#pragma once
// All that decides how a model is trained. The same options give the same bits.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "headlight/model/config.h"
#include "headlight/text/data_source.h"

namespace headlight {

struct TrainerOptions {
  ModelConfig model{};                       // vocabulary and context are taken from `data`
  std::shared_ptr<const DataSource> data{};  // required
  int64_t steps = 1500;                      // optimiser steps
  int64_t batch = 32;                        // sequences of a step
  int64_t microbatches = 1;                  // parts that a step's batch is run in, for less memory; divides batch
  int64_t seed = 0;                          // of the first weights and of the data; >= 0

  // AdamW (Loshchilov and Hutter 2019). Only matrices decay.
  double rate = 1e-3;        // learning rate, the highest
  double final_rate = 1e-4;  // at the end of the cosine
  int64_t warmup = 100;      // steps of the linear rise
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double decay = 0.1;  // weight decay
  double clip = 1.0;   // largest norm of the gradient, all weights together; 0: not clipped

  // In steps; 0: never. The end of the run is logged, validated, observed and saved in any case.
  int64_t log_interval = 10;
  int64_t validation_interval = 250;
  int64_t observe_interval = 50;
  int64_t checkpoint_interval = 250;
};

// `options` with the model resolved for the data. Throws Error (usage) naming the first option that does not fit;
// `name_of_field` says how the person wrote a field, for example "--rate" for rate. Throws LogicError without data.
TrainerOptions resolve(const TrainerOptions& options, std::string (*name_of_field)(const std::string& field) = nullptr);

// The options that the run in `folder` was begun with, whether or not a trainer uses it now. Errors: missing input when
// the folder holds no run or its training text has gone; bad data naming the key.
TrainerOptions read_training_options(const std::filesystem::path& folder);

}  // namespace headlight
