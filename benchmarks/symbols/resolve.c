/* SPDX-License-Identifier: MIT */
/*
 * resolve.c: what it takes to name addresses of a program, from a cold process.
 *
 *   --addresses N   so many places of its .text, spread evenly (default 10000)
 *   --cached 1      with the cache on disk
 *   FILE            an ELF file, last
 *
 * Results: wall_s, cpu_s, resident_mib, frames (inlined ones included), named (places with a
 * line).
 */
#include "../overhead/bench.h"
#include "analyze/symbol/symbol.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "resolve: %s\n", what);
    exit(1);
}

/* The addresses of its code, and its build-id. */
static void find_text(const char *path, uint64_t *start, uint64_t *size,
                      struct symbol_module *module) {
    static uint8_t build_id[64];
    const void *bytes;
    ssize_t id_size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf;
    size_t names;
    elf_version(EV_CURRENT);
    elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0) {
        fail("no ELF file");
    }
    id_size = dwelf_elf_gnu_build_id(elf, &bytes);
    if (id_size > 0 && (size_t)id_size <= sizeof build_id) {
        memcpy(build_id, bytes, (size_t)id_size);
        module->build_id = build_id;
        module->build_id_size = (size_t)id_size;
    }
    *size = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name;
        if (gelf_getshdr(section, &header) == NULL) {
            continue;
        }
        name = elf_strptr(elf, names, header.sh_name);
        if (name != NULL && strcmp(name, ".text") == 0) {
            *start = header.sh_addr;
            *size = header.sh_size;
        }
    }
    elf_end(elf);
    close(fd);
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv) {
    size_t count;
    struct symbol_address *addresses;
    struct symbolizer *symbolizer;
    struct symbol_module module = {0};
    struct symbolizer_options options = {0};
    struct rusage usage;
    uint64_t start = 0;
    uint64_t size;
    size_t frames = 0;
    size_t named = 0;
    uint64_t begun_ns = bench_wall_ns();
    count = (size_t)bench_option(argc, argv, "--addresses", 10000);
    module.path = argv[argc - 1];
    find_text(module.path, &start, &size, &module);
    options.cached = bench_option(argc, argv, "--cached", 0) != 0;
    addresses = calloc(count, sizeof *addresses);
    symbolizer = symbolizer_open(&options, NULL);
    if (addresses == NULL || symbolizer == NULL || size == 0) {
        fail("nothing to resolve");
    }
    for (size_t i = 0; i < count; i++) {
        addresses[i].offset = start + (uint64_t)((double)size * (double)i / (double)count);
    }
    if (symbolizer_prepare(symbolizer, &module, 1, addresses, count, NULL, NULL, NULL) != 0) {
        fail("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        struct symbol_frames found;
        symbolizer_resolve(symbolizer, &module, addresses[i].offset, &found);
        frames += found.count;
        named += found.count != 0 && found.frames[0].line != 0;
    }
    symbolizer_close(symbolizer);
    getrusage(RUSAGE_SELF, &usage);
    bench_result("wall_s", (double)(bench_wall_ns() - begun_ns) / 1e9);
    bench_result("cpu_s", seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    bench_result("resident_mib", (double)usage.ru_maxrss / 1024);
    bench_result("frames", (double)frames);
    bench_result("named", (double)named);
    free(addresses);
    return 0;
}
