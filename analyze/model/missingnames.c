/* SPDX-License-Identifier: MIT */
/* missingnames.c: see missingnames.h. */
#include "analyze/model/missingnames.h"

#include "analyze/base/pathname.h"
#include "analyze/symbol/debuginfod.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LIST_MOST = 16 << 20 }; /* bytes of a package's list of files that are looked at */

/* A library of the system's. What starts and ends a program is not told: the loader, libc. */
static bool is_told(const char *path) {
    const char *name = strrchr(path, '/');
    return name != NULL && (strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/lib", 4) == 0) &&
           strncmp(name, "/ld-", 4) != 0 && strcmp(name, "/libc.so.6") != 0;
}

/* Whether the list, a path a line, has one that ends so. */
static bool list_has(const char *list, const char *ending) {
    size_t length = strlen(ending);
    char line[4096];
    size_t bytes = 0;
    bool has = false;
    FILE *file = fopen(list, "re");
    while (file != NULL && !has && bytes < LIST_MOST && fgets(line, sizeof line, file) != NULL) {
        size_t end = strcspn(line, "\n");
        bytes += end;
        line[end] = '\0';
        has = end >= length && strcmp(line + end - length, ending) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return has;
}

/* The name of Debian's package that has the file, as lists of installed packages have it. */
static bool find_package(const char *path, char *package, size_t size) {
    const char *below =
        strncmp(path, "/usr/", 5) == 0 ? path + 4 : path; /* /lib is in /usr or not */
    glob_t lists = {0};
    bool found = false;
    if (glob("/var/lib/dpkg/info/*.list", 0, NULL, &lists) == 0) {
        for (size_t i = 0; !found && i < lists.gl_pathc; i++) {
            found = list_has(lists.gl_pathv[i], below);
            if (found) {
                const char *name = strrchr(lists.gl_pathv[i], '/') + 1;
                snprintf(package, size, "%.*s", (int)strcspn(name, ":"), name);
                package[strlen(package) - (strchr(name, ':') == NULL ? strlen(".list") : 0)] = '\0';
            }
        }
    }
    globfree(&lists);
    return found;
}

bool missingnames_explain(const struct names *names, char *line, size_t size) {
    struct names_unnamed missing = names_find_unnamed(names, is_told);
    char package[128];
    char symbols[160] = "its debug symbols have";
    if (missing.places == 0) {
        return false;
    }
    if (find_package(missing.module, package, sizeof package)) {
        snprintf(symbols, sizeof symbols, "the package %s-dbgsym has", package);
    }
    snprintf(line, size, "%s+0x%" PRIx64 "%s no name here: %s %s, %s",
             pathname_base(missing.module), missing.offset,
             missing.places > 1 ? " and others have" : " has", symbols,
             missing.places > 1 ? "them" : "it",
             debuginfod_is_wanted() ? "the servers of DEBUGINFOD_URLS have not"
                                    : "or a server that DEBUGINFOD_URLS names");
    return true;
}
