#pragma once
// From the words of the command line to the options' targets.

#include <string>
#include <vector>

#include "options.h"

namespace headlight::cli {

// Thrown when --help was among the words.
struct HelpWanted {};

// Sets what the words after the subcommand's name say. Throws Error (usage) naming the first word that does not fit.
void parse(const std::string& command, const std::vector<std::string>& words, Options& options);

}  // namespace headlight::cli
