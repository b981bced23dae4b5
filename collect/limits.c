/* SPDX-License-Identifier: MIT */
/* limits.c: the sources, one after the other. See limits.h. */
#include "collect/limits.h"

#include "analyze/base/scope.h"
#include "analyze/rows/number.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PRESSURE_PERCENT = 20, /* of the last ten seconds in which nobody got on */
    AGAIN_PERCENT = 90,    /* of a limit: below it the source may tell again */
};

void limits_start(struct limits *limits, const struct memtrace_limit *limit, pid_t pid,
                  const char *root) {
    *limits = (struct limits){.limit = *limit, .pid = pid, .root = root};
}

/* Of groups of version 1 that have none it is a little below 2^63. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* --- small files of the kernel ---------------------------------------------------------------- */

struct page {
    char text[16384];
};

/* Whether there is such a file; its text is cut where it is longer than any that we read. */
static bool read_page(const struct limits *limits, const char *path, struct page *page) {
    char full[PATH_MAX];
    bool fits = (size_t)snprintf(full, sizeof full, "%s%s", limits->root, path) < sizeof full;
    SCOPE_FD int fd = fits ? open(full, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = fd >= 0 ? read(fd, page->text, sizeof page->text - 1) : -1;
    page->text[size > 0 ? size : 0] = '\0';
    return size > 0;
}

static bool read_process(const struct limits *limits, const char *name, struct page *page) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)limits->pid, name);
    return read_page(limits, path, page);
}

/* The line that begins with `label`; what follows, or NULL. */
static const char *limits_line(const struct page *page, const char *label) {
    const char *at = page->text;
    size_t length = strlen(label);
    while (at != NULL && strncmp(at, label, length) != 0) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? at + length : NULL;
}

static bool limits_number(const struct page *page, const char *label, uint64_t *number) {
    const char *at = limits_line(page, label);
    return at != NULL && sscanf(at, " %" SCNu64, number) == 1;
}

/* "VmRSS:     1234 kB" */
static uint64_t kilobytes_of(const struct page *page, const char *label) {
    uint64_t number = 0;
    return limits_number(page, label, &number) ? number * 1024 : 0;
}

/* --- crossing --------------------------------------------------------------------------------- */

/* Whether this source tells now. */
static bool crosses(struct limits *limits, enum limits_source source, uint64_t used,
                    uint64_t limit) {
    bool was = limits->crossed[source];
    if (used >= limit) {
        limits->crossed[source] = true;
    } else if (used < limit / 100 * AGAIN_PERCENT) {
        limits->crossed[source] = false;
    }
    return limits->crossed[source] && !was;
}

static uint64_t limits_part(const struct limits *limits, uint64_t whole) {
    return whole / 100 * limits->limit.percent;
}

/* --- the process ------------------------------------------------------------------------------ */

static bool limits_check_process(struct limits *limits, const struct page *status) {
    uint64_t used = kilobytes_of(status, "VmRSS:") + kilobytes_of(status, "VmSwap:");
    struct number n[2];
    if (!crosses(limits, LIMITS_PROCESS, used, limits->limit.bytes)) {
        return false;
    }
    snprintf(limits->text, sizeof limits->text,
             "the process has %s in memory and swap, its limit is %s", number_bytes(&n[0], used),
             number_bytes(&n[1], limits->limit.bytes));
    return true;
}

static bool check_address(struct limits *limits, const struct page *status) {
    uint64_t used = kilobytes_of(status, "VmSize:");
    uint64_t most;
    struct page resources;
    struct number n[2];
    if (!read_process(limits, "limits", &resources) ||
        !limits_number(&resources, "Max address space", &most) || most == 0 ||
        !crosses(limits, LIMITS_ADDRESS, used, limits_part(limits, most))) {
        return false;
    }
    snprintf(limits->text, sizeof limits->text,
             "the process has %s of the %s of address space that it may use (ulimit -v)",
             number_bytes(&n[0], used), number_bytes(&n[1], most));
    return true;
}

/* --- control groups --------------------------------------------------------------------------- */

/* One group's use and the least of what it may use. */
struct group {
    char path[PATH_MAX]; /* of its folder, without the root */
    size_t mount;        /* bytes of the path that are the mount point */
    uint64_t used, most;
};

static uint64_t group_number(const struct limits *limits, const struct group *group,
                             const char *file, const char *label, uint64_t otherwise) {
    char path[PATH_MAX + 64];
    struct page page;
    uint64_t number;
    snprintf(path, sizeof path, "%s/%s", group->path, file);
    return read_page(limits, path, &page) && limits_number(&page, label, &number) ? number
                                                                                  : otherwise;
}

