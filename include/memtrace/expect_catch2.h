/* SPDX-License-Identifier: MIT */
/* expect_catch2.h: broken expectations (expect.h) are failed checks of the Catch2 test that runs,
 * which goes on. Catch2 (version 2 or 3) is included before it. Include it in any one file of a
 * test program; like Catch2's own checks it is for the thread that runs the test. */
#ifndef MEMTRACE_EXPECT_CATCH2_H
#define MEMTRACE_EXPECT_CATCH2_H

#include "memtrace/expect.h"

#ifndef FAIL_CHECK
#error "include Catch2 before memtrace/expect_catch2.h"
#endif

namespace memtrace {
inline void expect_catch2(const memtrace_expectation *expectation) {
    FAIL_CHECK(expectation->file << ":" << expectation->line << ": " << expectation->message);
}

namespace {
struct expect_catch2_registration {
    expect_catch2_registration() noexcept {
        memtrace_expect_handle(expect_catch2);
    }
} const expect_catch2_registered __attribute__((unused));
} // namespace
} // namespace memtrace
#endif
