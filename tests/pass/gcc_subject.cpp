// SPDX-License-Identifier: MIT
/*
 * gcc_subject.cpp: C++ for gcc_pass.py: exceptions, virtual functions, templates, coroutines. It
 * prints what it computed; contexts are the business of other tests.
 */
#include <algorithm>
#include <coroutine>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

struct noisy {
    explicit noisy(int n) : text(std::to_string(n) + " and a text that needs the heap") {
    }
    ~noisy() {
        total += text.size() + std::string(text + "!").size();
    }
    std::string text;
    static inline unsigned long total = 0;
};

NOINLINE static int throws(int n) {
    noisy here(n);
    if (n % 3 == 0) {
        throw std::runtime_error(here.text);
    }
    if (n % 5 == 0) {
        throw n;
    }
    return n > 50 ? n : throws(n + 7) + 1;
}

NOINLINE static int catches(int n) {
    try {
        noisy outer(n);
        return throws(n);
    } catch (const std::exception &error) {
        return static_cast<int>(std::string(error.what()).size());
    } catch (int value) {
        return value;
    }
}

NOINLINE static int rethrows(int n) {
    try {
        try {
            return throws(n);
        } catch (...) {
            noisy inside(n);
            throw;
        }
    } catch (...) {
        return catches(n + 1);
    }
}

struct first {
    virtual ~first() = default;
    virtual int value(int n) {
        return n;
    }
};
struct second {
    virtual ~second() = default;
    virtual int other(int n) = 0;
};
struct both final : first, second {
    int value(int n) override {
        return n + static_cast<int>(words.size());
    }
    int other(int n) override { // called by a thunk
        words.push_back(std::string(40, static_cast<char>('a' + n % 26)));
        return value(n);
    }
    std::vector<std::string> words;
};

NOINLINE static int calls_virtual(second &object, int n) {
    return object.other(n) + object.other(n + 1);
}

static std::string &lazily() {
    static std::string made(100, 'x');
    return made;
}

thread_local std::vector<int> own{1, 2, 3};

struct generator {
    struct promise_type {
        int current = 0;
        generator get_return_object() {
            return generator{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() {
            return {};
        }
        std::suspend_always final_suspend() noexcept {
            return {};
        }
        std::suspend_always yield_value(int value) {
            current = value;
            return {};
        }
        void return_void() {
        }
        void unhandled_exception() {
            throw;
        }
    };
    explicit generator(std::coroutine_handle<promise_type> handle) : handle(handle) {
    }
    generator(const generator &) = delete;
    ~generator() {
        handle.destroy();
    }
    bool next() {
        handle.resume();
        return !handle.done();
    }
    std::coroutine_handle<promise_type> handle;
};

static generator count(int from, int to) {
    std::string text;
    for (int i = from; i < to; i++) {
        text += std::string(30, 'c');
        co_yield i + static_cast<int>(text.size());
    }
}

static int sum_of_coroutine() {
    int sum = 0;
    generator numbers = count(1, 20);
    while (numbers.next()) {
        sum += numbers.handle.promise().current;
    }
    return sum;
}

template <class T> NOINLINE static T sorted_middle(std::vector<T> values) {
    std::sort(values.begin(), values.end(), [](const T &a, const T &b) { return b < a; });
    return values[values.size() / 2];
}

int main() {
    for (int i = 0; i < 40; i++) {
        std::cout << catches(i) + rethrows(i) << ' ';
    }
    both object;
    std::cout << calls_virtual(object, 3) << ' ' << lazily().size() << '\n';
    std::thread([] { own.push_back(4); }).join();
    std::map<std::string, std::unique_ptr<noisy>> tree;
    for (int i = 0; i < 100; i++) {
        tree.emplace(std::to_string(i * 7919 % 101), std::make_unique<noisy>(i));
    }
    std::function<int(int)> recurse = [&](int n) { return n == 0 ? 0 : recurse(n - 1) + 2; };
    std::cout << tree.size() << ' ' << recurse(20) << ' ' << sum_of_coroutine() << ' '
              << sorted_middle(std::vector<std::string>{"one", "two", "three"}) << '\n';
    tree.clear();
    std::cout << noisy::total << '\n';
    return 0;
}
