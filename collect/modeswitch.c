/* SPDX-License-Identifier: MIT */
/* modeswitch.c: see modeswitch.h. */
#include "collect/modeswitch.h"

#include "analyze/read/filemap.h"
#include "analyze/read/profile.h"
#include "analyze/rows/number.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct memtrace_header *modeswitch_map(const char *path, struct error *error) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *bytes = fd >= 0 ? filemap_open(fd, 0, MEMTRACE_HEADER_SIZE, FILEMAP_WRITES) : NULL;
    if (bytes == NULL) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}

struct memtrace_header *modeswitch_open(const char *path, struct error *error) {
    struct profile *profile = profile_open(path, error);
    struct memtrace_header *header = profile != NULL ? modeswitch_map(path, error) : NULL;
    profile_close(profile);
    return header;
}

void modeswitch_unmap(struct memtrace_header *header) {
    filemap_close(header, MEMTRACE_HEADER_SIZE);
}

uint64_t modeswitch_mean(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    return memtrace_is_recorded(recording)         ? modeswitch_load(&recording->sample_bytes)
           : header->mode == MEMTRACE_MODE_SAMPLED ? modeswitch_load(&header->sample_bytes)
                                                   : 0;
}

const char *modeswitch_say(const struct memtrace_header *header, char *text, size_t capacity) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    const char *what = memtrace_is_recorded(recording) ? "recorded" : "counted";
    uint64_t mean = modeswitch_mean(header);
    struct number number;
    if (header->mode == MEMTRACE_MODE_OFF) {
        snprintf(text, capacity, "off, nothing new is %s", what);
    } else if (mean != 0) {
        snprintf(text, capacity, "sampled, one allocation in %s is %s", number_bytes(&number, mean),
                 what);
    } else {
        snprintf(text, capacity, "exact, every allocation is %s", what);
    }
    return text;
}

/* Under a serial number that no other wish has. */
uint64_t modeswitch_ask(struct memtrace_header *header, struct modeswitch wish) {
    uint64_t before = modeswitch_load(&header->control);
    uint64_t control;
    do {
        uint64_t serial = ((before >> MEMTRACE_CONTROL_SERIAL_SHIFT) + 1) & UINT16_MAX;
        serial = serial != 0 ? serial : 1;
        control = serial << MEMTRACE_CONTROL_SERIAL_SHIFT |
                  (uint64_t)wish.mode << MEMTRACE_CONTROL_MODE_SHIFT | wish.mean;
    } while (!__atomic_compare_exchange_n(&header->control, &before, control, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return control;
}

bool modeswitch_holds(const struct memtrace_header *header, struct modeswitch wish) {
    uint32_t mode = __atomic_load_n(&header->mode, __ATOMIC_ACQUIRE);
    if (wish.mode == MEMTRACE_MODE_OFF || mode == MEMTRACE_MODE_OFF) {
        return mode == wish.mode;
    }
    return wish.mode == MEMTRACE_MODE_ON || modeswitch_mean(header) == wish.mean;
}
