// SPDX-License-Identifier: MIT
// An inverted index: for every word the documents it stands in.
#ifndef INDEXER_INDEX_H
#define INDEXER_INDEX_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

class index {
  public:
    void add(std::uint32_t document, const std::string &word);
    // The documents that hold both words. The answer stays valid.
    const std::vector<std::uint32_t> &search(const std::string &left, const std::string &right);
    std::size_t words() const {
        return postings.size();
    }

  private:
    std::unordered_map<std::string, std::vector<std::uint32_t>> postings;
    std::unordered_map<std::string, const std::vector<std::uint32_t> *> answers;
};

#endif
