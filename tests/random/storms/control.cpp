// SPDX-License-Identifier: MIT
/* control.cpp: frames left by exceptions, and coroutines. */
#include "storm.h"

#include <stdexcept>
#if __cplusplus >= 202002L
#include <coroutine>
#endif

/* --- exceptions ---------------------------------------------------------------------------------
 */

struct cleanup {
    long round;
    NOINLINE ~cleanup() {
        if (round % 4 == 0) {
            allocate();
        }
        if (round % 1000 == 0) {
            mark(72001);
        }
    }
};

NOINLINE static void throw_below(long depth, long round) {
    cleanup owner{round};
    char frame[40];
    keep(frame);
    if (depth == 0) {
        if (round % 2 == 0) {
            throw round;
        }
        throw std::runtime_error("thrown");
    }
    throw_below(depth - 1, round);
    keep(frame);
}

NOINLINE static long catch_above(long round) {
    try {
        throw_below(round % 3, round);
    } catch (long caught) {
        if (round % 1000 < 2) {
            mark(72003);
        }
        return caught;
    } catch (const std::exception &) {
        if (round % 1001 == 0) {
            mark(72005);
        }
        if (round % 5 == 0) {
            throw;
        }
    }
    return 0;
}

static void storm_exceptions(long rounds) {
    long sum = 0;
    for (long round = 0; round < rounds; round++) {
        try {
            sum += catch_above(round);
        } catch (...) {
            if (round % 1005 == 0) {
                mark(72007);
            }
        }
        if (round % 1000 == 0) {
            mark(72009);
        }
    }
    keep(&sum);
}

/* --- coroutines ---------------------------------------------------------------------------------
 */

#if __cplusplus >= 202002L
struct numbers {
    struct promise_type {
        long value = 0;
        numbers get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept {
            return {};
        }
        std::suspend_always final_suspend() noexcept {
            return {};
        }
        std::suspend_always yield_value(long next) {
            value = next;
            return {};
        }
        void return_void() {
        }
        void unhandled_exception() {
            throw;
        }
    };
    std::coroutine_handle<promise_type> handle;
};

static numbers count(long limit, long step) {
    for (long i = 0; i < limit; i += step) {
        char frame[64];
        keep(frame);
        if (i % 4 == 0) {
            allocate();
        }
        if (i % 1000 == 0) {
            mark(72101);
        }
        if (i % 777 == 776) {
            throw i;
        }
        co_yield i;
    }
}

NOINLINE static long resume(numbers &from, long depth) {
    char frame[24];
    keep(frame);
    if (depth > 0) {
        return resume(from, depth - 1) + frame[opaque(0)] * 0;
    }
    from.handle.resume();
    return from.handle.promise().value;
}

static void storm_coroutines(long rounds) {
    long sum = 0;
    long round = 0;
    while (round < rounds) {
        numbers one = count(2000, 1);
        numbers two = count(3000, 3);
        try {
            while (!one.handle.done() && !two.handle.done() && round < rounds) {
                sum += resume(one, round % 4);
                sum += resume(two, round % 3);
                round += 2;
                if (round % 1000 == 0) {
                    mark(72103);
                }
            }
        } catch (long) {
            mark(72105);
        }
        one.handle.destroy();
        two.handle.destroy();
    }
    keep(&sum);
}
#endif

int main(int argc, char **argv) {
    static const storm storms[] = {
        {"exceptions", storm_exceptions},
#if __cplusplus >= 202002L
        {"coroutines", storm_coroutines},
#endif
    };
    return storm_main(argc, argv, storms, sizeof storms / sizeof *storms);
}
