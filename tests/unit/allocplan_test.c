/* SPDX-License-Identifier: MIT */
/*
 * allocplan_test.c: the plan by which functions that allocate are led to the runtime, carried out
 * here: the test asks for a plan of itself, puts it in force, and sees that each function still
 * computes what it did, that each of its calls came by the entry, and that those which must not be
 * followed are not, for the right reason.
 */
#include "collect/allocators/allocators.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, FIRST = 5 };

typedef uint64_t function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

extern char test_enter[], test_resize[], test_leave[];
extern char call_second_returns[], call_memory_returns[], call_register_second_returns[];
extern uint64_t helper_saw;
extern char helper[];

/* As the runtime's: 256 bytes each. */
static struct site {
    uint64_t count;
    uint64_t original;
    uint64_t unused[30];
} sites[128] __attribute__((aligned(256)));
_Static_assert(sizeof(struct site) == 1 << MEMTRACE_SITE_SHIFT, "as the runtime's");

/* Functions that can be followed. `calls`: how often a call of it calls it, all in all. */
#define FOLLOWED(X)                                                                                \
    X(rip_load)                                                                                    \
    X(rip_immediate)                                                                               \
    X(rip_vector)                                                                                  \
    X(short_branch)                                                                                \
    X(two_branches)                                                                                \
    X(far_branch)                                                                                  \
    X(call_second)                                                                                 \
    X(call_register)                                                                               \
    X(call_register_second)                                                                        \
    X(call_memory)                                                                                 \
    X(pushes)                                                                                      \
    X(begins_with_endbr64)                                                                         \
    X(five_bytes)                                                                                  \
    X(tail_jump)                                                                                   \
    X(all_registers)                                                                               \
    X(reads_r11)                                                                                   \
    X(recursive)                                                                                   \
    X(switches)                                                                                    \
    X(compiled_hash)                                                                               \
    X(compiled_switch)
#define DECLARE(name) function name;
FOLLOWED(DECLARE)

uint64_t __attribute__((noinline))
compiled_hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    uint64_t hash = 0;
    const uint64_t all[] = {a, b, c, d, e, f};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        hash = hash * 31 + (all[i] ^ hash >> 7);
    }
    return hash;
}

uint64_t __attribute__((noinline))
compiled_switch(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    switch (a) {
    case 0:
        return b + c;
    case 1:
        return b * c;
    case 2:
        return d ^ e;
    case 3:
        return compiled_hash(f, e, d, c, b, a);
    case 4:
        return e - f;
    case 5:
        return 77;
    default:
        return a;
    }
}

/* What debug information says of arguments. */
void *__attribute__((noinline)) takes_pointer(void *pool, const char *name, size_t size);
void *takes_pointer(void *pool, const char *name, size_t size) {
    return name[size] != '\0' ? pool : NULL;
}
double __attribute__((noinline)) takes_double(double factor, unsigned short count);
double takes_double(double factor, unsigned short count) {
    return factor * count + (factor > 1);
}

static const struct {
    const char *name;
    function *function;
} followed[] = {
#define ENTRY(name) {#name, name},
    FOLLOWED(ENTRY)};
enum { FOLLOWED_COUNT = sizeof followed / sizeof followed[0], INPUTS = 7 };

