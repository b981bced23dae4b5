// SPDX-License-Identifier: MIT
// containers.cpp: strings in maps, vectors and lists that come and go. Run by benchmarks/run.
//
//   ROUNDS       how often (default 200)
//
// Result: wall time for each round, in milliseconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

static unsigned next_random() {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static std::string any_text() {
    return std::string(next_random() % 60, 'x');
}

static std::size_t one_round(std::map<unsigned, std::string> &kept) {
    std::unordered_map<unsigned, std::vector<std::string>> groups;
    std::list<std::string> order;
    for (int i = 0; i < 2000; i++) {
        groups[next_random() % 300].push_back(any_text());
        order.push_back(any_text());
        kept[next_random() % 5000] = any_text();
        if (i % 3 == 0) {
            kept.erase(next_random() % 5000);
        }
    }
    order.sort();
    return groups.size() + order.size() + kept.size();
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
    const auto start = std::chrono::steady_clock::now();
    std::map<unsigned, std::string> kept;
    std::size_t sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += one_round(kept);
    }
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    std::printf("RESULT round_ms %f\nRESULT sum %zu\n", taken.count() / rounds, sum);
}
