// SPDX-License-Identifier: MIT
// throwing.cpp N: says "ready"; N threads allocate, and throw through some frames, until a line
// comes.
#include <atomic>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<bool> stop, wrong;

__attribute__((noinline)) static int descend(int depth, const std::string &text) {
    std::vector<std::string> held(3, text + std::to_string(depth));
    if (depth == 0) {
        throw std::runtime_error(held[2]);
    }
    return descend(depth - 1, text) + int(held[0].size());
}

static void work(int number) {
    std::string text(40, char('a' + number));
    while (!stop) {
        try {
            descend(20, text);
            wrong = true;
        } catch (const std::runtime_error &error) {
            if (error.what() != text + "0") {
                wrong = true;
            }
        }
    }
}

int main(int, char **argv) {
    std::vector<std::thread> threads;
    for (int i = 0; i < std::stoi(argv[1]); i++) {
        threads.emplace_back(work, i);
    }
    std::cout << "ready" << std::endl;
    std::cin.get();
    stop = true;
    for (auto &thread : threads) {
        thread.join();
    }
    std::cout << (wrong ? "wrong" : "good") << std::endl;
}
