#include "command.h"

namespace headlight::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(train_command());
  all.push_back(eval_command());
  all.push_back(generate_command());
  all.push_back(convert_command());
  all.push_back(heads_command());
  all.push_back(ablate_command());
  all.push_back(attend_command());
  all.push_back(report_command());
  all.push_back(count_command());
  all.push_back(lab_worked_command());
  all.push_back(lab_scale_command());
  all.push_back(lab_induction_command());
  all.push_back(lab_copy_command());
  return all;
}

}  // namespace headlight::cli
