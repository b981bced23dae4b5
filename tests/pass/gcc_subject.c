/* SPDX-License-Identifier: MIT */
/*
 * gcc_subject.c: C and GNU C with odd frames, odd calls and odd jumps, for gcc_pass.py. Each
 * function calls what allocates and prints what it computed. The names are those that the script
 * asks for in the pass report.
 */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static void *volatile kept;

NOINLINE int allocates(int n) {
    kept = malloc((size_t)(n & 31) + 1);
    free(kept);
    return n + 1;
}

int (*volatile pointer)(int) = allocates;

NOINLINE int by_pointer(int n) {
    return pointer(n) * 2;
}

/* What cannot allocate. */

NOINLINE static int even(int n);

NOINLINE static int odd(int n) {
    return n == 0 ? 0 : even(n - 1) + 1;
}

NOINLINE static int even(int n) {
    return n == 0 ? 1 : odd(n - 1) * 2;
}

NOINLINE static size_t text_work(const char *text) {
    return strlen(text) + (strchr(text, 'x') ? 1 : 0);
}

NOINLINE int calls_harmless(const char *text) {
    return (int)text_work(text) + even(9);
}

__attribute__((memtrace_no_alloc)) int promised(int n);

NOINLINE int calls_promised(int n) {
    return promised(n) + 1;
}

__attribute__((no_instrument_function)) NOINLINE int not_instrumented(int n) {
    return allocates(n) + 1;
}

NOINLINE int excluded(int n) {
    return allocates(n) + 1;
}

/* What can be replaced when the program is linked or loaded. */

__attribute__((weak)) NOINLINE int weak_leaf(int n) {
    return n + 3;
}

NOINLINE int calls_weak(int n) {
    return weak_leaf(n) + 1;
}

NOINLINE static int chosen_leaf(int n) {
    return n + 4;
}

static int (*choose(void))(int) {
    return chosen_leaf;
}

int resolved(int n) __attribute__((ifunc("choose")));

NOINLINE int calls_resolved(int n) {
    return resolved(n) + 1;
}

static int other_name(int n) __attribute__((alias("allocates"), copy(allocates)));

NOINLINE int calls_alias(int n) {
    return other_name(n) + 1;
}

/* The library has a function by this name; this one is ours. */
int significand_of(int n) __asm__("basename_of");
NOINLINE int significand_of(int n) {
    return allocates(n);
}

/* Odd frames. */

NOINLINE int variable_length(int n) {
    int values[n];
    int sum = 0;
    for (int i = 0; i < n; i++) {
        values[i] = allocates(i);
    }
    for (int i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum;
}

NOINLINE int on_stack(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        char *more = alloca((size_t)(n + i));
        memset(more, i, (size_t)(n + i));
        sum += allocates(more[i]);
    }
    return sum;
}

NOINLINE int realigned(int n) {
    _Alignas(64) volatile int line[16] = {n};
    line[3] = allocates(line[0]);
    return line[3] + (int)((unsigned long)line % 64);
}

NOINLINE int large_frame(int n) {
    volatile char room[100000];
    room[n] = (char)n;
    return allocates(room[n]);
}

NOINLINE int variadic(int count, ...) {
    va_list arguments;
    int sum = 0;
    va_start(arguments, count);
    for (int i = 0; i < count; i++) {
        sum += allocates(va_arg(arguments, int));
    }
    va_end(arguments);
    return sum;
}

struct large {
    int values[20];
};

NOINLINE struct large returned(int n) {
    struct large result = {{n, allocates(n)}};
    return result;
}

NOINLINE int stack_arguments(struct large a, int b, int c, int d, int e, int f, int g, int h,
                             int i) {
    return a.values[1] + allocates(b) + c + d + e + f + g + h + allocates(i);
}

/* Odd jumps. */

NOINLINE int tail_call(int n) {
    return n > 100 ? n : pointer(n + 1);
}

NOINLINE int recursive(int n) {
    return n <= 0 ? 0 : recursive(n - 1) + (n % 7 == 0 ? allocates(n) : 1);
}

NOINLINE int computed_goto(const unsigned char *program) {
    static const void *const labels[] = {&&add, &&allocate, &&harmless, &&end};
    int value = 0;
    goto *labels[*program];
add:
    value += 2;
    goto *labels[*++program];
allocate:
    value = allocates(value);
    goto *labels[*++program];
harmless:
    value += even(value & 7);
    goto *labels[*++program];
end:
    return value;
}

