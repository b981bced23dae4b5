// SPDX-License-Identifier: MIT
// Functions whose report lines show what NO_ALLOC_FUNCTIONS, MEMTRACE_NO_ALLOC and EXCLUDE_* did.
#include <memtrace/memtrace.h>

extern "C" {
int unknown(int value);
int harmless_by_option(int value);
MEMTRACE_NO_ALLOC int harmless_by_attribute(int value);

int calls_unknown(int value) {
    return unknown(value) + 1;
}

int calls_by_option(int value) {
    return harmless_by_option(value) + 1;
}

int calls_by_attribute(int value) {
    return harmless_by_attribute(value) + 1;
}

int excluded(int value) {
    return unknown(value) + 1;
}
}

namespace ns {
int harmless_in_scope(int value);

int calls_in_scope(int value) {
    return harmless_in_scope(value) + 1;
}

int excluded_in_scope(int value) {
    return unknown(value) + 1;
}
} // namespace ns
