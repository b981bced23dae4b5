/* SPDX-License-Identifier: MIT */
/*
 * resident_bench.c: what unwinding keeps in memory: pages of rules and of remembered frames that
 * are resident, as the kernel counts them; and how few rules it makes of large libraries. Opens the
 * libraries that its arguments name; run by benchmarks/run.
 */
#include "benchmarks/micro/micro_walk.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

enum { FIRST_RULES = 4096, MOST_RULES = 200000, MOST_HEADERS = 64 };

/* .eh_frame_hdr in the form that linkers write: the start of each function, from the header on. */
struct header {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    int32_t eh_frame;
    uint32_t count;
    struct {
        int32_t function, description;
    } item[];
};

static const struct header *headers[MOST_HEADERS];
static int header_count;

static int note_header(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size;
    (void)unused;
    for (int i = 0; i < object->dlpi_phnum && header_count < MOST_HEADERS; i++) {
        if (object->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            const void *header = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
            headers[header_count++] = header;
        }
    }
    return 0;
}

/* Private memory in use; a shared profile is not. */
static double resident_bytes(void) {
    return (double)bench_status_kib("RssAnon:") * 1024;
}

/* Makes rules up to `most`. Reports what they take at their worst: a table grows by steps. */
static void measure_rules(void) {
    size_t next = FIRST_RULES;
    double worst = 0, before = resident_bytes();
    size_t start_count = micro_world.rules->count;
    uint64_t start = bench_now_ns();
    for (int h = 0; h < header_count; h++) {
        for (uint32_t i = 0; i < headers[h]->count; i++) {
            rule_find(micro_world.rules,
                      (uintptr_t)headers[h] + (uintptr_t)headers[h]->item[i].function + 1);
            size_t made = micro_world.rules->count - start_count;
            if (made >= next) {
                double each = (resident_bytes() - before) / (double)made;
                worst = each > worst ? each : worst;
                next += next / 8;
            }
            if (made >= MOST_RULES)
                break;
        }
    }
    size_t made = micro_world.rules->count - start_count;
    bench_result("rule_ns", (double)(bench_now_ns() - start) / (double)made);
    bench_result("rules", (double)made);
    bench_result("rule_bytes", (resident_bytes() - before) / (double)made);
    bench_result("rule_bytes_worst", worst);
}

static BENCH_FRAME void descend(long frames, int take) {
    if (frames > 0) {
        descend(frames - 1, take);
        BENCH_CALL_SITE(1);
    } else if (take) {
        BENCH_KEEP((uintptr_t)micro_take_context());
    }
}

/* The program's own stack is private memory, too: it is touched before. */
static void measure_frames(long depth) {
    char name[40];
    descend(depth, 0);
    double before = resident_bytes();
    descend(depth, 1);
    double each = (resident_bytes() - before) / (double)micro_walker.remembered.count;
    snprintf(name, sizeof name, "frame_bytes_%ld", depth);
    bench_result(name, each);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!dlopen(argv[i], RTLD_LAZY)) {
            fprintf(stderr, "resident_bench: %s\n", dlerror());
            return 1;
        }
    }
    double functions = 0;
    dl_iterate_phdr(note_header, NULL);
    for (int h = 0; h < header_count; h++)
        functions += headers[h]->count;
    micro_open_walk(argv);
    descend(10, 1);
    bench_result("functions", functions);
    bench_result("rules_first", (double)micro_world.rules->count);
    measure_frames(1000);
    measure_frames(10000);
    measure_rules();
    return 0;
}
