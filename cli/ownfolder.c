/* SPDX-License-Identifier: MIT */
/* ownfolder.c: see ownfolder.h. */
#include "cli/ownfolder.h"

#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

bool ownfolder_find(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    if (length <= 0) {
        return false;
    }
    *strrchr(folder, '/') = '\0';
    return true;
}

int ownfolder_refuse(void) {
    return cli_error("cannot tell where this command lies (is /proc mounted?)");
}
