/* SPDX-License-Identifier: MIT */
/*
 * html.c: one file to mail around, that shows a profile in any browser and asks for nothing: the
 * page of memtrace serve (web/ui) with the data inside it. Its policy forbids it any request.
 *
 * The page stays below 2 MB: calls are left out, the cheapest first, until its data is small
 * enough.
 */
#include "analyze/export/html/assets.h"
#include "analyze/export/htmldata.h"
#include "analyze/export/shared.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

/* The data, deflated and as letters: text between tags cannot be anything else. NULL: out of
 * memory. */
static char *pack(const char *data) {
    size_t size = strlen(data);
    uLongf packed_size = compressBound((uLong)size);
    unsigned char *packed = malloc(packed_size);
    char *letters = NULL;
    if (packed != NULL &&
        compress2(packed, &packed_size, (const Bytef *)data, (uLong)size, 9) == Z_OK &&
        (letters = malloc(BASE64_ENCODE_RAW_LENGTH(packed_size) + 1)) != NULL) {
        base64_encode_raw(letters, packed_size, packed);
        letters[BASE64_ENCODE_RAW_LENGTH(packed_size)] = '\0';
    }
    free(packed);
    return letters;
}

/* The page is web/ui/saved/page.html, with two places to fill. */
static void put_page(const struct export *export, const char *data) {
    static const char title[] = "%TITLE%", letters[] = "%DATA%";
    const char *at_title = strstr(asset_page_html, title);
    const char *at_data = strstr(at_title, letters);
    FILE *out = export->out;
    fwrite(asset_page_html, 1, (size_t)(at_title - asset_page_html), out);
    markup_text(out, export->model->header.executable);
    fputs(" - MemTrace", out);
    at_title += sizeof title - 1;
    fwrite(at_title, 1, (size_t)(at_data - at_title), out);
    fputs(data, out);
    fputs(at_data + sizeof letters - 1, out);
}

int export_html(const struct export *export, struct error *error) {
    struct callforest forest;
    char *data, *packed;
    if (callforest_open(&forest, export, error) != 0) {
        return -1;
    }
    data = write_fitting(export, &forest);
    callforest_close(&forest);
    packed = data != NULL ? pack(data) : NULL;
    free(data);
    if (packed == NULL) {
        return error_set(error, "out of memory");
    }
    put_page(export, packed);
    free(packed);
    return 0;
}
