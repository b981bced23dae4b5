/* SPDX-License-Identifier: MIT */
/* cache_test.cpp: a cache that is to stay within its budget, and to give everything back. */
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

#include <memtrace/expect_catch2.h>

#include <string>
#include <vector>

namespace {
class cache {
  public:
    cache() {
        pages_.reserve(8);
    }
    void store(const char *page) {
        if (pages_.size() == 8) {
            pages_.erase(pages_.begin());
        }
        pages_.emplace_back(page);
    }

  private:
    std::vector<std::string> pages_;
};

const char page[] = "a page that is too long to lie within a string itself";

TEST_CASE("the cache stays within its budget") {
    MEMTRACE_EXPECT_AT_MOST(8 * sizeof(std::string) + 20 * sizeof page) {
        cache pages;
        for (int i = 0; i < 20; i++) {
            pages.store(page);
        }
    }
}

TEST_CASE("the cache gives everything back") {
    MEMTRACE_EXPECT_NO_LEAK {
        cache pages;
        pages.store(page);
    }
}

/* The flaw: nobody deletes it. */
TEST_CASE("a shared cache gives everything back") {
    MEMTRACE_EXPECT_NO_LEAK {
        auto *pages = new cache;
        pages->store(page);
    }
}
} // namespace
