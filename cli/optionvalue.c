/* SPDX-License-Identifier: MIT */
/* optionvalue.c: see optionvalue.h. */
#include "cli/optionvalue.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum optionvalue optionvalue_of(const char *name) {
    static const struct {
        const char *name;
        enum optionvalue kind;
    } known[] = {{"FILE", OPTIONVALUE_FILE},
                 {"PATTERN", OPTIONVALUE_FILE},
                 {"FOLDER", OPTIONVALUE_FOLDER},
                 {"FOLDERS", OPTIONVALUE_FOLDER},
                 {"COMMAND", OPTIONVALUE_COMMAND},
                 {"FORMAT", OPTIONVALUE_FORMAT},
                 {"T", OPTIONVALUE_TIME},
                 {"T..T", OPTIONVALUE_TIME},
                 {"T[,T]", OPTIONVALUE_TIME},
                 {"PROFILE", OPTIONVALUE_PROFILE},
                 {"RECORDING", OPTIONVALUE_RECORDING},
                 {"PID", OPTIONVALUE_PID}};
    if (islower((unsigned char)name[0])) {
        return OPTIONVALUE_WORDS;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].kind;
        }
    }
    return OPTIONVALUE_ANY;
}

void optionvalue_operand(const char *operands, size_t n, char text[OPTIONVALUE_SIZE]) {
    const char *next = operands;
    text[0] = '\0';
    for (size_t i = 0; next != NULL && i <= n; i++) {
        size_t length = strcspn(next, " ");
        snprintf(text, OPTIONVALUE_SIZE, "%.*s", (int)length, next);
        next = next[length] != '\0' ? next + length + 1 : NULL;
    }
}
