/* SPDX-License-Identifier: MIT */
/* expect_gtest.h: broken expectations (expect.h) are failures of the GoogleTest test that runs, at
 * the block's file and line; the test goes on. Include it in any one file of a test program. */
#ifndef MEMTRACE_EXPECT_GTEST_H
#define MEMTRACE_EXPECT_GTEST_H

#include "memtrace/expect.h"

#include <gtest/gtest.h>

namespace memtrace {
inline void expect_gtest(const memtrace_expectation *expectation) {
    ADD_FAILURE_AT(expectation->file, static_cast<int>(expectation->line)) << expectation->message;
}

namespace {
struct expect_gtest_registration {
    expect_gtest_registration() noexcept {
        memtrace_expect_handle(expect_gtest);
    }
} const expect_gtest_registered __attribute__((unused));
} // namespace
} // namespace memtrace
#endif
