/* SPDX-License-Identifier: MIT */
/*
 * put_text.c FROM TO OLD NEW [OLD NEW]...: a recording anew, in which texts of the same length are
 * exchanged wherever they stand, with checksums that are right. Called by hostile.py.
 */
#include "analyze/read/recording.h"
#include "tests/unit/recording_builder.h"

static void exchange(void *bytes, size_t size, char **pairs) {
    for (; pairs[0] != NULL; pairs += 2) {
        size_t length = strlen(pairs[0]);
        char *at = bytes;
        while ((at = memmem(at, size - (size_t)(at - (char *)bytes), pairs[0], length)) != NULL) {
            memcpy(at, pairs[1], length);
        }
    }
}

int main(int argc, char **argv) {
    struct recording_build build = {0};
    struct recording_buffer buffer = {0};
    struct recording *recording = argc > 4 ? recording_open(argv[1], NULL) : NULL;
    struct memtrace_recording_header header;
    if (recording == NULL) {
        return 2;
    }
    header = recording->header;
    exchange(&header, sizeof header, argv + 3);
    recording_build_append(&build, &header, sizeof header);
    for (size_t i = 0; i < recording->block_count; i++) {
        if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_INDEX &&
            build.count + 1 < BUILD_BLOCKS && recording_payload(recording, i, &buffer, NULL) == 0) {
            exchange(buffer.bytes, buffer.size, argv + 3);
            recording_build_block(&build, recording->blocks[i].block, buffer.bytes, buffer.size);
        }
    }
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, argv[2]);
    recording_buffer_free(&buffer);
    recording_build_free(&build);
    recording_close(recording);
    return 0;
}
