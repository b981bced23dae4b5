// SPDX-License-Identifier: MIT
// Which code is reached: compilers call this function at the start of each block of a build with
// MEMTRACE_COVERAGE
// (-fsanitize-coverage=trace-pc). It sets the block's byte in a file that is shared memory,
// MEMTRACE_REACH/BUILD-ID, so nothing is to be written when a process ends, by whatever end: exit,
// _exit, exec, a signal. One of it is in each program and in each shared library, with a file for
// each. scripts/coverage reads and removes the files. It runs in any state of a program, the
// runtime's own code too: no library, no vector register, no lock, no errno.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if !defined(__x86_64__)
#error "MEMTRACE_COVERAGE is for x86-64"
#endif

#define OURS                                                                                       \
    __attribute__((no_sanitize_coverage, no_profile_instrument_function, no_instrument_function,   \
                   target("general-regs-only")))

extern const char start_of_module[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
void __sanitizer_cov_trace_pc(void) __attribute__((visibility("hidden")));

static unsigned char *reached; // a byte for each byte of the module up to the end of its code
static uintptr_t reached_bytes;
static unsigned char tried;

OURS static long call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// The hexadecimal digits of the build id go to `to`. Returns false if there is none.
OURS static int put_build_id(const char *note, uintptr_t size_bytes, char *to) {
    for (uintptr_t at = 0; at + sizeof(ElfW(Nhdr)) <= size_bytes;) {
        const ElfW(Nhdr) *header = (const void *)(note + at);
        const unsigned char *id =
            (const void *)(note + at + sizeof *header + ((header->n_namesz + 3U) & ~3U));
        if (header->n_type == NT_GNU_BUILD_ID && header->n_descsz == 20) {
            for (int i = 0; i < 20; i++) {
                *to++ = "0123456789abcdef"[id[i] >> 4];
                *to++ = "0123456789abcdef"[id[i] & 15];
            }
            *to = 0;
            return 1;
        }
        at += sizeof *header + ((header->n_namesz + 3U) & ~3U) + ((header->n_descsz + 3U) & ~3U);
    }
    return 0;
}

OURS static void map_file(void) {
    const ElfW(Ehdr) *header = (const void *)start_of_module;
    const ElfW(Phdr) *segments = (const void *)(start_of_module + header->e_phoff);
    char path[sizeof MEMTRACE_REACH + 1 + 40] = MEMTRACE_REACH "/";
    uintptr_t end = 0;
    int named = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X))
            end = segments[i].p_vaddr + segments[i].p_memsz;
        if (segments[i].p_type == PT_NOTE && !named)
            named = put_build_id(start_of_module + segments[i].p_vaddr, segments[i].p_memsz,
                                 path + sizeof MEMTRACE_REACH);
    }
    if (!named)
        return;
    long file = call(SYS_open, (long)path, O_RDWR | O_CREAT | O_CLOEXEC, 0666, 0, 0, 0);
    if (file < 0)
        return;
    call(SYS_fchmod, file, 0666, 0, 0, 0, 0); // tests run programs as other users
    if (call(SYS_ftruncate, file, (long)end, 0, 0, 0, 0) == 0) {
        long at = call(SYS_mmap, 0, (long)end, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at > 0) {
            reached_bytes = end;
            __atomic_store_n(&reached, (unsigned char *)at, __ATOMIC_RELEASE);
        }
    }
    call(SYS_close, file, 0, 0, 0, 0, 0);
}

OURS void __sanitizer_cov_trace_pc(void) {
    unsigned char *map = __atomic_load_n(&reached, __ATOMIC_ACQUIRE);
    if (!map && !__atomic_exchange_n(&tried, 1, __ATOMIC_ACQ_REL)) {
        map_file();
        map = __atomic_load_n(&reached, __ATOMIC_ACQUIRE);
    }
    uintptr_t offset = (uintptr_t)__builtin_return_address(0) - (uintptr_t)start_of_module;
    if (map && offset < reached_bytes)
        map[offset] = 1;
}
