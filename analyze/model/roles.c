/* SPDX-License-Identifier: MIT */
/* roles.c: see roles.h. */
#include "analyze/model/roles.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* ---- Short names. One pass, by brackets; no grammar, so every name gets through ---- */

struct shortening {
    const char *at;
    char *to;
    char *start; /* of the name proper: what stands before is its return type */
    const char *end;
    char *buffer;
};

static void shortname_put(struct shortening *name, const char *text, size_t length) {
    for (size_t i = 0; i < length && name->to < name->end; i++) {
        *name->to++ = text[i];
    }
}

static bool shortname_is_name(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || (byte & 0x80) != 0;
}

/* Behind the bracket that closes the one at `at`; at the end if none does. */
static const char *shortname_behind(const char *at) {
    char open = *at;
    char close = open == '<' ? '>' : open == '(' ? ')' : open == '{' ? '}' : ']';
    int depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '>' && at[-1] == '-') { /* -> of a return type */
            continue;
        }
        depth += (*at == open) - (*at == close);
        if (depth == 0) {
            return at + 1;
        }
    }
    return at;
}

/* Length of the operator's symbol at `at`, 0: it is named by a word or a type. */
static size_t shortname_symbol_length(const char *at) {
    static const char *const symbols[] = {"->*", "<<=", ">>=", "<=>", "()", "[]", "->", "++", "--",
                                          "<<",  ">>",  "<=",  ">=",  "==", "!=", "&&", "||", "+=",
                                          "-=",  "*=",  "/=",  "%=",  "^=", "&=", "|="};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (strncmp(at, symbols[i], strlen(symbols[i])) == 0) {
            return strlen(symbols[i]);
        }
    }
    return *at != '\0' && strchr("+-*/%^&|~!=<>,", *at) != NULL ? 1 : 0;
}

/* "operator<<", "operator()", "operator new[]", "operator bool": copied up to its parameters. */
static bool shortname_take_operator(struct shortening *name) {
    static const char word[] = "operator";
    const size_t length = sizeof word - 1;
    const char *from = name->at;
    const char *stop = from + length;
    size_t symbol;
    if (strncmp(from, word, length) != 0 || shortname_is_name(from[length]) ||
        (name->to > name->buffer && shortname_is_name(name->to[-1]))) {
        return false;
    }
    symbol = shortname_symbol_length(stop);
    stop += symbol != 0 ? symbol : strcspn(stop, "(");
    shortname_put(name, from, (size_t)(stop - from));
    name->at = stop;
    stop += *stop == ' ';
    if (symbol != 0 && *stop == '<') {
        shortname_put(name, "<>", 2);
        name->at = shortname_behind(stop);
    }
    return true;
}

/* A parenthesis: parameters are dropped, "(anonymous namespace)" is part of the name. */
static void shortname_take_parenthesis(struct shortening *name) {
    const char *stop = shortname_behind(name->at);
    if (strncmp(name->at, "(anonymous namespace)", 21) == 0) {
        shortname_put(name, name->at, 21);
    } else if (stop[0] == ':' || stop[0] == '[') { /* a local name: f(int)::g */
        shortname_put(name, "()", 2);
    } else if (strncmp(stop, " const", 6) == 0 && (stop[6] == '\0' || stop[6] == ':')) {
        shortname_put(name, stop[6] == ':' ? "()" : "", stop[6] == ':' ? 2 : 0);
        stop += 6;
    }
    name->at = stop;
}

/* Whether a path goes on at this bracket by a part that has no other name: Rust's "<impl A for B>",
 * GCC's "<lambda(int)>". */
