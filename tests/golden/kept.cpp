/* SPDX-License-Identifier: MIT */
/*
 * kept.cpp: makes libraries keep what they keep on purpose (a stream's buffer, a thread's local
 * storage, memory for exceptions, a locale), and leaks one block of its own.
 */
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>

static void *volatile sink;

static thread_local char mine[100];

__attribute__((noinline)) static void own_leak() {
    sink = malloc(321);
    sink = nullptr;
}

int main() {
    std::setlocale(LC_ALL, "");
    std::thread([] { mine[0] = 1; }).join();
    try {
        throw std::runtime_error("caught");
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
    }
    std::time_t now = 0;
    std::printf("%p\n", static_cast<void *>(std::localtime(&now)));
    own_leak();
    return 0;
}
