/* SPDX-License-Identifier: MIT */
/*
 * make_golden.c FOLDER: the files that golden.py shows: shop.mtr, a recording of a program that
 * never ran (a shop that reads its configuration, answers requests with the help of a worker,
 * caches too much, and cleans up at its end), and example.mtp, the unit tests' profile. Always the
 * same bytes.
 */
#include "tests/unit/profile_builder.h"
#include "tests/unit/recording_builder.h"

enum {
    MAIN = 4, /* contexts */
    LOAD,
    REQUEST,
    CACHE,
    PARSE,
    WORKER,
    REPLY,
    MAPPED,
    POOLED
};
enum { MAIN_THREAD = 2, WORKER_THREAD = 3, REQUESTS = 40, CONFIG = 5 };
enum { MILLI = 1000000 };

#define CODE(offset) (UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (0x400000 + (offset)))

static const struct memtrace_recording_node nodes[] = {
    {CODE(0x100), 0, MAIN},
    {CODE(0x200), MAIN, LOAD},
    {CODE(0x300), MAIN, REQUEST},
    {CODE(0x400), REQUEST, CACHE},
    {CODE(0x500), REQUEST, PARSE},
    {CODE(0x600), 0, WORKER},
    {CODE(0x700), WORKER, REPLY},
    {MEMTRACE_FRAME_MAPPING, LOAD, MAPPED},
    {MEMTRACE_FRAME_POOL + 1, REQUEST, POOLED},
};

/* The texts stand behind the records; offsets are into them. */
struct naming {
    struct memtrace_frame_name records[16];
    size_t count;
    char texts[1024];
    size_t size;
};

static uint32_t add_text(struct naming *naming, const char *text) {
    uint32_t at = (uint32_t)naming->size;
    naming->size += strlen(strcpy(naming->texts + at, text)) + 1;
    return at;
}

static void name(struct naming *naming, uint64_t frame, const char *function, const char *file,
                 uint32_t line) {
    naming->records[naming->count++] = (struct memtrace_frame_name){
        frame, add_text(naming, function), add_text(naming, file), line, 0};
}

static void put_names(struct recording_build *build) {
    struct naming naming = {0};
    unsigned char payload[sizeof naming];
    size_t head;
    name(&naming, CODE(0x100), "main", "/src/shop/main.cpp", 30);
    name(&naming, CODE(0x200), "config::load(char const*)", "/src/shop/config.cpp", 12);
    name(&naming, CODE(0x300), "handle_request(request&)", "/src/shop/server.cpp", 55);
    name(&naming, CODE(0x400), "std::map<int, entry, std::less<int> >::operator[](int const&)",
         "/usr/include/c++/12/bits/stl_map.h", 511);
    name(&naming, CODE(0x400), "cache::insert(int)", "/src/shop/cache.cpp", 8);
    name(&naming, CODE(0x500), "parse_header", "/src/shop/parse|er.cpp", 77);
    name(&naming, CODE(0x600), "worker_main", "/src/shop/worker.cpp", 5);
    name(&naming, CODE(0x700), "build_reply", "/src/shop/worker.cpp", 21);
    head = naming.count * sizeof naming.records[0];
    memcpy(payload, naming.records, head);
    memcpy(payload + head, naming.texts, naming.size);
    recording_build_block(build,
                          (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_NAMES,
                                                         .items = (uint32_t)naming.count},
                          payload, head + naming.size);
}

/* One thread that records. */
struct thread {
    struct event_encoder *encoder;
    uint32_t id;
    uint64_t number;
    uint64_t time_ns;
    uint64_t brk;
};

static void put(struct thread *thread, struct event event) {
    event.time_ns = thread->time_ns;
    if (event_encoder_add(thread->encoder, &event) != 0) {
        abort();
    }
}

static struct event_block allocate(struct thread *thread, uint32_t context, uint64_t size,
                                   struct event_block old) {
    struct event_block block = {.number = ++thread->number, .thread = thread->id};
    uint32_t slack = (uint32_t)(-(size + 8) & 15);
    put(thread, (struct event){.kind = EVENT_ALLOC,
                               .context = context,
                               .block = block,
                               .old = old,
                               .address = thread->brk,
                               .size = size,
                               .slack = slack});
    thread->brk += size + slack + 8;
    return block;
}

static void release(struct thread *thread, struct event_block block) {
    put(thread, (struct event){.kind = EVENT_FREE, .block = block});
}

static void mark(struct thread *thread, enum memtrace_mark what, const char *text) {
    put(thread, (struct event){.kind = EVENT_MARK,
                               .operation = (uint8_t)what,
                               .id = what == MEMTRACE_MARK_POINT ? 0 : 7,
                               .text = text,
                               .text_size = (uint32_t)strlen(text)});
}

static struct thread begin(uint32_t id, uint64_t brk) {
    struct thread thread = {.encoder = event_encoder_new(MEMTRACE_RECORDING_PRECISE),
                            .id = id,
                            .time_ns = MILLI,
                            .brk = brk};
    if (thread.encoder == NULL) {
        abort();
    }
    event_encoder_start(thread.encoder, id, 1);
    return thread;
}

