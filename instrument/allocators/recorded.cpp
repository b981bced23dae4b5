/* SPDX-License-Identifier: MIT */
/* recorded.cpp: see recorded.h. */
#include "instrument/allocators/recorded.h"

#include "instrument/allocators/wanted.h"

extern "C" {
#include "collect/allocators/allocrecorded.h"
}

#include <cstdio>
#include <unordered_set>
#include <vector>

namespace {

/* The kin of malloc, whose blocks are counted by themselves. */
const std::unordered_set<std::string> kin = {"malloc",
                                             "calloc",
                                             "realloc",
                                             "reallocarray",
                                             "aligned_alloc",
                                             "memalign",
                                             "posix_memalign",
                                             "valloc",
                                             "pvalloc",
                                             "strdup",
                                             "strndup",
                                             "__strdup",
                                             "__strndup",
                                             "wcsdup",
                                             "asprintf",
                                             "vasprintf",
                                             "getline",
                                             "getdelim",
                                             "realpath",
                                             "open_memstream",
                                             "_Znwm",
                                             "_Znam",
                                             "_ZnwmRKSt9nothrow_t",
                                             "_ZnamRKSt9nothrow_t",
                                             "_ZnwmSt11align_val_t",
                                             "_ZnamSt11align_val_t",
                                             "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                             "_ZnamSt11align_val_tRKSt9nothrow_t"};

/* What gives and takes pages, or raises an exception, which has its own memory. */
const std::unordered_set<std::string> plain = {"mmap",
                                               "mmap64",
                                               "munmap",
                                               "mremap",
                                               "madvise",
                                               "mprotect",
                                               "mlock",
                                               "mbind",
                                               "sbrk",
                                               "brk",
                                               "shmat",
                                               "shmdt",
                                               "sysconf",
                                               "free",
                                               "memtrace_named_returns",
                                               "memtrace_named_resizes",
                                               "memtrace_named_leaves",
                                               "__cxa_allocate_exception",
                                               "__cxa_free_exception",
                                               "__cxa_throw",
                                               "__cxa_rethrow",
                                               "__cxa_end_catch",
                                               "__cxa_guard_acquire",
                                               "_Unwind_Resume",
                                               "__assert_fail"};

std::vector<std::string> lines;

void add(std::initializer_list<std::string> fields) {
    std::string line;
    for (const std::string &field : fields) {
        line += (line.empty() ? "" : "\t") + field;
    }
    lines.push_back(line);
}

const char *name_of(memory_source source) {
    return source == memory_source::OWN      ? ALLOCRECORDED_OWN
           : source == memory_source::MALLOC ? ALLOCRECORDED_MALLOC
                                             : ALLOCRECORDED_UNKNOWN;
}

/* As a string of the assembler's. */
std::string quote(const std::string &text) {
    std::string quoted = "\"";
    for (unsigned char letter : text) {
        char octal[8];
        snprintf(octal, sizeof octal, "\\%03o", letter);
        const bool is_plain = letter >= ' ' && letter < 0x7f && letter != '"' && letter != '\\';
        quoted += is_plain ? std::string(1, (char)letter) : octal;
    }
    return quoted + '"';
}

} // namespace

/* The first that is found, but malloc rather than what is not known. */
void memory_origin::add(memory_source other, const std::string &by) {
    if (kind != memory_source::MALLOC && other != memory_source::OWN &&
        (kind == memory_source::OWN || other == memory_source::MALLOC)) {
        kind = other;
        callee = by;
    }
}

memory_source recorded_source(const std::string &symbol, bool never_allocates) {
    return kin.count(symbol) != 0                        ? memory_source::MALLOC
           : never_allocates || plain.count(symbol) != 0 ? memory_source::OWN
                                                         : memory_source::UNKNOWN;
}

void recorded_found(const std::string &specification, const std::string &symbol,
                    const std::string &place) {
    add({ALLOCRECORDED_FOUND, specification, symbol, place});
}

void recorded_proposal(const std::string &symbol, const std::string &place,
                       const std::string &specification, const memory_origin &origin) {
    add({ALLOCRECORDED_PROPOSED, specification, symbol, place, name_of(origin.kind),
         origin.callee});
}

std::string recorded_assembly() {
    for (const std::string &text : wanted_texts()) {
        add({ALLOCRECORDED_NAMED, text});
    }
    std::string text;
    for (const std::string &line : lines) {
        text += "\t.asciz\t" + quote(line) + '\n';
    }
    lines.clear();
    return text.empty() ? ""
                        : "\t.pushsection\t" ALLOCRECORDED_SECTION ",\"\",%progbits\n" + text +
                              "\t.popsection\n";
}
