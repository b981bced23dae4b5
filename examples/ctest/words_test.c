/* SPDX-License-Identifier: MIT */
/* words_test.c: two functions of strings, and what they may allocate. words_test TEST. */
#define MEMTRACE_EXPECT_REQUIRED 1 /* a test that measures nothing fails */
#include "memtrace/expect.h"

#include <stdlib.h>
#include <string.h>

static size_t count_words(const char *text) {
    size_t count = 0;
    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        at += strcspn(at, " ");
        count++;
    }
    return count;
}

/* The flaw: a copy of each word, and the longest one is not freed. */
static size_t longest_word(const char *text) {
    char *longest = NULL;
    size_t most = 0;
    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        char *word = strndup(at, length);
        if (word != NULL && length > most) {
            free(longest);
            longest = word;
            most = length;
        } else {
            free(word);
        }
        at += length;
    }
    return longest != NULL ? most : 0;
}

static int test_count(void) {
    size_t count = 0;
    MEMTRACE_EXPECT_NO_ALLOC {
        count = count_words("one two three");
    }
    return count == 3;
}

static int test_longest(void) {
    size_t longest = 0;
    MEMTRACE_EXPECT_NO_LEAK {
        longest = longest_word("one two three");
    }
    return longest == 5;
}

int main(int argc, char **argv) {
    int good = argc > 1 && strcmp(argv[1], "count") == 0 ? test_count() : test_longest();
    return good && memtrace_expect_failures() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
