/* SPDX-License-Identifier: MIT */
/*
 * replayfile_fuzz.c: libFuzzer's target: any bytes as a file of `memtrace export --format replay`,
 * packed or not. It is read to its end, as it says, or refused with one line. Once as it is; then
 * with the checksum that it ought to have, so that what stands behind that is reached.
 * tests/fuzz/run runs it.
 */
#include "analyze/export/replayfile.h"

#define XXH_INLINE_ALL
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

static char path[64];
static int input;

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

static void read_events(const struct replayfile *file) {
    struct replayfile_reader reader;
    struct replayfile_event event;
    uint64_t count = 0;
    int result;
    replayfile_start(&reader, file);
    while ((result = replayfile_next(&reader, &event)) == 1) {
        check(event.slot < file->foot.slots && event.thread < REPLAYFILE_THREADS);
        count++;
    }
    check(result == 0 && count == file->foot.events);
}

static void read_file(void) {
    struct replayfile file;
    struct error error = {""};
    if (replayfile_open(&file, path, &error) != 0) {
        check(error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
        check(file.bytes == NULL && file.unpacked < 0);
        return;
    }
    read_events(&file);
    replayfile_close(&file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    input = memfd_create("replayfile", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", input);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t summed = size - 2 * sizeof(uint64_t);
    uint64_t sum;
    if (ftruncate(input, 0) != 0 || pwrite(input, data, size, 0) != (ssize_t)size) {
        return 0;
    }
    read_file();
    if (size >= sizeof(struct replayfile_foot)) {
        sum = XXH64(data, summed, 0);
        check(pwrite(input, &sum, sizeof sum, (off_t)summed) == (ssize_t)sizeof sum);
        read_file();
    }
    return 0;
}
