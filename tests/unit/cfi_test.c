/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/cfi.c: every row of libc's and libstdc++'s unwind tables, and our own, as
 * readelf prints them. */
#include "runtime/stack/cfi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RBP = 6, RSP = 7, COLUMNS = 24 };

struct object {
    const char *part; /* of its name */
    char path[1024];
    uintptr_t bias;
    const uint8_t *eh_frame_header;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct object *object = argument;
    const char *name = info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe";
    (void)size;
    if (strstr(name, object->part) == NULL) {
        return 0;
    }
    snprintf(object->path, sizeof object->path, "%s", name);
    object->bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            object->eh_frame_header =
                (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    return 1;
}

/* One row as readelf shows it: texts such as "rsp+16", "c-8", "u", "exp". */
struct row {
    uintptr_t at;
    char cfa[24], fp[24], ra[24];
};

static void check_place(const char *text, const struct cfi_register *reg, int is_ra) {
    if (text[0] == 'c') {
        assert_int_equal(reg->place, CFI_OFFSET);
        assert_int_equal(reg->offset, strtol(text + 1, NULL, 10));
    } else if (strcmp(text, "exp") == 0) {
        assert_int_equal(reg->place, CFI_EXPRESSION);
    } else if (is_ra && strcmp(text, "u") == 0) {
        assert_int_equal(reg->place, CFI_UNDEFINED);
    } else if (strcmp(text, "u") == 0) {
        assert_true(reg->place == CFI_UNCHANGED || reg->place == CFI_UNDEFINED);
    }
}

static void check_row(const struct object *object, const struct row *expected) {
    struct cfi_row row;
    if (cfi_find(object->eh_frame_header, object->bias + expected->at, &row) != 0) {
        fail_msg("%s: no row at 0x%" PRIxPTR, object->path, expected->at);
    }
    if (row.signal_frame) {
        return; /* stepped by the kernel's layout */
    }
    if (strcmp(expected->cfa, "exp") == 0) {
        assert_non_null(row.cfa_expression);
    } else if (strncmp(expected->cfa, "rsp", 3) == 0 || strncmp(expected->cfa, "rbp", 3) == 0) {
        assert_null(row.cfa_expression);
        assert_int_equal(row.cfa_register, expected->cfa[1] == 's' ? RSP : RBP);
        assert_int_equal(row.cfa_offset, strtol(expected->cfa + 3, NULL, 10));
    }
    check_place(expected->fp, &row.frame_pointer, 0);
    check_place(expected->ra, &row.return_address, 1);
}

/* Reads "LOC CFA rbx rbp ra" heads and the rows under them. Returns how many rows were checked. */
static size_t check_dump(const struct object *object, FILE *dump) {
    char line[1024], name[COLUMNS][24];
    struct row row = {0};
    uintptr_t end = 0;
    size_t columns = 0, checked = 0;
    int in_fde = 0, pending = 0;
    while (fgets(line, sizeof line, dump) != NULL) {
        const char *pc = strstr(line, " pc=");
        char word[COLUMNS][24];
        struct row next = {.fp = "u", .ra = "u"};
        size_t words = 0;
        char *save = NULL;
        if (pc != NULL || strstr(line, " CIE ") != NULL) {
            if (pending) {
                check_row(object, &row);
                checked++;
            }
            pending = 0;
            in_fde = pc != NULL;
            end = in_fde ? strtoull(strstr(pc, "..") + 2, NULL, 16) : 0;
            continue;
        }
        for (char *w = strtok_r(line, " \n", &save); w != NULL && words < COLUMNS;
             w = strtok_r(NULL, " \n", &save)) {
            snprintf(word[words++], sizeof word[0], "%s", w);
        }
        if (words != 0 && strcmp(word[0], "LOC") == 0) {
            memcpy(name, word, sizeof name);
            columns = words;
            continue;
        }
        if (!in_fde || words != columns || words < 2 || strlen(word[0]) != 16) {
            continue;
        }
        next.at = strtoull(word[0], NULL, 16);
        snprintf(next.cfa, sizeof next.cfa, "%s", word[1]);
        for (size_t i = 2; i < words; i++) {
            if (strcmp(name[i], "rbp") == 0) {
                snprintf(next.fp, sizeof next.fp, "%s", word[i]);
            } else if (strcmp(name[i], "ra") == 0) {
                snprintf(next.ra, sizeof next.ra, "%s", word[i]);
            }
        }
        if (pending && row.at != next.at) { /* of several rows for one place the last one holds */
            check_row(object, &row);
            checked++;
        }
        row = next;
        pending = next.at < end;
    }
    if (pending) {
        check_row(object, &row);
        checked++;
    }
    return checked;
}

static void check_object(const char *part, size_t least) {
    struct object object = {.part = part};
    char command[PATH_MAX + 200], own[PATH_MAX];
    FILE *dump;
    size_t checked;
    assert_int_equal(dl_iterate_phdr(find_object, &object), 1);
    assert_non_null(object.eh_frame_header);
    assert_non_null(realpath(object.path, own)); /* /proc/self is the shell's in the command */
    snprintf(command, sizeof command, "readelf --wide --debug-dump=frames-interp '%s' 2>/dev/null",
             own);
    dump = popen(command, "r");
    assert_non_null(dump);
    checked = check_dump(&object, dump);
    pclose(dump);
    if (checked < least) {
        fail_msg("%s: only %zu rows", object.path, checked);
    }
}

#if defined(__x86_64__)
/* A CFA of each form after an expression, which compilers seldom write; own_program() reads it. */
__asm__(".text\n"
        ".type cfa_forms, @function\n"
        "cfa_forms: .cfi_startproc\n"
        "nop; .cfi_escape 0x0f, 2, 0x77, 8\n" /* def_cfa_expression: rsp + 8 */
        "nop; .cfi_escape 0x0c, 7, 24\n"      /* def_cfa: rsp + 24 */
        "nop; .cfi_escape 0x0f, 2, 0x77, 8\n"
        "nop; .cfi_escape 0x0d, 6\n" /* def_cfa_register: rbp + 24 */
        "nop; .cfi_escape 0x0f, 2, 0x77, 8\n"
        "nop; .cfi_escape 0x12, 7, 0x7e\n" /* def_cfa_sf: rsp + -2 * -8 */
        "nop; .cfi_escape 0x13, 0x7c\n"    /* def_cfa_offset_sf: rsp + -4 * -8 */
        "nop; ret; .cfi_endproc\n"
        ".size cfa_forms, . - cfa_forms\n");
#endif

static void own_program(void **state) {
    (void)state;
    check_object("/proc/self/exe", 100);
}

static void libc(void **state) {
    (void)state;
    check_object("libc.so.6", 10000);
}

static void libstdcxx(void **state) {
    (void)state;
    if (dlopen("libstdc++.so.6", RTLD_NOW) == NULL) {
        skip();
    }
    check_object("libstdc++.so", 10000);
}

static void nothing_outside(void **state) {
    struct object object = {.part = "libc.so.6"};
    struct cfi_row row;
    (void)state;
    assert_int_equal(dl_iterate_phdr(find_object, &object), 1);
    assert_int_equal(cfi_find(object.eh_frame_header, object.bias, &row), -1);
    assert_int_equal(cfi_find(object.eh_frame_header, 0, &row), -1);
    assert_int_equal(cfi_find(object.eh_frame_header, UINTPTR_MAX / 2, &row), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(own_program),
        cmocka_unit_test(libc),
        cmocka_unit_test(libstdcxx),
#endif
        cmocka_unit_test(nothing_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
