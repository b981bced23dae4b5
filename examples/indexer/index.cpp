// SPDX-License-Identifier: MIT
#include "index.h"

#include <algorithm>
#include <iterator>

void index::add(std::uint32_t document, const std::string &word) {
    auto &documents = postings[word];
    if (documents.empty() || documents.back() != document)
        documents.push_back(document);
}

const std::vector<std::uint32_t> &index::search(const std::string &left, const std::string &right) {
    auto *answer = new std::vector<std::uint32_t>;
    const auto &a = postings[left], &b = postings[right];
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*answer));
    // The planted leak: an older answer to the same query is forgotten, not deleted.
    answers[left + "+" + right] = answer;
    return *answer;
}