/* What must not be followed as something that allocates, and a part of the line. */
static const struct {
    const char *name, *why;
    bool is_free_taken; /* it may be followed if its kind is FREE */
} refused[] = {
    {"too_short", "too short", false},
    {"short_jump_first", "too short", false},
    {"loops_to_start", "own", false},
    {"loops_behind_endbr64", "own", false},
    {"jumps_into", "jumps into its own first bytes", false},
    {"far_jumps_into", "jumps into", false},
    {"neighbour_enters", "neighbour jumps into", false},
    {"table_start", "table of jumps", false},
    {"stack_argument", "arguments on the stack", true},
    {"stack_argument_deep", "arguments on the stack", true},
    {"stack_argument_address", "arguments on the stack", true},
    {"stack_argument_behind", "arguments on the stack", true},
    {"returns_far", "arguments on the stack", true},
    {"own_return_address", "return address", true},
    {"pops_return_address", "return address", true},
    {"call_early", "calls another function", false},
    {"call_stack", "cannot be moved", false},
    {"counts_down", "jrcxz", false},
    {"unknown_instruction", "not known", false},
    {"another_begins", "begins_there begins", false},
    {"no_table", "unwind table", true},
    {"chosen", "IFUNC", false},
    {"there_is_none", "no function is called there_is_none", false},
};
enum { REFUSED_COUNT = sizeof refused / sizeof refused[0] };

/* ---- The plan ---- */

static char told[65536];

static void tell(const char *line) {
    strncat(told, line, sizeof told - strlen(told) - 2);
    strcat(told, "\n");
}

static uint8_t *plan_file; /* the newest one */

static void forget_plan(void) {
    free(plan_file);
    plan_file = NULL;
}

static const struct memtrace_plan *read_plan(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat status;
    const struct memtrace_plan *plan;
    uint64_t size;
    assert_int_equal(fstat(fd, &status), 0);
    size = (uint64_t)status.st_size;
    plan_file = malloc(size);
    assert_int_equal(read(fd, plan_file, size), size);
    close(fd);
    plan = (const struct memtrace_plan *)plan_file;
    assert_true(size >= sizeof *plan);
    assert_string_equal(plan->magic, MEMTRACE_PLAN_MAGIC);
    assert_true(size >= sizeof *plan + plan->site_count * sizeof plan->site[0]);
    for (uint32_t i = 0; i < plan->block_count; i++) {
        assert_true(plan->block[i].at + plan->block[i].size <= size);
        assert_int_equal(plan->block[i].address % PAGE, 0);
        assert_int_equal(plan->block[i].size % PAGE, 0);
    }
    return plan;
}

/* Asks for a plan of this process. NULL: there is none. */
static const struct memtrace_plan *ask(const char *specifications) {
    char path[] = "/tmp/allocplan_test.XXXXXX";
    const struct memtrace_plan *plan = NULL;
    struct error error;
    struct allocators_request request = {
        .pid = getpid(),
        .file = path,
        .entries = {(uintptr_t)test_enter, (uintptr_t)test_resize, (uintptr_t)test_leave},
        .sites = (uintptr_t)sites,
        .first = FIRST,
        .specifications = specifications,
        .tell = tell,
    };
    close(mkstemp(path));
    unlink(path);
    told[0] = '\0';
    if (allocators_plan(&request, &error) == 0) {
        plan = read_plan(path);
    } else {
        assert_int_not_equal(access(path, F_OK), 0);
        tell(error.message);
    }
    unlink(path);
    return plan;
}

