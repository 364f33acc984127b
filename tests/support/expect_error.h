#pragma once
// What a bad file or option must get: an Error of one kind whose message holds given words.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "headlight/base/error.h"

namespace headlight {

template <class Call>
void expect_error(ErrorKind kind, std::initializer_list<std::string> words, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one that says: " << *words.begin();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    const std::string message = error.what();
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "message: " << message << "\nexpected in it: " << word;
    }
  }
}

}  // namespace headlight
