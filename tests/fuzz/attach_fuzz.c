/* SPDX-License-Identifier: MIT */
/*
 * attach_fuzz.c: libFuzzer's target: what `memtrace attach`, which may be root's, reads of a
 * program that may be hostile: two bytes, how long the text is; the text, as /proc/PID/maps; and an
 * ELF file, which each mapping is said to be of. Whatever they are: no crash, no hang, and what is
 * to be written there lies where the text says that it may. tests/fuzz/run runs it.
 */
#include "collect/attach/attachtarget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STUB = 500, PLACE = 8192, MOST = 1 << 16 };

static void check_gap(const struct attachtarget *target) {
    uint64_t gap = attachtarget_gap(target, PLACE);
    if (gap % 4096 != 0 || gap >> 47 != 0) {
        abort();
    }
    for (size_t i = 0; gap != 0 && i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->start < gap + PLACE && mapping->end > gap) {
            abort();
        }
    }
}

static void check_object(const struct attachtarget *target, const struct attachmapping *object,
                         int fd) {
    uint64_t place = attachtarget_padding_of(fd, target, object, STUB);
    const struct attachmapping *code = attachtarget_at(target, place);
    if (place != 0 && (code == NULL || !code->executable || code->writable ||
                       place + STUB < place || place + STUB > code->end)) {
        abort();
    }
    attachtarget_symbol_of(fd, object, "malloc");
    attachtarget_object(target, "libc.so.6");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t length = size >= 2 ? data[0] | (size_t)data[1] << 8 : 0;
    struct attachtarget target;
    FILE *maps;
    int fd;
    if (size < 2 || length == 0 || length > size - 2 || size > MOST) {
        return 0;
    }
    maps = fmemopen((void *)(data + 2), length, "r");
    fd = memfd_create("attach_fuzz", MFD_CLOEXEC);
    if (maps == NULL || fd < 0 || write(fd, data + 2 + length, size - 2 - length) < 0) {
        abort();
    }
    if (attachtarget_read(maps, getpid(), &target, NULL) == 0) {
        check_gap(&target);
        for (size_t i = 0; i < target.count && i < 16; i++) {
            check_object(&target, &target.mappings[i], fd);
        }
        attachtarget_close(&target);
    }
    fclose(maps);
    close(fd);
    return 0;
}