/* The last allocation is that of the last request; what follows is clean-up. */
static void run(struct thread *main_thread, struct thread *worker) {
    static const struct event_block none = {0};
    struct event_block config[CONFIG];
    struct event_block buffer;
    mark(main_thread, MEMTRACE_MARK_POINT, "started");
    for (size_t i = 0; i < CONFIG; i++) {
        config[i] = allocate(main_thread, LOAD, 1000 * (i + 1), none);
    }
    put(main_thread, (struct event){.kind = EVENT_MAP,
                                    .operation = MEMTRACE_MAP_MAP,
                                    .protection = 3,
                                    .context = MAPPED,
                                    .address = 0x7f0000000000,
                                    .size = 1 << 20});
    buffer = allocate(main_thread, MAIN, 64, none);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct event_block message;
        struct event_block reply;
        main_thread->time_ns = (10 + 10 * i) * MILLI;
        if (i == REQUESTS / 2) {
            mark(main_thread, MEMTRACE_MARK_POINT, "half");
        }
        mark(main_thread, MEMTRACE_MARK_SCOPE_BEGIN, "request");
        release(main_thread, allocate(main_thread, PARSE, 200 + i, none));
        if (i % 2 == 0) {
            allocate(main_thread, CACHE, 96, none);
        }
        if (i % 8 == 0) {
            buffer = allocate(main_thread, MAIN, 64 * (i + 2), buffer);
        }
        if (i % 4 == 0) {
            allocate(main_thread, POOLED, 48, none);
        }
        message = allocate(main_thread, REQUEST, 512, none);
        mark(main_thread, MEMTRACE_MARK_SCOPE_END, "request");
        worker->time_ns = main_thread->time_ns + MILLI;
        reply = allocate(worker, REPLY, 3000, none);
        release(worker, message);
        main_thread->time_ns += 5 * MILLI;
        release(main_thread, reply);
    }
    main_thread->time_ns += 50 * MILLI;
    release(main_thread, buffer);
    for (size_t i = 0; i < CONFIG; i += 2) {
        release(main_thread, config[i]);
    }
}

static void put_tables(struct recording_build *build) {
    static const struct memtrace_module module = {.id = 1,
                                                  .start = 0x400000,
                                                  .end = 0x500000,
                                                  .bias = 0x400000,
                                                  .build_id_size = 4,
                                                  .build_id = {1, 2, 3, 4},
                                                  .path = "/nowhere/bin/shop"};
    static const struct memtrace_recording_pool pool = {.number = 1, .name = "arena"};
    static const struct memtrace_thread_record threads[] = {
        {.id = MAIN_THREAD, .tid = 4242, .state = MEMTRACE_THREAD_ENDED, .name = "shop"},
        {.id = WORKER_THREAD,
         .tid = 4243,
         .state = MEMTRACE_THREAD_ENDED,
         .start_ns = MILLI,
         .end_ns = 400 * (uint64_t)MILLI,
         .name = "worker"}};
    struct memtrace_sample samples[24];
    for (uint64_t i = 0; i < 24; i++) {
        samples[i] = (struct memtrace_sample){.time_ns = (i + 1) * 20 * MILLI,
                                              .resident_bytes = (2 << 20) + i * (i << 12)};
    }
    recording_build_items(build, MEMTRACE_BLOCK_MODULES, &module, sizeof module, 1);
    recording_build_items(build, MEMTRACE_BLOCK_POOLS, &pool, sizeof pool, 1);
    recording_build_items(build, MEMTRACE_BLOCK_THREADS, threads, sizeof threads[0], 2);
    recording_build_items(build, MEMTRACE_BLOCK_SAMPLES, samples, sizeof samples[0], 24);
}

static void put_smaps(struct recording_build *build) {
    static const char names[] = "\0[heap]\0/usr/lib/libc.so.6\0[stack]";
    const struct memtrace_mapping mappings[] = {
        {0x400000, 0x500000, 0, 40960, 0, 0, 5, 8},
        {0x555500000000, 0x555500100000, 0, 900000, 899000, 4096, 3, 1},
        {0x7f0000000000, 0x7f0000100000, 0, 8192, 8192, 0, 3, 0},
        {0x7f0000200000, 0x7f0000300000, 0, 123456, 0, 0, 5, 8},
        {0x7ffe00000000, 0x7ffe00021000, 0, 16384, 16384, 0, 3, 27},
    };
    unsigned char payload[sizeof mappings + sizeof names];
    memcpy(payload, mappings, sizeof mappings);
    memcpy(payload + sizeof mappings, names, sizeof names);
    recording_build_block(build,
                          (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_SMAPS,
                                                         .items = 5,
                                                         .first_ns = 200 * (uint64_t)MILLI,
                                                         .last_ns = 200 * (uint64_t)MILLI},
                          payload, sizeof payload);
}

static void make_recording(const char *path) {
    struct recording_build build = {0};
    struct thread main_thread = begin(MAIN_THREAD, 0x555500001010);
    struct thread worker = begin(WORKER_THREAD, 0x7e0000001010);
    recording_build_header(&build);
    ((struct memtrace_recording_header *)build.bytes)->flags = MEMTRACE_RECORDING_PRECISE;
    recording_build_program(&build, "/nowhere/bin/shop");
    recording_build_nodes(&build, nodes, sizeof nodes / sizeof nodes[0]);
    put_tables(&build);
    put_names(&build);
    run(&main_thread, &worker);
    recording_build_encoded(&build, main_thread.encoder, 1);
    recording_build_encoded(&build, worker.encoder, 2);
    put_smaps(&build);
    recording_build_program(&build, "/nowhere/bin/shop");
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    event_encoder_free(main_thread.encoder);
    event_encoder_free(worker.encoder);
    recording_build_free(&build);
}

static void make_profile(const char *path) {
    struct builder *builder = builder_new();
    builder_example(builder, 0x10000000);
    recording_build_write(builder->bytes, builder_size(builder), path);
    free(builder);
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc != 2) {
        return 2;
    }
    snprintf(path, sizeof path, "%s/shop.mtr", argv[1]);
    make_recording(path);
    snprintf(path, sizeof path, "%s/example.mtp", argv[1]);
    make_profile(path);
    return 0;
}
