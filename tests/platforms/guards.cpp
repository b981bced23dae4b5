/* SPDX-License-Identifier: MIT */
/*
 * guards.cpp: AArch64's guards (runtime/machine/aarch64_guards.S, linked in) by themselves.
 *
 *  - What returns by a guard finds each register and flag as it was, and in x30 what a return
 *    without the guard leaves there; also in code that asks for landing pads (BTI).
 *  - The compiler's unwinder finds its way past a guard: from a return slot that holds it, signed
 *    (PAC) or not, by an exception, and from a handler that has interrupted either instruction.
 *
 * A line tells what was done; status 1: what was not right.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define KEPT    __attribute__((noinline, noclone))
#define SIGNING __attribute__((noinline, noclone, target("branch-protection=pac-ret")))

extern "C" {
uintptr_t guard_for(uintptr_t pc);
}

namespace {

void fail(const char *why, unsigned long number) {
    fprintf(stderr, "%s (%#lx)\n", why, number);
    _exit(1);
}

/* --- registers ----------------------------------------------------------------------------------
 */

struct Registers {
    uint64_t x[31]; /* x30: in, the guard; out, what is in it then */
    uint64_t nzcv;
    uint64_t v[32][2];
};

} // namespace

/* A page of its own. all_by_guard(): fills all registers, returns by x30 to behind itself, and
 * tells in the other argument what is in them then. jump_behind() does so by br. */
