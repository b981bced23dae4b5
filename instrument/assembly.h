/* SPDX-License-Identifier: MIT */
/*
 * assembly.h: the statements of inline assembly, of which both compiler plugins must know whether
 * they may leave for other code: by call, jump or return. C++17.
 */
#ifndef INSTRUMENT_ASSEMBLY_H
#define INSTRUMENT_ASSEMBLY_H

#include <string>
#include <string_view>

namespace assembly {

inline bool begins(std::string_view text, std::string_view with) {
    return text.substr(0, with.size()) == with;
}

/* The mnemonic, or the directive. */
inline std::string_view name_of(std::string_view statement) {
    return statement.substr(0, statement.find_first_of(" \t"));
}

/* Whether the last operand is a label inside: a number, "1f", or one of asm goto, "%l0", "${0:l}".
 */
inline bool goes_inside(std::string_view statement) {
    const std::string_view target = statement.substr(statement.find_last_of(", \t") + 1);
    return target.find_first_of("0123456789") == 0 || begins(target, "%l") ||
           target.find(":l}") != target.npos;
}

/* Without blanks before it, and without labels. */
inline std::string_view without_labels(std::string_view statement) {
    for (;;) {
        const size_t start = statement.find_first_not_of(" \t");
        statement.remove_prefix(start == statement.npos ? statement.size() : start);
        const size_t end = statement.find_first_of(" \t:");
        if (end == statement.npos || statement[end] != ':') {
            return statement;
        }
        statement.remove_prefix(end + 1);
    }
}

/* Whether `leaves` says so of one of the statements, which it gets in lower case. */
template <typename Leaves> bool any_statement(std::string assembly, Leaves leaves) {
    for (char &letter : assembly) {
        letter = letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
    }
    std::string_view text = assembly;
    while (!text.empty()) {
        const size_t end = text.find_first_of("\n;");
        if (leaves(without_labels(text.substr(0, end)))) {
            return true;
        }
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    return false;
}

/* Of AArch64. Encoded instructions may be anything. */
inline bool aarch64_leaves(std::string_view statement) {
    const std::string_view name = name_of(statement);
    for (const char *jump : {"b", "cbz", "cbnz", "tbz", "tbnz"}) {
        if (name == jump || begins(name, "b.")) {
            return !goes_inside(statement);
        }
    }
    for (const char *leaving : {"bl", "br", ".inst", ".word", ".long", ".4byte"}) {
        if (name == leaving) {
            return true;
        }
    }
    return begins(name, "blr") || begins(name, "bra") || begins(name, "ret");
}

} // namespace assembly

#endif
