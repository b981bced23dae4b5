/* SPDX-License-Identifier: MIT */
/* filemode.c: see filemode.h. */
#include "analyze/base/filemode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool filemode_read(const char *text, mode_t *mode) {
    size_t length = strlen(text);
    if (length < 3 || length > 4 || strspn(text, "01234567") != length) {
        return false;
    }
    *mode = (mode_t)strtoul(text, NULL, 8);
    return (*mode & 0600) == 0600 && *mode <= 0777;
}

mode_t filemode(void) {
    const char *text = getenv("MEMTRACE_MODE");
    mode_t mode;
    return text != NULL && filemode_read(text, &mode) ? mode : 0600;
}

int filemode_folders(char *path, mode_t mode) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        int result;
        *slash = '\0';
        result = mkdir(path, mode);
        *slash = '/';
        if (result != 0 && errno != EEXIST) {
            return -1;
        }
    }
    return 0;
}
