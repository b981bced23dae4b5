/* SPDX-License-Identifier: MIT */
/* source.c: which profile is meant. See source.h. */
#include "cli/source.h"

#include "analyze/read/region.h"
#include "cli/cli.h"
#include "collect/adopt.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *source_newest(void) {
    char *newest = NULL;
    struct timespec when = {0};
    glob_t found;
    adopt_killed(NULL, NULL, NULL); /* one of them may be of this folder */
    if (glob("*.mtp", 0, NULL, &found) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) != 0 || !S_ISREG(status.st_mode)) {
            continue;
        }
        if (newest == NULL || status.st_mtim.tv_sec > when.tv_sec ||
            (status.st_mtim.tv_sec == when.tv_sec && status.st_mtim.tv_nsec > when.tv_nsec)) {
            free(newest);
            newest = strdup(found.gl_pathv[i]);
            when = status.st_mtim;
        }
    }
    globfree(&found);
    return newest;
}

/* The region that a killed program left, if there is one. */
static bool find_left_region(pid_t pid, struct region *region) {
    struct region *list;
    struct error error;
    size_t count;
    bool found = false;
    if (region_list(&list, &count, &error) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        if (list[i].pid == pid) {
            *region = list[i];
            found = true;
        }
    }
    free(list);
    return found;
}

/* The process asked for, and where its profile was put now. */
struct adoption {
    pid_t pid;
    char path[sizeof((struct finished *)NULL)->path];
};

static void note_adopted(void *context, const struct adopted *adopted) {
    struct adoption *adoption = context;
    char line[6000];
    if (adopted->pid == adoption->pid) {
        memcpy(adoption->path, adopted->finished.path, sizeof adoption->path);
        adopt_line(adopted, line, sizeof line);
        fprintf(stderr, "memtrace: %s\n", line);
    }
}

static struct profile *open_process(uint64_t pid, struct error *error) {
    struct adoption adoption = {.pid = (pid_t)pid};
    struct region region;
    bool found;
    if (pid > INT32_MAX) {
        error_set(error, "there is no process %llu", (unsigned long long)pid);
        return NULL;
    }
    found = region_find((pid_t)pid, &region, error) == 0;
    if (!found || !region.alive) {
        adopt_killed(note_adopted, &adoption, NULL);
    }
    if (adoption.path[0] != '\0') {
        return profile_open(adoption.path, error);
    }
    return found || find_left_region((pid_t)pid, &region) ? profile_open(region.path, error) : NULL;
}

struct profile *source_open(const char *source, struct error *error) {
    uint64_t pid;
    if (cli_parse_u64(source, &pid) == 0 && access(source, F_OK) != 0) {
        return open_process(pid, error);
    }
    return profile_open(source, error);
}
