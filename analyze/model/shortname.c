/* SPDX-License-Identifier: MIT */
/* shortname.c: see shortname.h. One pass, by brackets; no grammar, so every name gets through. */
#include "analyze/model/shortname.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct shortening {
    const char *at;
    char *to;
    char *start; /* of the name proper: what stands before is its return type */
    const char *end;
    char *buffer;
};

static void put(struct shortening *name, const char *text, size_t length) {
    for (size_t i = 0; i < length && name->to < name->end; i++) {
        *name->to++ = text[i];
    }
}

static bool is_name(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || (byte & 0x80) != 0;
}

/* Behind the bracket that closes the one at `at`; at the end if none does. */
static const char *behind(const char *at) {
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
static size_t symbol_length(const char *at) {
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
static bool take_operator(struct shortening *name) {
    static const char word[] = "operator";
    const size_t length = sizeof word - 1;
    const char *from = name->at;
    const char *stop = from + length;
    size_t symbol;
    if (strncmp(from, word, length) != 0 || is_name(from[length]) ||
        (name->to > name->buffer && is_name(name->to[-1]))) {
        return false;
    }
    symbol = symbol_length(stop);
    stop += symbol != 0 ? symbol : strcspn(stop, "(");
    put(name, from, (size_t)(stop - from));
    name->at = stop;
    stop += *stop == ' ';
    if (symbol != 0 && *stop == '<') {
        put(name, "<>", 2);
        name->at = behind(stop);
    }
    return true;
}

/* A parenthesis: parameters are dropped, "(anonymous namespace)" is part of the name. */
static void take_parenthesis(struct shortening *name) {
    const char *stop = behind(name->at);
    if (strncmp(name->at, "(anonymous namespace)", 21) == 0) {
        put(name, name->at, 21);
    } else if (stop[0] == ':' || stop[0] == '[') { /* a local name: f(int)::g */
        put(name, "()", 2);
    } else if (strncmp(stop, " const", 6) == 0 && (stop[6] == '\0' || stop[6] == ':')) {
        put(name, stop[6] == ':' ? "()" : "", stop[6] == ':' ? 2 : 0);
        stop += 6;
    }
    name->at = stop;
}

static void take(struct shortening *name) {
    const char *from = name->at;
    const char *stop;
    bool after_name = name->to > name->start && is_name(name->to[-1]);
    if (take_operator(name)) {
        return;
    }
    switch (*from) {
    case '<':
        if (after_name) {
            put(name, "<>", 2);
            name->at = behind(from);
            return;
        }
        break; /* Rust's <T as Trait> */
    case '(':
        take_parenthesis(name);
        return;
    case '{': /* {lambda(int)#1}, {{closure}} */
    case '[': /* [abi:cxx11], [clone .isra.0] */
        stop = behind(from);
        put(name, from, (size_t)(stop - from));
        name->at = stop;
        return;
    default:
        break;
    }
    put(name, from, 1);
    name->at++;
}

/* Whether the blank at `at` stands behind a return type. Blanks of Rust's "<T as Trait>" and of
 * "non-virtual thunk to" do not. */
static bool ends_type(const struct shortening *name) {
    const char *at = name->at;
    const char *rest = at + 1;
    return *at == ' ' &&
           memchr(name->start, '<', (size_t)(name->to - name->start)) != name->start &&
           strncmp(name->start, "non-virtual", 11) != 0 &&
           strncmp(name->start, "virtual", 7) != 0 && strncmp(name->start, "guard", 5) != 0 &&
           rest[0] != '[' && rest[0] != '(' && strchr(rest, '(') != NULL;
}

/* std::string has a long name that says nothing more. */
static void name_strings(char *buffer) {
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
        if (ends_type(&name)) {
            name.to = buffer;
            name.at++;
            continue;
        }
        take(&name);
    }
    *name.to = '\0';
    name_strings(buffer);
    if (name.to == buffer && text[0] != '\0') {
        strncpy(buffer, text, size - 1);
        buffer[size - 1] = '\0';
    }
    return buffer;
}
