/* SPDX-License-Identifier: MIT */
/*
 * topsource.h: what `memtrace top` looks at: a running program, through its region alone, or a
 * file: a recording that grows, a profile.
 *
 * Called by top. One thread; names are found by another one (topnames.h).
 */
#ifndef TOP_TOPSOURCE_H
#define TOP_TOPSOURCE_H

#include "analyze/profile/livecosts.h"
#include "ask/source.h"
#include "top/topnames.h"

#include <sys/types.h>

enum { TOPSOURCE_POINTS = 1024 };

/* One look. */
struct topsource_point {
    uint64_t time_ns; /* since the program's start */
    uint64_t live_bytes;
    double allocations; /* a second; below 0: not known */
};

struct topsource {
    pid_t pid;                 /* 0: a file */
    struct profile *profile;   /* of a running program */
    struct source *file;       /* NULL: a running program */
    uint64_t file_bytes;       /* at the last look */
    struct job_memory *memory; /* of the file with its names, or of the model */
    const char *debug_folders;

    struct model *model; /* threads, modules, timeline; of a file all of it */
    struct livecosts costs;
    uint32_t thread; /* whose costs they are; 0: of all */
    struct topnames *names;
    bool is_live;            /* it goes on */
    bool is_uncounted;       /* it has a malloc of which nothing is known (uncounted.h), */
    size_t judged_modules;   /* as far as these modules say */
    uint64_t resident_bytes; /* 0: not known */
    uint64_t group_bytes;    /* what its memory cgroup uses, */
    uint64_t group_limit;    /* and may use; 0: there is no limit */
    uint64_t looked_ns;      /* monotonic */
    double seconds;          /* from the look before to this one; 0: there was none */
    double looking_seconds;  /* of the processor, that the last look took */
    struct topsource_point points[TOPSOURCE_POINTS]; /* the latest looks, oldest first */
    size_t point_count;
};

/* Whether the name is a number, as of a process, and not that of a file. */
bool topsource_is_number(const char *name, uint64_t *number);

/* name: a process id or a file, as for reports; or the region of a program. Does not look yet. 0,
 * or -1: error is set and nothing is open. */
int topsource_open(struct topsource *source, const char *name, bool is_region,
                   const char *debug_folders, struct error *error);
/* Whether the process goes on though the program in it has ended: another one may be there, or will
 * be, by exec. */
bool topsource_goes_on(const struct topsource *source);
/* Whether there is one that is profiled, and is what is looked at now. Does not look yet. */
bool topsource_follow(struct topsource *source);
/* Looks again; one that is not live any more stays as it is. 0, or -1: error is set. */
int topsource_look(struct topsource *source, struct error *error);
/* From now on costs are those of one thread, which has this id; 0: of all. It looks again. 0, or
 * -1: error is set, and all is as it was: it is a file, or there is no such thread. */
int topsource_choose(struct topsource *source, uint32_t thread, struct error *error);
/* As livecosts_lifetimes(). */
int topsource_lifetimes(const struct topsource *source, livecosts_take_lifetimes *take,
                        void *context);
/* The hash of the path that ends in a node of costs, as in reports. */
uint64_t topsource_hash(const struct topsource *source, uint32_t path);
/* Writes what a running program's profile is now beside us, to a new file. 0, or -1. */
int topsource_save(const struct topsource *source, char *path, size_t capacity,
                   struct error *error);
void topsource_close(struct topsource *source);

#endif