/* Version 2 and version 1 call the same things by other names. "max" is no number. */
static void limits_measure(const struct limits *limits, struct group *group) {
    uint64_t high = group_number(limits, group, "memory.high", "", UINT64_MAX);
    uint64_t cache = group_number(limits, group, "memory.stat", "inactive_file", 0);
    uint64_t old = group_number(limits, group, "memory.limit_in_bytes", "", UINT64_MAX);
    group->most = group_number(limits, group, "memory.max", "", old);
    group->most = high < group->most ? high : group->most;
    group->used = group_number(limits, group, "memory.current", "",
                               group_number(limits, group, "memory.usage_in_bytes", "", 0));
    cache = group_number(limits, group, "memory.stat", "total_inactive_file", cache);
    group->used -= cache < group->used ? cache : group->used; /* given back before anybody dies */
}

static bool lists_memory(char *controllers) {
    char *rest = NULL;
    char *word = strtok_r(controllers, ",", &rest);
    while (word != NULL && strcmp(word, "memory") != 0) {
        word = strtok_r(NULL, ",", &rest);
    }
    return word != NULL;
}

static void set_group(struct group *group, const char *mount, const char *path) {
    group->mount = strlen(mount);
    snprintf(group->path, sizeof group->path, "%s%s", mount, path[1] != '\0' ? path : "");
}

/* The folder of the process's group: with the memory controller of version 1, else of version 2.
 * Lines are "4:cpu,memory:/path" and, for version 2, "0::/path". */
static bool find_group(const struct limits *limits, struct group *group) {
    struct page page;
    char *rest = NULL;
    bool found = false;
    if (!read_process(limits, "cgroup", &page)) {
        return false;
    }
    for (char *line = strtok_r(page.text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL || path[1] != '/') {
            continue;
        }
        *path++ = '\0';
        if (controllers[1] == '\0') {
            set_group(group, "/sys/fs/cgroup", path);
            found = true;
        } else if (lists_memory(controllers + 1)) {
            set_group(group, "/sys/fs/cgroup/memory", path);
            return true;
        }
    }
    return found;
}

/* The group nearest to its limit, of the process's own and those around it. */
static bool fullest_group(const struct limits *limits, struct group *fullest) {
    struct group group;
    bool found = false;
    if (!find_group(limits, &group)) {
        return false;
    }
    for (;;) {
        limits_measure(limits, &group);
        if (group.most <= NO_LIMIT && group.most != 0 &&
            (!found || (double)group.used / (double)group.most >
                           (double)fullest->used / (double)fullest->most)) {
            *fullest = group;
            found = true;
        }
        if (strlen(group.path) <= group.mount) {
            return found;
        }
        *strrchr(group.path, '/') = '\0';
    }
}

bool limits_group(pid_t pid, const char *root, uint64_t *used, uint64_t *most) {
    const struct limits limits = {.pid = pid, .root = root};
    struct group group;
    if (!fullest_group(&limits, &group)) {
        return false;
    }
    *used = group.used;
    *most = group.most;
    return true;
}

static bool check_group(struct limits *limits) {
    struct group group;
    struct number n[2];
    if (!fullest_group(limits, &group) ||
        !crosses(limits, LIMITS_CGROUP, group.used, limits_part(limits, group.most))) {
        return false;
    }
    snprintf(limits->text, sizeof limits->text,
             "the control group %.300s uses %s of the %s that it may use",
             group.path[group.mount] != '\0' ? group.path + group.mount : "/",
             number_bytes(&n[0], group.used), number_bytes(&n[1], group.most));
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

static bool check_machine(struct limits *limits) {
    struct page page;
    struct number n[2];
    uint64_t whole;
    uint64_t left;
    if (!read_page(limits, "/proc/meminfo", &page)) {
        return false;
    }
    whole = kilobytes_of(&page, "MemTotal:");
    left = kilobytes_of(&page, "MemAvailable:");
    if (whole == 0 || left > whole ||
        !crosses(limits, LIMITS_MACHINE, whole - left, limits_part(limits, whole))) {
        return false;
    }
    snprintf(limits->text, sizeof limits->text, "the machine has %s of %s left",
             number_bytes(&n[0], left), number_bytes(&n[1], whole));
    return true;
}

static bool check_pressure(struct limits *limits) {
    struct page page;
    const char *full;
    double percent;
    if (!read_page(limits, "/proc/pressure/memory", &page)) {
        return false;
    }
    full = limits_line(&page, "full avg10=");
    percent = full != NULL ? strtod(full, NULL) : 0;
    if (percent < 0 || percent > 100 ||
        !crosses(limits, LIMITS_PRESSURE, (uint64_t)(percent * 100), PRESSURE_PERCENT * 100)) {
        return false;
    }
    snprintf(limits->text, sizeof limits->text,
             "the machine waited for memory during %.0f%% of the last ten seconds", percent);
    return true;
}

const char *limits_check(struct limits *limits) {
    struct page status;
    bool known;
    if (!limits_wanted(limits)) {
        return NULL;
    }
    known = read_process(limits, "status", &status);
    if (limits->limit.bytes != 0) {
        return known && limits_check_process(limits, &status) ? limits->text : NULL;
    }
    return (known && check_address(limits, &status)) || check_group(limits) ||
                   check_machine(limits) || check_pressure(limits)
               ? limits->text
               : NULL;
}
