/* SPDX-License-Identifier: MIT */
/*
 * symbol_fixture.h: small programs compiled on the spot, and what the symbolizer says about them.
 *
 * Used by symbol_test.c, debugfile_test.c and symbolize_test.c. Everything lies in one temporary
 * folder, which the tests make and remove.
 */
#ifndef TESTS_UNIT_SYMBOL_FIXTURE_H
#define TESTS_UNIT_SYMBOL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/symbol/symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fixture_folder[64];

static const char fixture_c[] =
    "#include <stdlib.h>\n"                                                        /* 1 */
    "static inline __attribute__((always_inline)) void *leaf(unsigned long n) {\n" /* 2 */
    "    return malloc(n);\n"                                                      /* 3 */
    "}\n"                                                                          /* 4 */
    "static inline __attribute__((always_inline)) void *middle(unsigned long n) {\n"
    "    if (n > 9)\n"
    "        return leaf(n * 2);\n" /* 7 */
    "    return leaf(n);\n"         /* 8 */
    "}\n"
    "__attribute__((noinline)) void *outer(unsigned long n) {\n" /* 10 */
    "    void *p = middle(n);\n"
    "    free(middle(n + 1));\n"
    "    return p;\n"
    "}\n"
    "int main(int c, char **v) { free(outer((unsigned long)c)); return v == 0; }\n";

/* Runs a shell command in the fixture's folder. 0: it succeeded. */
__attribute__((format(printf, 1, 2))) static inline int fixture_run(const char *format, ...) {
    char command[2048];
    int used = snprintf(command, sizeof command, "cd %s && { ", fixture_folder);
    va_list arguments;
    va_start(arguments, format);
    used += vsnprintf(command + used, sizeof command - (size_t)used, format, arguments);
    va_end(arguments);
    snprintf(command + used, sizeof command - (size_t)used, "; } >log 2>&1");
    return system(command);
}

static inline void fixture_write(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Group setup and teardown. */
static inline int fixture_make(void **state) {
    (void)state;
    strcpy(fixture_folder, "/tmp/symbol_test.XXXXXX");
    if (!mkdtemp(fixture_folder))
        return -1;
    fixture_write("c.c", fixture_c);
    return 0;
}

static inline int fixture_remove(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", fixture_folder);
    return system(command);
}

/* The first address of a symbol, by nm; 0: no such symbol. */
static inline uint64_t fixture_symbol(const char *program, const char *symbol) {
    char command[512];
    unsigned long address = 0;
    snprintf(command, sizeof command, "cd %s && nm %s | awk '$3 == \"%s\" { print $1 }'",
             fixture_folder, program, symbol);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    if (fscanf(pipe, "%lx", &address) != 1)
        address = 0;
    pclose(pipe);
    return address;
}

/* The build-id by readelf; its size. */
static inline size_t fixture_build_id(const char *program, uint8_t id[64]) {
    char command[512];
    char text[130] = "";
    snprintf(command, sizeof command, "cd %s && readelf -n %s | sed -n 's/.*Build ID: //p'",
             fixture_folder, program);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    if (fscanf(pipe, "%128s", text) != 1)
        text[0] = '\0';
    pclose(pipe);
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        id[i] = (uint8_t)byte;
    }
    return size;
}

/* The frames as text: "leaf c.c:3 i|middle c.c:8 i|outer c.c:11", file names without folder. */
static inline void fixture_text(const struct symbol_frames *frames, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < frames->count && used < size; i++) {
        const struct symbol_frame *frame = &frames->frames[i];
        const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
        used += (size_t)snprintf(text + used, size - used, "%s%s %s:%u%s", i ? "|" : "",
                                 frame->function ? frame->function : "?",
                                 slash         ? slash + 1
                                 : frame->file ? frame->file
                                               : "?",
                                 frame->line, frame->inlined ? " i" : "");
    }
}

/* Resolves one address of one file in the fixture's folder with a symbolizer of its own; warning
 * gets the first warning, or "". Paths that start with '/' are taken as they are. */
static inline void fixture_resolve(const char *program, const uint8_t *build_id, size_t id_size,
                                   const char *debug_folders, uint64_t offset, char text[4096],
                                   char warning[600]) {
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", program[0] == '/' ? "" : fixture_folder,
             program[0] == '/' ? "" : "/", program);
    struct symbolizer_options options = {.debug_folders = debug_folders, .threads = 2};
    struct symbolizer *symbolizer = symbolizer_open(&options, NULL);
    struct symbol_module module = {path, build_id, id_size};
    struct symbol_frames frames;
    assert_non_null(symbolizer);
    assert_int_equal(symbolizer_resolve(symbolizer, &module, offset, &frames), 0);
    fixture_text(&frames, text, 4096);
    const char *const *lines;
    size_t count = symbolizer_warnings(symbolizer, &lines);
    snprintf(warning, 600, "%s", count ? lines[0] : "");
    symbolizer_close(symbolizer);
}

#endif
