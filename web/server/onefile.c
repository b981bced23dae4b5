/* SPDX-License-Identifier: MIT */
/* onefile.c: see onefile.h. */
#include "web/server/onefile.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/window/series.h"
#include "memtrace/version.h"
#include "web/server/apicache.h"
#include "web/server/apisession.h"
#include "web/server/dispatch.h"
#include "web/server/onefilesums.h"
#include "web/server/uifiles.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Paths beyond MOST_PATHS are put together, and more of them where that is not small enough: so
 * files of large programs stay small enough to mail, and their sums whole. */
enum { MOST_PATHS = 40000, LEAST_PATHS = 1000, PACKED_LIMIT = 1200000 };

#define PLACE "%DATA%" /* in the page: what the data takes the place of */

/* ---- The answers ---- */

struct writer {
    const struct onefile *page;
    char names[64]; /* parameters: how names are shown */
    FILE *out;
    size_t count;
};

static void put_answer(struct writer *writer, const char *name, const char *path,
                       api_handler handler) {
    const struct dispatch_question question = {.view = writer->page->view,
                                               .path = path,
                                               .names = writer->names,
                                               .handler = handler,
                                               .replay = &writer->page->replay};
    struct reply reply = {.status = 0};
    dispatch_of_view(&question, &reply);
    fprintf(writer->out, "%s\"%s\":", writer->count++ != 0 ? "," : "", name);
    fwrite(reply.bytes, 1, reply.size, writer->out);
    free(reply.bytes);
    free(reply.file_name);
}

/* Those that are tables or figures as they are shown; a profile has no mappings: then that is the
 * answer. Nobody waits for a pass over many events: the page says who makes it. */
static void put_answers(struct writer *writer) {
    static const struct {
        const char *name;
        const char *path;
    } asked[] = {
        {"summary", ""},
        {"timeline", "/timeline?points=700&series=live,resident,swap,virtual,rate,frees"},
        {"marks", "/marks?limit=2000"},
        {"scopes", "/scopes?limit=2000"},
        {"threads", "/threads?limit=10000"},
        {"foreign", "/foreign?limit=10000"},
        {"modules", "/modules?limit=10000"},
        {"suppressed", "/suppressed?limit=1000"},
        {"findings", "/findings?limit=12"},
        {"files", "/files?limit=20000"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        put_answer(writer, asked[i].name, asked[i].path, NULL);
    }
    if (writer->page->view->whole->recording.events <= SERIES_PASS_EVENTS) {
        put_answer(writer, "mappings", "/mappings?all=1&limit=10000", NULL);
    }
}

/* Heads of what the page makes itself of the sums: columns, units, totals, commands. */
static void put_heads(struct writer *writer) {
    static const char *const endpoints[] = {"tree", "functions", "paths"};
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
            char name[64];
            char path[96];
            snprintf(name, sizeof name, "%s %s", endpoints[i], metric_name(metric));
            snprintf(path, sizeof path, "/%s?metric=%s&limit=1", endpoints[i], metric_name(metric));
            put_answer(writer, name, path, NULL);
        }
    }
}

static void put_session(struct jsonwriter *json, const struct onefile *page) {
    const struct source *file = page->view->source;
    const char *path = hub_path(file);
    struct hub_status status = {.number = 1,
                                .title = (char *)(uintptr_t)pathname_base(path),
                                .path = (char *)(uintptr_t)path,
                                .kind = hub_kind_of(file),
                                .state = HUB_OPEN,
                                .generation = 1};
    char view[64];
    hub_fingerprint(file, status.fingerprint);
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "version", MEMTRACE_VERSION);
    jsonwriter_array(json, "capabilities");
    jsonwriter_end_array(json);
    jsonwriter_map(json, "limits");
    jsonwriter_end_map(json);
    jsonwriter_array(json, "sources");
    apisession_put_source(json, &status);
    jsonwriter_end_array(json);
    if (page->metric != METRIC_MAXIMUM) {
        snprintf(view, sizeof view, "summary?metric=%s", metric_name(page->metric));
        jsonwriter_string(json, "view", view);
    }
    jsonwriter_bool(json, "by_line", page->by_line);
    jsonwriter_bool(json, "all_frames", page->all_frames);
    if (page->view->question->filters.text != NULL) {
        jsonwriter_string(json, "selected", page->view->question->filters.text);
    }
    jsonwriter_end_map(json);
}

