// SPDX-License-Identifier: MIT
// Made-up text: the same for the same seed. Few words are common, most are rare.
#ifndef INDEXER_CORPUS_H
#define INDEXER_CORPUS_H

#include <cstdint>
#include <string>
#include <vector>

class corpus {
  public:
    explicit corpus(std::uint32_t seed);
    std::string next_word();

  private:
    std::uint32_t random();
    std::uint32_t state;
    std::vector<std::string> vocabulary;
};

#endif
