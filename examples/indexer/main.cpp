// SPDX-License-Identifier: MIT
// Indexes made-up documents and answers queries on the way: indexer [DOCUMENTS]
#include "corpus.h"
#include "index.h"

#include <cstdio>
#include <cstdlib>

namespace {
constexpr std::uint32_t words_per_document = 80;

void add_document(index &index, corpus &text, std::uint32_t document) {
    for (std::uint32_t i = 0; i < words_per_document; i++)
        index.add(document, text.next_word());
}

std::size_t answer_queries(index &index, corpus &queries) {
    std::size_t hits = 0;
    for (int i = 0; i < 20; i++)
        hits += index.search(queries.next_word(), queries.next_word()).size();
    return hits;
}
} // namespace

int main(int argc, char **argv) {
    std::uint32_t count = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 250000;
    corpus text(1), queries(2);
    index index;
    std::size_t hits = 0;
    for (std::uint32_t document = 0; document < count; document++) {
        add_document(index, text, document);
        if (document % 100 == 99)
            hits += answer_queries(index, queries);
    }
    std::printf("%u documents, %zu words, %zu hits\n", count, index.words(), hits);
}
