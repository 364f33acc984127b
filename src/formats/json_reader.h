#pragma once
// For includes of the old place, until they are changed.
#include "base/json_reader.h"
