// SPDX-License-Identifier: MIT
//
// clang_subject.cpp: C++ for clang_pass.py: exceptions, destructors, virtual calls, lambdas.
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {

struct shape {
    virtual ~shape() = default;
    virtual long area() const = 0;
};

struct square : shape {
    explicit square(long side) : side(std::make_unique<long>(side)) {
    }
    long area() const override {
        return *side * *side;
    }
    std::unique_ptr<long> side;
};

__attribute__((noinline)) long total(const std::vector<std::unique_ptr<shape>> &all) {
    long sum = 0;
    for (const auto &one : all) {
        sum += one->area();
    }
    return sum;
}

} // namespace shapes

struct noisy {
    ~noisy() {
        std::string text(40, 'd');
        text += std::to_string(text.size());
        count += text.size();
    }
    static size_t count;
};
size_t noisy::count = 0;

__attribute__((noinline)) static void thrower(int depth) {
    noisy guard;
    if (depth == 0) {
        throw std::runtime_error(std::string(50, 'x'));
    }
    thrower(depth - 1);
}

__attribute__((noinline)) static size_t catcher(int depth) {
    try {
        thrower(depth);
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).size();
    }
    return 0;
}

__attribute__((noinline)) static size_t rethrower() {
    try {
        try {
            thrower(3);
        } catch (...) {
            noisy guard;
            throw;
        }
    } catch (const std::exception &error) {
        return std::string(error.what()).size() + 1;
    }
    return 0;
}

thread_local std::string of_thread = std::string(100, 't');

int main() {
    std::vector<std::unique_ptr<shapes::shape>> all;
    for (long side = 1; side < 20; side++) {
        all.push_back(std::make_unique<shapes::square>(side));
    }
    std::map<std::string, long> words;
    std::function<void(const std::string &)> count = [&](const std::string &word) {
        words[word + std::string(30, '.')] += 1;
    };
    for (int i = 0; i < 100; i++) {
        count(std::to_string(i % 7));
    }
    std::printf("%ld %zu %zu %zu\n", shapes::total(all), words.size(), catcher(5), rethrower());
    std::printf("%zu %zu\n", noisy::count, of_thread.size());
    return 0;
}
