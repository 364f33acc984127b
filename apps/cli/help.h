#pragma once
// What --help, `headlight` alone and --version show.

#include <memory>
#include <string>
#include <vector>

#include "command.h"

namespace headlight::cli {

std::string overview(const std::vector<std::unique_ptr<Command>>& commands, const Screen& screen);
// The overview of the commands that begin with one word, as `lab`.
std::string family_overview(const std::vector<std::unique_ptr<Command>>& commands, const std::string& family,
                            const Screen& screen);
std::string help(const Description& description, const Options& options, const Screen& screen);

}  // namespace headlight::cli