NOINLINE int switches(int n) {
    switch (n) {
    case 0:
        return 5;
    case 1:
        return allocates(1);
    case 2:
        return even(4);
    case 3:
        return allocates(3) + allocates(4);
    case 4:
        return n * 7;
    case 5:
        n++;
        break;
    case 6:
        return by_pointer(6);
    default:
        return -1;
    }
    return allocates(n);
}

static jmp_buf place;

NOINLINE static void jumps(int n) {
    if (n == 0) {
        longjmp(place, allocates(6));
    }
    jumps(n - 1);
    kept = NULL;
}

NOINLINE int returns_twice(int n) {
    volatile int before = allocates(n);
    int value = setjmp(place);
    if (value == 0) {
        jumps(n);
    }
    return before + value + allocates(value);
}

NOINLINE int nested(int n) {
    __label__ out;
    int sum = n;
    int add(int m) {
        sum += allocates(m);
        if (sum > 40) {
            goto out;
        }
        return sum;
    }
    int (*volatile call)(int) = add;
    for (;;) {
        call(n);
    }
out:
    return sum + allocates(sum);
}

NOINLINE int cleaned_up(int n) {
    void done(int *value) {
        *value = allocates(*value);
    }
    __attribute__((cleanup(done))) int value = n;
    return value + allocates(n);
}

__attribute__((used)) int from_assembly(int n) {
    return allocates(n);
}

/* No call that the compiler sees: the frame may be below the stack pointer. */
NOINLINE int assembly_only(int n) {
    int result;
    __asm__ volatile("mov %%rsp, %%rbx; lea -128(%%rsp), %%rsp; and $-16, %%rsp\n\t"
                     "call from_assembly; mov %%rbx, %%rsp"
                     : "=a"(result), "+D"(n)
                     :
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

__attribute__((naked, used)) void keeps_registers(void);
__attribute__((naked)) void keeps_registers(void) {
    __asm__(
        "push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; push %r10\n\t"
        "push %r11; push %rbx; mov %rsp, %rbx; and $-16, %rsp; call from_assembly\n\t"
        "mov %rbx, %rsp; pop %rbx; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi; pop %rsi\n\t"
        "pop %rdx; pop %rcx; pop %rax; ret");
}

/* A plain statement beside a call that never allocates: its word must be fresh. */
NOINLINE int assembly_plain(int n) {
    n += even(n & 3);
    __asm__ volatile("call keeps_registers");
    return n + even(n & 7);
}

NOINLINE int assembly_goto(int n) {
    __asm__ goto("testl %0, %0; js %l1" : : "r"(n) : "cc" : negative);
    return allocates(n) + 1;
negative:
    return allocates(-n) + 2;
}

NOINLINE int applied(int n) {
    void *arguments = __builtin_apply_args();
    void *result = __builtin_apply((void (*)())allocates, arguments, 64);
    n += 1;
    __builtin_return(result);
}

__attribute__((naked, used)) int bare(int n);
__attribute__((naked)) int bare(int n) {
    __asm__("sub $8, %rsp; call from_assembly; add $8, %rsp; ret");
}

__attribute__((constructor)) static void at_start(void) {
    printf("start %d\n", allocates(1));
}

__attribute__((memtrace_no_alloc)) NOINLINE int promised(int n) {
    return n > 1000 ? allocates(n) : n;
}

int main(void) {
    static const unsigned char program[] = {0, 1, 2, 0, 1, 2, 3};
    printf("%d %d %d\n", by_pointer(3), calls_harmless("text"), calls_promised(4));
    printf("%d %d\n", not_instrumented(3), excluded(4));
    printf("%d %d %d %d\n", calls_weak(1), calls_resolved(2), calls_alias(3), significand_of(4));
    printf("%d %d %d %d\n", variable_length(7), on_stack(9), realigned(3), large_frame(77));
    printf("%d %d\n", variadic(3, 10, 20, 30), returned(9).values[1]);
    printf("%d\n", stack_arguments(returned(1), 1, 2, 3, 4, 5, 6, 7, 8));
    printf("%d %d %d\n", tail_call(5), recursive(50), computed_goto(program));
    for (int i = 0; i < 8; i++) {
        printf("%d ", switches(i));
    }
    printf("\n%d %d %d\n", returns_twice(5), nested(9), cleaned_up(4));
    printf("%d %d %d %d %d %d\n", assembly_only(3), assembly_plain(2), assembly_goto(4),
           assembly_goto(-4), applied(5), bare(6));
    return 0;
}
