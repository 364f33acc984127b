// The table of families.

#include "model/families/family.h"

namespace headlight {

Family llama_family();
Family gpt2_family();
Family gpt_neox_family();
Family bert_family();
Family starcoder2_family();

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      llama_family(),
      gpt2_family(),
      gpt_neox_family(),
      bert_family(),
      starcoder2_family(),
  };
  return all;
}

}  // namespace headlight
