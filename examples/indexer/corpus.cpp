// SPDX-License-Identifier: MIT
#include "corpus.h"

namespace {
constexpr std::uint32_t vocabulary_size = 20000;
const char *const syllables[] = {"ka",  "lor", "mi", "tan", "be", "rus",  "el",  "vo",
                                 "shi", "den", "ga", "pol", "ur", "ness", "qui", "zam"};
} // namespace

corpus::corpus(std::uint32_t seed) : state(seed) {
    for (std::uint32_t i = 0; i < vocabulary_size; i++) {
        std::string word;
        for (std::uint32_t rest = i + 256; rest > 0; rest /= 16)
            word += syllables[rest % 16];
        vocabulary.push_back(word + "ological");
    }
}

std::uint32_t corpus::random() {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// The planted temporary: a copy for every word, though the caller only looks at it.
std::string corpus::next_word() {
    std::uint32_t spread = random() % vocabulary_size + 1;
    return vocabulary[random() % spread];
}
