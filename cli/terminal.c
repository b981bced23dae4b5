/* SPDX-License-Identifier: MIT */
/* terminal.c: see terminal.h. */
#include "cli/terminal.h"

#include "cli/cli.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 60 }; /* what is narrower is not minded */

/* What is no terminal gets lines as long as they are. COLUMNS, where it is exported, is somebody's
 * wish. */
static size_t width(void) {
    struct winsize size;
    uint64_t columns = 0;
    if (isatty(STDOUT_FILENO) == 0) {
        return 0;
    }
    if (quantity_u64(getenv("COLUMNS"), &columns) != 0 || columns < NARROWEST) {
        columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    }
    return columns >= NARROWEST && columns <= UINT16_MAX ? (size_t)columns : 0;
}

void terminal_style(struct report_options *options, const char *output, const char *color) {
    bool to_stdout = output == NULL || strcmp(output, "-") == 0;
    setlocale(LC_CTYPE, "");
    options->unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    options->width = to_stdout ? width() : 0;
    options->color = cli_color(color != NULL || to_stdout ? color : "never", STDOUT_FILENO) == 1;
}
