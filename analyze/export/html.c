/* SPDX-License-Identifier: MIT */
/*
 * html.c: one file to mail around, that shows a profile in any browser and asks for nothing: style,
 * data and scripts are in it. Its policy forbids it any request.
 *
 * The page stays below 5 MB: calls are left out, the cheapest first, until it does.
 */
#include "analyze/export/html/assets.h"
#include "analyze/export/htmldata.h"
#include "analyze/export/shared.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_LIMIT = 4500000, MOST_CALLS = 80000 };

/* The data as text, which the caller frees. NULL: out of memory. */
static char *write_data(const struct export *export, const struct callforest *forest,
                        size_t *size) {
    char *text = NULL;
    FILE *memory = open_memstream(&text, size);
    bool good;
    if (memory == NULL) {
        return NULL;
    }
    good = htmldata_write(export, forest, memory) == 0 && ferror(memory) == 0;
    if (fclose(memory) != 0 || !good) {
        free(text);
        return NULL;
    }
    return text;
}

/* The same, of as many calls as the file has room for. */
static char *write_fitting(const struct export *export, struct callforest *forest) {
    size_t size = DATA_LIMIT + 1;
    char *text = NULL;
    for (size_t most = MOST_CALLS; size > DATA_LIMIT && most > 1; most = most / 4 * 3) {
        free(text);
        text = callforest_keep(forest, most) == 0 ? write_data(export, forest, &size) : NULL;
        if (text == NULL) {
            break;
        }
    }
    return text;
}

static void put_page(const struct export *export, const char *data) {
    static const char *const scripts[] = {asset_data_js,    asset_format_js, asset_table_js,
                                          asset_flame_js,   asset_tree_js,   asset_chart_js,
                                          asset_summary_js, asset_page_js};
    FILE *out = export->out;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
          "form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          out);
    markup_text(out, export->model->header.executable);
    fputs(" - MemTrace</title>\n<style>\n", out);
    fputs(asset_page_css, out);
    fputs("</style>\n</head>\n", out);
    fputs(asset_page_html, out);
    fputs("<script type=\"application/json\" id=\"data\">", out);
    fputs(data, out);
    fputs("</script>\n<script>\n\"use strict\";\n(function () {\n", out);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        fputs(scripts[i], out);
    }
    fputs("}());\n</script>\n</body>\n</html>\n", out);
}

int export_html(const struct export *export, struct error *error) {
    struct callforest forest;
    char *data;
    if (callforest_open(&forest, export, error) != 0) {
        return -1;
    }
    data = write_fitting(export, &forest);
    callforest_close(&forest);
    if (data == NULL) {
        return error_set(error, "out of memory");
    }
    put_page(export, data);
    free(data);
    return 0;
}
