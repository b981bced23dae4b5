/* SPDX-License-Identifier: MIT */
/* memorylimit.c: see memorylimit.h. */
#include "ask/memorylimit.h"

#include "analyze/read/budget.h"
#include "analyze/rows/number.h"
#include "collect/limits.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit before;
static struct rlimit now;
static bool is_ours; /* `before` is what was there */
static char note[160];

/* Private memory only: mapped files, regions of programs among them, do not count. */
static void memorylimit_set(uint64_t bytes, const char *whose) {
    struct number n;
    if (!is_ours && getrlimit(RLIMIT_DATA, &before) != 0) {
        return;
    }
    now = before;
    if (before.rlim_cur != RLIM_INFINITY && bytes >= before.rlim_cur) {
        now.rlim_cur = before.rlim_cur;
    } else {
        now.rlim_cur = bytes;
    }
    if (setrlimit(RLIMIT_DATA, &now) == 0) {
        is_ours = true;
        snprintf(note, sizeof note, " (the limit is %s, %s; --memory-limit SIZE sets another)",
                 number_bytes(&n, bytes), whose);
    }
}

/* A sanitizer's shadow is memory of that kind, in amounts that say nothing of what is used. */
static bool is_sanitized(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
    return __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
    return false;
#endif
}

void memorylimit_start(void) {
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t used;
    uint64_t most;
    if (is_sanitized()) {
        return;
    }
    if (limits_group(getpid(), "", &used, &most) && most < machine) {
        memorylimit_set(most / 4 * 3, "three quarters of what the control group may use");
    } else if (sysconf(_SC_PHYS_PAGES) > 0) {
        memorylimit_set(machine / 4 * 3, "three quarters of the machine's memory");
    }
}

void memorylimit_lift(void) {
    if (is_ours) {
        setrlimit(RLIMIT_DATA, &before);
    }
}

void memorylimit_again(void) {
    if (is_ours) {
        setrlimit(RLIMIT_DATA, &now);
    }
}

const char *memorylimit_note(void) {
    return note;
}

static int memorylimit_take(void *member, const struct option *option, const char *value,
                            struct error *error) {
    uint64_t bytes;
    const struct option size = {.name = option->name,
                                .type = OPTION_SIZE,
                                .size = sizeof bytes,
                                .least = UINT64_C(64) << 20};
    (void)member;
    if (option_store(&size, value, &bytes, error) != 0) {
        return -1;
    }
    budget_allow(bytes);
    memorylimit_set(bytes, "as --memory-limit says");
    return 0;
}

const struct option memorylimit_options[] = {
    {"memory-limit", 0, "SIZE",
     "use at most this much memory; a file's tables may take as much (default: three quarters "
     "of the machine's; tables: what a file of its size can need)",
     OPTION_CALL, .call = memorylimit_take},
    OPTION_END};