__asm__(R"(
    .pushsection .text.landing, "ax", %progbits
    .balign 4096
    .globl  landing, landing_end, all_by_guard, jump_behind, behind
landing:
    .type   all_by_guard, %function
all_by_guard:
    .cfi_startproc
    hint    #34
    stp     x29, x30, [sp, #-112]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     x1, x18, [sp, #96]
    sub     sp, sp, #64
    stp     d8, d9, [sp]
    stp     d10, d11, [sp, #16]
    stp     d12, d13, [sp, #32]
    stp     d14, d15, [sp, #48]
    mov     x30, x0
    ldr     x0, [x30, #248]
    msr     nzcv, x0
    .irp    n, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
    add     x1, x30, #(256 + 16 * \n)
    ldr     q\n, [x1]
    .endr
    .irp    n, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
    add     x1, x30, #(256 + 16 * \n)
    ldr     q\n, [x1]
    .endr
    ldp     x0, x1, [x30]
    ldp     x2, x3, [x30, #16]
    ldp     x4, x5, [x30, #32]
    ldp     x6, x7, [x30, #48]
    ldp     x8, x9, [x30, #64]
    ldp     x10, x11, [x30, #80]
    ldp     x12, x13, [x30, #96]
    ldp     x14, x15, [x30, #112]
    ldp     x16, x17, [x30, #128]
    ldp     x18, x19, [x30, #144]
    ldp     x20, x21, [x30, #160]
    ldp     x22, x23, [x30, #176]
    ldp     x24, x25, [x30, #192]
    ldp     x26, x27, [x30, #208]
    ldp     x28, x29, [x30, #224]
    ldr     x30, [x30, #240]
    ret
behind:
    stp     x0, x1, [sp, #-16]!
    ldr     x0, [sp, #(16 + 64 + 96)]
    stp     x2, x3, [x0, #16]
    stp     x4, x5, [x0, #32]
    stp     x6, x7, [x0, #48]
    stp     x8, x9, [x0, #64]
    stp     x10, x11, [x0, #80]
    stp     x12, x13, [x0, #96]
    stp     x14, x15, [x0, #112]
    stp     x16, x17, [x0, #128]
    stp     x18, x19, [x0, #144]
    stp     x20, x21, [x0, #160]
    stp     x22, x23, [x0, #176]
    stp     x24, x25, [x0, #192]
    stp     x26, x27, [x0, #208]
    stp     x28, x29, [x0, #224]
    str     x30, [x0, #240]
    ldp     x2, x3, [sp], #16
    stp     x2, x3, [x0]
    mrs     x2, nzcv
    str     x2, [x0, #248]
    .irp    n, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
    add     x1, x0, #(256 + 16 * \n)
    str     q\n, [x1]
    .endr
    .irp    n, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
    add     x1, x0, #(256 + 16 * \n)
    str     q\n, [x1]
    .endr
    ldp     d8, d9, [sp]
    ldp     d10, d11, [sp, #16]
    ldp     d12, d13, [sp, #32]
    ldp     d14, d15, [sp, #48]
    add     sp, sp, #64
    ldr     x18, [sp, #104]
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp], #112
    ret
    .cfi_endproc
    .type   jump_behind, %function
jump_behind:
    hint    #34
    adr     x9, behind
    br      x9
    .balign 4096
landing_end:
    .popsection
)");

extern "C" {
extern char landing[], landing_end[], behind[];
void all_by_guard(const Registers *in, Registers *out);
void jump_behind();
}

namespace {

Registers out;

void keeps_all_registers() {
    Registers in;
    for (size_t i = 0; i < sizeof in / sizeof in.nzcv; i++) {
        reinterpret_cast<uint64_t *>(&in)[i] = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
    }
    for (uint64_t flags = 0; flags < 16; flags++) {
        in.nzcv = flags << 28;
        in.x[30] = guard_for(reinterpret_cast<uintptr_t>(behind));
        memset(&out, 0, sizeof out);
        all_by_guard(&in, &out);
        in.x[30] = reinterpret_cast<uintptr_t>(behind);
        for (size_t i = 0; i < sizeof in / sizeof in.nzcv; i++) {
            if (reinterpret_cast<uint64_t *>(&in)[i] != reinterpret_cast<uint64_t *>(&out)[i]) {
                fail("a register is not what it was", i);
            }
        }
    }
}

/* Whether the landing page asks for landing pads from now on, which is tried. */
bool ask_for_landing_pads() {
    enum { WITH_BTI = 0x10 };
    int status;
    if ((getauxval(AT_HWCAP2) & (1 << 17)) == 0) {
        return false;
    }
    if (mprotect(landing, static_cast<size_t>(landing_end - landing),
                 PROT_READ | PROT_EXEC | WITH_BTI) != 0) {
        fail("no page with BTI", 0);
    }
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {};
        setrlimit(RLIMIT_CORE, &no_core);
        jump_behind();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGILL) {
        fail("a jump needs no landing pad", static_cast<unsigned long>(status));
    }
    return true;
}

/* --- unwinding ----------------------------------------------------------------------------------
 */

struct Path {
    uintptr_t frame[64];
    size_t count;
};

_Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument) {
    auto *path = static_cast<Path *>(argument);
    if (path->count == sizeof path->frame / sizeof path->frame[0]) {
        return _URC_END_OF_STACK;
    }
    path->frame[path->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

uintptr_t guard; /* that comes to be met */
size_t met;

/* That the path, from its second frame after `pc` on, is this one; a guard between the two, or
 * none.
 */
void expect(const Path &path, uintptr_t pc, const Path &rest, const char *where) {
    size_t at = 0;
    while (at < path.count && path.frame[at] != pc) {
        at++;
    }
    if (at++ == path.count || path.count - at < rest.count ||
        memcmp(path.frame + path.count - rest.count, rest.frame,
               rest.count * sizeof rest.frame[0]) != 0 ||
        path.count - at != rest.count) {
        for (size_t i = 0; i < path.count; i++) {
            fprintf(stderr, " %#lx", path.frame[i]);
        }
        fail(where, pc);
    }
    met++;
}

Path beyond; /* from the caller of what is called next on */

KEPT void look_from_here() {
    Path path = {};
    _Unwind_Backtrace(add_frame, &path);
    for (size_t i = 0; i < path.count; i++) {
        if (path.frame[i] == guard) {
            expect(path, guard, beyond, "not past the guard in a return slot");
            return;
        }
    }
    fail("no guard in a return slot", guard);
}

bool throws;

KEPT void plain_function() {
    look_from_here();
    if (throws) {
        throw 7;
    }
}

SIGNING void signing_function() {
    look_from_here();
    if (throws) {
        throw 7;
    }
}

} // namespace

/* by_jump(function): jumps to the function, which returns by a guard to our caller. trap(): is
 * interrupted, with what called it in x30. */
__asm__(R"(
    .text
    .globl  by_jump, trap, trap_at
    .type   by_jump, %function
by_jump:
    .cfi_startproc
    stp     x0, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x30, -8
    mov     x0, x30
    bl      note_guard
    ldp     x16, x30, [sp], #16
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    mov     x30, x0
    br      x16
    .cfi_endproc
    .type   trap, %function
trap:
    .cfi_startproc
trap_at:
    brk     #0
    ret
    .cfi_endproc
)");

extern "C" {
extern char trap_at[];
void by_jump(void (*function)());
void trap();

/* The guard for the caller's address, from where on the path is known, too. */
uintptr_t note_guard(uintptr_t pc) {
    Path path = {};
    size_t at = 0;
    _Unwind_Backtrace(add_frame, &path);
    while (at < path.count && path.frame[at] != pc) {
        at++;
    }
    if (at == path.count) {
        fail("the caller is not there", pc);
    }
    beyond.count = path.count - at;
    memcpy(beyond.frame, path.frame + at, beyond.count * sizeof beyond.frame[0]);
    guard = guard_for(pc);
    return guard;
}
}

namespace {

KEPT void in_between(void (*function)()) {
    by_jump(function);
    met++; /* came back */
}

KEPT void past_slots(void (*function)()) {
    throws = false;
    in_between(function);
    throws = true;
    try {
        in_between(function);
        fail("nothing was thrown", 0);
    } catch (int value) {
        met += value == 7;
    }
}

/* A handler that has interrupted one of the guard's instructions, as its signal frame has it; then
 * it goes on there. */
void handle(int, siginfo_t *, void *argument) {
    auto *context = static_cast<ucontext_t *>(argument);
    mcontext_t *at = &context->uc_mcontext;
    uintptr_t caller = at->regs[30];
    Path path = {};
    _Unwind_Backtrace(add_frame, &path);
    size_t i = 0;
    while (i < path.count && path.frame[i] != caller) {
        i++;
    }
    beyond.count = path.count - i;
    memcpy(beyond.frame, path.frame + i, beyond.count * sizeof beyond.frame[0]);
    guard = guard_for(caller);
    at->pc = guard + 4;
    path.count = 0;
    _Unwind_Backtrace(add_frame, &path);
    expect(path, guard + 4, beyond, "not past the guard's second instruction");
    at->pc = at->regs[30] = guard;
    path.count = 0;
    _Unwind_Backtrace(add_frame, &path);
    expect(path, guard, beyond, "not past the guard's first instruction");
}

KEPT void past_instructions() {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, nullptr);
    trap();
    met++;
}

} // namespace

int main() {
    bool pads = ask_for_landing_pads(); /* first: qemu keeps what it has translated before */
    keeps_all_registers();
    for (int i = 0; i < 100; i++) { /* other addresses, other signatures */
        past_slots(plain_function);
        past_slots(signing_function);
        past_instructions();
    }
    if (met != 100 * (4 + 4 + 3)) {
        fail("not all came back", met);
    }
    printf("registers kept%s, unwound past guards, %s\n", pads ? ", also with landing pads" : "",
           (getauxval(AT_HWCAP) & (1 << 30)) != 0 ? "signed ones, too" : "none of them signed");
    return 0;
}