static void close_json(void *json) {
    jsonwriter_close(json);
}

/* The document that the page has inside. */
static void write_document(const struct onefile *page, size_t most_paths, FILE *out) {
    struct writer writer = {.page = page, .out = out};
    struct jsonwriter *json = jsonwriter_open(out, JSONWRITER_COMPACT);
    if (json == NULL) {
        job_fail_memory();
    }
    job_undo(close_json, json);
    snprintf(writer.names, sizeof writer.names, "%s%s%s", page->full_names ? "&full-names" : "",
             page->all_frames ? "&all-frames" : "", page->by_line ? "&by=line" : "");
    fputs("{\"session\":", out);
    put_session(json, page);
    fputs(",\"answers\":{", out);
    put_answers(&writer);
    put_heads(&writer);
    put_answer(&writer, "sums", job_text("/sums?limit=%zu", most_paths), onefilesums);
    fputs("}}", out);
}

/* ---- Packing ---- */

/* Of a document with so many paths; the text is not kept. */
struct packing {
    const struct onefile *page;
    size_t most_paths;
    unsigned char *bytes; /* as DecompressionStream("deflate") reads it */
    size_t size, room;
};

static void pack_document(void *what) {
    struct packing *packing = what;
    struct job_printing *text = job_print();
    uLongf size;
    write_document(packing->page, packing->most_paths, text->out);
    job_printed(text);
    size = compressBound(text->size);
    job_reserve(&packing->bytes, &packing->room, size, 1);
    if (compress2(packing->bytes, &size, (const Bytef *)text->text, text->size, 9) != Z_OK) {
        job_fail_memory();
    }
    packing->size = size;
}

/* Of as many paths as the file has room for. */
static struct packing pack_fitting(const struct onefile *page) {
    struct packing packing = {.page = page, .bytes = job_array(1, 1), .most_paths = MOST_PATHS};
    struct error error;
    for (;;) {
        job_check(job_run(pack_document, &packing, NULL, &error), &error);
        if (packing.size <= PACKED_LIMIT || packing.most_paths / 2 < LEAST_PATHS) {
            return packing;
        }
        packing.most_paths /= 2;
    }
}

static void put_base64(FILE *out, const unsigned char *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t count = size - i < 3 ? size - i : 3;
        unsigned group = (unsigned)bytes[i] << 16 | (count > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
                         (count > 2 ? (unsigned)bytes[i + 2] : 0u);
        putc(digits[group >> 18], out);
        putc(digits[group >> 12 & 63], out);
        putc(count > 1 ? digits[group >> 6 & 63] : '=', out);
        putc(count > 2 ? digits[group & 63] : '=', out);
    }
}

/* ---- The page ---- */

void onefile_write(const struct onefile *page, FILE *out) {
    const struct uifile *file = uifiles_find("onefile.html");
    const char *html = file != NULL ? (const char *)file->bytes : NULL;
    const char *place = html != NULL ? memmem(html, file->size, PLACE, sizeof PLACE - 1) : NULL;
    struct packing packing;
    if (place == NULL) {
        job_fail("this memtrace was built without the page: no html");
    }
    packing = pack_fitting(page);
    if (replay_is_cancelled(&page->replay)) {
        job_fail("cancelled");
    }
    fwrite(html, 1, (size_t)(place - html), out);
    put_base64(out, packing.bytes, packing.size);
    place += sizeof PLACE - 1;
    fwrite(place, 1, file->size - (size_t)(place - html), out);
}

static void close_cache(void *cache) {
    apicache_free(cache);
}

struct saving {
    struct onefile *page;
    struct answer view;
    FILE *out;
};

static void save_answer(void *what) {
    struct saving *saving = what;
    saving->view.cache = apicache_new();
    if (saving->view.cache == NULL) {
        job_fail_memory();
    }
    job_undo(close_cache, saving->view.cache);
    saving->page->view = &saving->view;
    onefile_write(saving->page, saving->out);
}

int onefile_write_answer(struct onefile *page, const struct answer *answer, FILE *out,
                         struct error *error) {
    struct saving saving = {page, *answer, out};
    return job_run(save_answer, &saving, NULL, error);
}