static void put_blocks(const struct memtrace_plan *plan) {
    for (uint32_t i = 0; i < plan->block_count; i++) {
        const struct memtrace_plan_block *block = &plan->block[i];
        void *place = (void *)(uintptr_t)block->address; // NOLINT(performance-no-int-to-ptr)
        assert_ptr_equal(mmap(place, block->size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                         place);
        memcpy(place, plan_file + block->at, block->size);
        assert_int_equal(mprotect(place, block->size, PROT_READ | PROT_EXEC), 0);
    }
}

static void put_bytes(const struct memtrace_plan_site *site, const uint8_t *bytes) {
    uint8_t *at = (uint8_t *)(uintptr_t)site->address; // NOLINT(performance-no-int-to-ptr)
    uint8_t *page = at - (uintptr_t)at % PAGE;
    assert_int_equal(mprotect(page, (size_t)2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    memcpy(at, bytes, site->length);
    assert_int_equal(mprotect(page, (size_t)2 * PAGE, PROT_READ | PROT_EXEC), 0);
}

static void carry_out(const struct memtrace_plan *plan) {
    memset(sites, 0, sizeof sites);
    put_blocks(plan);
    for (uint32_t i = 0; i < plan->site_count; i++) {
        const struct memtrace_plan_site *site = &plan->site[i];
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        assert_memory_equal((void *)(uintptr_t)site->address, site->old, site->length);
        assert_true(site->length >= 5 && site->length <= MEMTRACE_PATCH_BYTES);
        sites[FIRST + i].original = site->original;
        put_bytes(site, site->new);
    }
}

static void take_back(const struct memtrace_plan *plan) {
    for (uint32_t i = 0; i < plan->site_count; i++) {
        put_bytes(&plan->site[i], plan->site[i].old);
    }
    for (uint32_t i = 0; i < plan->block_count; i++) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        munmap((void *)(uintptr_t)plan->block[i].address, plan->block[i].size);
    }
    forget_plan();
}

/* ---- Functions go on as they were ---- */

static uint64_t call(size_t number, uint64_t input) {
    return followed[number].function(input, input * 3 + 1, (uintptr_t)helper, input ^ 5, input + 9,
                                     input * 7);
}

static uint64_t count_of(const struct memtrace_plan *plan, function *wanted) {
    for (uint32_t i = 0; i < plan->site_count; i++) {
        if (plan->site[i].address - (uintptr_t)wanted <= 4) {
            return sites[FIRST + i].count;
        }
    }
    return UINT64_MAX;
}

static uint64_t calls_of(const char *name, uint64_t input) {
    return strcmp(name, "recursive") == 0 ? input + 1 : 1;
}

static void go_on(const char *ending) {
    char specifications[4096] = "";
    uint64_t before[FOLLOWED_COUNT][INPUTS];
    const struct memtrace_plan *plan;
    for (size_t i = 0; i < FOLLOWED_COUNT; i++) {
        strcat(strcat(specifications, followed[i].name), ending);
        for (uint64_t input = 0; input < INPUTS; input++) {
            before[i][input] = call(i, input);
        }
    }
    plan = ask(specifications);
    if (told[0] != '\0' || plan == NULL) {
        print_error("%s", told);
        fail();
        return;
    }
    assert_int_equal(plan->site_count, FOLLOWED_COUNT);
    carry_out(plan);
    for (size_t i = 0; i < FOLLOWED_COUNT; i++) {
        for (uint64_t input = 0; input < INPUTS; input++) {
            uint64_t count = count_of(plan, followed[i].function);
            helper_saw = 0;
            if (call(i, input) != before[i][input] ||
                count_of(plan, followed[i].function) != count + calls_of(followed[i].name, input)) {
                print_error("%s(%lu)%s\n", followed[i].name, input, ending);
                fail();
            }
            if (followed[i].function == call_second) {
                assert_int_equal(helper_saw, (uintptr_t)call_second_returns);
            } else if (followed[i].function == call_memory) {
                assert_int_equal(helper_saw, (uintptr_t)call_memory_returns);
            } else if (followed[i].function == call_register_second) {
                assert_int_equal(helper_saw, (uintptr_t)call_register_second_returns);
            }
        }
    }
    take_back(plan);
}

static void test_enter_goes_on(void **state) {
    (void)state;
    go_on("(size=1)=alloc\n");
}

static void test_resize_goes_on(void **state) {
    (void)state;
    go_on("(old=1,size=2)=realloc\n");
}

static void test_leave_goes_on(void **state) {
    (void)state;
    go_on("=free\n");
}

/* ---- Functions that stay as they are ---- */

static void expect_refused(size_t number, const char *ending) {
    char specification[128];
    snprintf(specification, sizeof specification, "%s%s", refused[number].name, ending);
    if (ask(specification) != NULL || strstr(told, refused[number].name) == NULL ||
        strstr(told, refused[number].why) == NULL) {
        print_error("%s: %s", specification, told);
        fail();
    }
}

static void test_refused(void **state) {
    const struct memtrace_plan *plan;
    char specification[128];
    (void)state;
    for (size_t i = 0; i < REFUSED_COUNT; i++) {
        expect_refused(i, "(size=1)=alloc");
        expect_refused(i, "(old=1,size=1)=realloc");
        if (!refused[i].is_free_taken) {
            expect_refused(i, "=free");
            continue;
        }
        snprintf(specification, sizeof specification, "%s=free", refused[i].name);
        plan = ask(specification);
        if (plan == NULL) {
            print_error("%s", told);
            fail();
            return;
        }
        assert_int_equal(plan->site_count, 1);
        forget_plan();
    }
}

static void test_arguments(void **state) {
    static const struct {
        const char *specification, *why;
    } cases[] = {
        {"takes_pointer(size=1)=alloc", "size=1: its argument 1 (pool) is a pointer"},
        {"takes_pointer(size=3*2)=alloc", "size=2: its argument 2 (name) is a pointer"},
        {"takes_pointer(size=4)=alloc", "size=4: it has 3 arguments"},
        {"takes_pointer(size=3,align=1)=alloc", "align=1"},
        {"takes_pointer(size=3,old=4)=realloc", "old=4: it has 3 arguments"},
        {"takes_pointer(ptr=5)=free", "ptr=5: it has 3 arguments"},
        {"takes_pointer(size=3)=alloc", NULL},
        {"takes_pointer(ptr=2)=free", NULL},
        {"takes_double(size=1)=alloc", NULL},
        {"takes_double(size=2)=alloc", "size=2: it has 1 argument"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct memtrace_plan *plan = ask(cases[i].specification);
        if ((plan != NULL) != (cases[i].why == NULL) ||
            (cases[i].why != NULL && strstr(told, cases[i].why) == NULL)) {
            print_error("%s: %s", cases[i].specification, told);
            fail();
        }
        forget_plan();
    }
}

/* ---- What the plan says ---- */

static void test_sites(void **state) {
    const struct memtrace_plan *plan =
        ask("pushes(size=2*3,align=4)=zalloc:numbers\nanother_name(size=1)=alloc\n"
            "all_registers(ptr=1,size=6)=alloc:heap\nfar_branch(old=5,size=2)=realloc\n"
            "nonsense\ncompiled_hash=reset:numbers\ncall_*cond=free");
    const struct memtrace_plan_site *site;
    (void)state;
    assert_non_null(plan);
    assert_non_null(strstr(told, "\"nonsense\""));
    assert_non_null(strstr(told, "another_name is followed already"));
    assert_int_equal(plan->site_count, 6); /* another_name is pushes; a pattern has two */
    site = &plan->site[0];
    assert_int_equal(site->address, (uintptr_t)pushes);
    assert_int_equal(site->signature.kind, MEMTRACE_ALLOCATOR_ZALLOC);
    assert_int_equal(site->signature.size, 2);
    assert_int_equal(site->signature.times, 3);
    assert_int_equal(site->signature.align, 4);
    assert_string_equal(site->pool, "numbers");
    site = &plan->site[1];
    assert_int_equal(site->signature.pointer, 1);
    assert_int_equal(site->signature.size, 6);
    assert_true(site->signature.is_heap);
    assert_string_equal(site->pool, "");
    site = &plan->site[2];
    assert_int_equal(site->signature.old_block, 5);
    assert_string_equal(site->pool, "far_branch");
    assert_int_equal(plan->site[3].signature.kind, MEMTRACE_ALLOCATOR_RESET);
    assert_int_equal(plan->site[4].signature.kind, MEMTRACE_ALLOCATOR_FREE);
    assert_int_equal(plan->site[4].signature.pointer, 1);
    forget_plan();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enter_goes_on), cmocka_unit_test(test_resize_goes_on),
        cmocka_unit_test(test_leave_goes_on), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_arguments),     cmocka_unit_test(test_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