static bool shortname_is_part(const char *at) {
    static const char *const parts[] = {"<impl ", "<lambda", "<unnamed", "<anonymous"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strncmp(at, parts[i], strlen(parts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void shortname_take(struct shortening *name) {
    const char *from = name->at;
    const char *stop;
    bool after_name = name->to > name->start && shortname_is_name(name->to[-1]);
    bool after_path = name->to - name->start > 2 && strncmp(name->to - 2, "::", 2) == 0;
    if (shortname_take_operator(name)) {
        return;
    }
    switch (*from) {
    case '<':
        stop = shortname_behind(from);
        if (after_path && shortname_is_part(from)) {
            shortname_put(name, from, (size_t)(stop - from));
            name->at = stop;
            return;
        }
        if (after_name || after_path) { /* of a type, or of a function: Rust's call::<A> */
            shortname_put(name, "<>", 2);
            name->at = stop;
            return;
        }
        break; /* Rust's <T as Trait> */
    case '(':
        shortname_take_parenthesis(name);
        return;
    case '{': /* {lambda(int)#1}, {{closure}} */
    case '[': /* [abi:cxx11], [clone .isra.0] */
        stop = shortname_behind(from);
        shortname_put(name, from, (size_t)(stop - from));
        name->at = stop;
        return;
    default:
        break;
    }
    shortname_put(name, from, 1);
    name->at++;
}

/* Whether the blank at `at` stands behind a return type. Blanks of Rust's "<T as Trait>" and of
 * "non-virtual thunk to" do not. */
static bool shortname_ends_type(const struct shortening *name) {
    const char *at = name->at;
    const char *rest = at + 1;
    return *at == ' ' &&
           memchr(name->start, '<', (size_t)(name->to - name->start)) != name->start &&
           strncmp(name->start, "non-virtual", 11) != 0 &&
           strncmp(name->start, "virtual", 7) != 0 && strncmp(name->start, "guard", 5) != 0 &&
           rest[0] != '[' && rest[0] != '(' && strchr(rest, '(') != NULL;
}

/* std::string has a long name that says nothing more. */
static void shortname_name_strings(char *buffer) {
    static const char full[] = "std::__cxx11::basic_string<>";
    static const char brief[] = "std::string";
    char *at;
    while ((at = strstr(buffer, full)) != NULL) {
        char *rest = at + sizeof full - 1;
        memcpy(at, brief, sizeof brief - 1);
        memmove(at + sizeof brief - 1, rest, strlen(rest) + 1);
    }
}

const char *shortname(const char *text, char *buffer, size_t size) {
    struct shortening name = {
        .at = text, .to = buffer, .start = buffer, .end = buffer + size - 1, .buffer = buffer};
    while (*name.at != '\0' && name.to < name.end) {
        if (shortname_ends_type(&name)) {
            name.to = buffer;
            name.at++;
            continue;
        }
        shortname_take(&name);
    }
    *name.to = '\0';
    shortname_name_strings(buffer);
    if (name.to == buffer && text[0] != '\0') {
        strncpy(buffer, text, size - 1);
        buffer[size - 1] = '\0';
    }
    return buffer;
}

/* ---- Roles ---- */

static bool is_startup(const char *function) {
    static const char *const names[] = {
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "clone",
        "clone3",
        "__clone3",
        "__clone",
        "__clone3_internal",
        "start_thread",
        "__GI___clone3",
        "thread_start",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool starts_with(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static bool is_library_name(const char *name) {
    return starts_with(name, "std::") || starts_with(name, "__gnu_cxx::") ||
           starts_with(name, "operator new");
}

static bool is_library(const char *function, const char *file) {
    char brief[256];
    if (is_library_name(function) || (file != NULL && starts_with(file, "/rustc/"))) {
        return true;
    }
    /* "void std::vector<...>::_M_realloc_insert<...>(...)" */
    return strchr(function, ' ') != NULL && strstr(function, "std::") != NULL &&
           is_library_name(shortname(function, brief, sizeof brief));
}

unsigned char roles_of(const char *function, const char *file) {
    if (function == NULL) {
        return 0;
    }
    return (unsigned char)((strcmp(function, "main") == 0 ? ROLES_MAIN : 0) |
                           (is_startup(function) ? ROLES_STARTUP : 0) |
                           (is_library(function, file) ? ROLES_LIBRARY : 0));
}
