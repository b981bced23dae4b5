/* SPDX-License-Identifier: MIT */
/*
 * flamegraph.c: a flame graph as one SVG file: the picture for any viewer, and a script for
 * browsers (html/flamegraph.js: zoom, search, keys).
 *
 * Each frame is <g class="f"><title>, <rect>, <text>; its width is its share of the whole. Frames
 * that would be too small to see are summed up beside their siblings; how small that is follows
 * from how many frames there would be, so that the file stays small whatever the profile is.
 */
#include "analyze/base/job.h"
#include "analyze/export/shared.h"
#include "analyze/rows/number.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

enum {
    WIDTH = 1200,
    MARGIN = 10,
    ROW = 18,
    TOP = 56, /* heading and search */
    BOTTOM = 28,
    MOST_FRAMES = 12000,
    MOST_DEPTH = 512,
    LABEL_ROOM = 24 /* pixels: no label in less */
};
#define CHARACTER 6.7 /* pixels, of the label's font */

/* html/flamegraph.css and .js (cmake/embed.cmake): neither has "</script", "</style" or "]]>" in
 * it. */
extern const char asset_flamegraph_css[];
extern const char asset_flamegraph_js[];

struct drawing {
    const struct export *export;
    struct calltree tree;
    uint32_t *depths; /* of each call; the root's is 0 */
    uint64_t *next_x; /* of each call: where its next callee begins, in units of cost */
    uint64_t least;   /* cheaper calls are not drawn by themselves */
    size_t deepest;   /* depth of what is drawn */
    FILE *out;
};

/* ---- What is drawn ---- */

/* If a call is drawn, so is its caller; if it is not, neither are its cheaper siblings. */
static bool flamegraph_is_drawn(const struct drawing *drawing, uint32_t at) {
    return drawing->depths[at] <= MOST_DEPTH && drawing->tree.calls[at].cost.main >= drawing->least;
}

static size_t flamegraph_count_drawn(struct drawing *drawing) {
    size_t count = 0;
    drawing->deepest = 0;
    for (uint32_t at = 1; at < drawing->tree.count; at++) {
        if (flamegraph_is_drawn(drawing, at)) {
            count++;
            drawing->deepest =
                drawing->depths[at] > drawing->deepest ? drawing->depths[at] : drawing->deepest;
        }
    }
    return count;
}

/* At least a fifth of a pixel. */
static void flamegraph_choose_least(struct drawing *drawing) {
    drawing->least = drawing->tree.calls[0].cost.main / WIDTH / 5 + 1;
    while (flamegraph_count_drawn(drawing) > MOST_FRAMES) {
        drawing->least += drawing->least / 4 + 1;
    }
}

/* ---- Colours: the program itself is warm, each library has a colour of its own ---- */

/* Red, green or blue (shift 0, 8, 4) of a hue in degrees, after CSS's definition of hsl(). */
static unsigned flamegraph_channel(double hue, double lightness, double shift) {
    const double saturation = 0.75;
    double place = fmod(shift + hue / 30, 12);
    double chroma = saturation * fmin(lightness, 1 - lightness);
    double part = fmax(-1, fmin(fmin(place - 3, 9 - place), 1));
    return (unsigned)(255 * (lightness - chroma * part) + 0.5);
}

static unsigned flamegraph_color(const struct drawing *drawing, const char *module,
                                 const char *label) {
    uint64_t of_module = XXH3_64bits(module, strlen(module));
    uint64_t of_name = XXH3_64bits(label, strlen(label));
    bool own = strcmp(module, drawing->export->model->header.executable) == 0;
    double hue = own ? (double)(of_name % 45) : 70 + (double)(of_module % 250);
    double lightness = 0.62 + (double)(of_name / 64 % 100) / 1000;
    return flamegraph_channel(hue, lightness, 0) << 16 |
           flamegraph_channel(hue, lightness, 8) << 8 | flamegraph_channel(hue, lightness, 4);
}

/* ---- Frames ---- */

/* Everything is scaled so that the whole fills the width, even if it is nothing. */
static double flamegraph_pixels(const struct drawing *drawing, uint64_t cost) {
    uint64_t whole = drawing->tree.calls[0].cost.main;
    double share = whole != 0 ? (double)cost / (double)whole : 1;
    return (WIDTH - 2 * MARGIN) * share;
}

struct frame {
    const char *label;
    uint64_t x; /* in units of cost */
    struct cost cost;
    size_t depth;
    unsigned color;
};

/* "12,900,000 bytes (12.3 MiB), 45.2%" */
static void flamegraph_put_numbers(const struct drawing *drawing, struct cost cost) {
    const char *heading = metric_main_heading(drawing->export->cost);
    struct number number;
    fprintf(drawing->out, "%s %s", number_count(&number, cost.main), heading);
    if (strcmp(heading, "bytes") == 0) {
        fprintf(drawing->out, " (%s)", number_bytes(&number, cost.main));
    }
    fputs(", ", drawing->out);
    number_percent(&number, cost.main, drawing->tree.calls[0].cost.main);
    markup_text(drawing->out, number.text);
}

static void flamegraph_put_frame(const struct drawing *drawing, const struct frame *frame) {
    FILE *out = drawing->out;
    double x = MARGIN + (frame->x != 0 ? flamegraph_pixels(drawing, frame->x) : 0);
    double width = flamegraph_pixels(drawing, frame->cost.main);
    size_t y = TOP + (drawing->deepest - frame->depth) * ROW;
    fputs("<g class=\"f\"><title>", out);
    markup_text(out, frame->label);
    fputs(" - ", out);
    flamegraph_put_numbers(drawing, frame->cost);
    fprintf(out, "</title><rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>",
            x, y, width, ROW - 1, frame->color);
    if (width >= LABEL_ROOM) {
        fprintf(out, "<text x=\"%.2f\" y=\"%zu\">", x + 3, y + 13);
        markup_text_cut(out, frame->label, (size_t)((width - 4) / CHARACTER));
        fputs("</text>", out);
    }
    fputs("</g>\n", out);
}

/* Where a call begins; whoever is called from the same call next begins behind it. */
static uint64_t flamegraph_take_x(struct drawing *drawing, uint32_t at) {
    uint32_t parent = drawing->tree.calls[at].parent;
    uint64_t x = drawing->next_x[parent];
    drawing->next_x[parent] += drawing->tree.calls[at].cost.main;
    drawing->next_x[at] = x;
    return x;
}

static void flamegraph_put_call(struct drawing *drawing, uint32_t at) {
    const struct call *call = &drawing->tree.calls[at];
    char label[EXPORT_LABEL + 32];
    struct frame frame = {label, flamegraph_take_x(drawing, at), call->cost, drawing->depths[at],
                          0};
    export_label(drawing->export, call->frame, label);
    frame.color = flamegraph_color(drawing, call->frame->module, label);
    if (call->frame->inlined) {
        strcat(label, " [inlined]");
    }
    if (call->recursive) {
        strcat(label, " (recursive)");
    }
    flamegraph_put_frame(drawing, &frame);
}

/* A call that is not drawn and its siblings behind it, if they can be seen together. */
static void flamegraph_put_rest(struct drawing *drawing, uint32_t first) {
    char label[48];
    size_t count = 0;
    struct frame frame = {.label = label, .depth = drawing->depths[first], .color = 0xc8c8c8};
    frame.x = drawing->next_x[drawing->tree.calls[first].parent];
    for (uint32_t at = first; at != 0; at = drawing->tree.calls[at].next) {
        metric_add(&frame.cost, drawing->tree.calls[at].cost);
        count++;
    }
    snprintf(label, sizeof label, "(%zu smaller)", count);
    if (frame.cost.main >= drawing->least && frame.depth <= drawing->deepest) {
        flamegraph_put_frame(drawing, &frame);
    }
}

static void flamegraph_put_frames(struct drawing *drawing) {
    const struct frame all = {
        .label = "all", .cost = drawing->tree.calls[0].cost, .color = 0xdddddd};
    size_t depth = 0;
    uint32_t at = mergedtree_next(&drawing->tree, 0, &depth);
    flamegraph_put_frame(drawing, &all);
    while (at != 0) {
        if (flamegraph_is_drawn(drawing, at)) {
            flamegraph_put_call(drawing, at);
            at = mergedtree_next(&drawing->tree, at, &depth);
        } else {
            flamegraph_put_rest(drawing, at);
            at = mergedtree_skip(&drawing->tree, drawing->tree.calls[at].parent, &depth);
        }
    }
}

/* ---- The file ---- */

/* data-total is the whole cost, to the byte, for programs. */
static void flamegraph_put_head(const struct drawing *drawing) {
    FILE *out = drawing->out;
    const struct model *model = drawing->export->model;
    size_t height = TOP + (drawing->deepest + 1) * ROW + BOTTOM;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%zu\" "
            "viewBox=\"0 0 %d %zu\" data-total=\"%" PRIu64 "\">\n<title>",
            WIDTH, height, WIDTH, height, drawing->tree.calls[0].cost.main);
    markup_text(out, metric_title(drawing->export->cost, model));
    fputs("</title>\n<style>\n", out);
    fputs(asset_flamegraph_css, out);
    fprintf(out, "</style>\n<rect id=\"paper\" width=\"%d\" height=\"%zu\"/>\n", WIDTH, height);
    fprintf(out, "<text id=\"heading\" x=\"%d\" y=\"22\">", MARGIN);
    markup_text(out, metric_title(drawing->export->cost, model));
    fprintf(out, "</text>\n<text id=\"subject\" x=\"%d\" y=\"42\">", MARGIN);
    markup_text_cut(out, model->header.executable, 80);
    if (drawing->export->selected != NULL) {
        fputs(" ", out);
        markup_text_cut(out, drawing->export->selected, 80);
    }
    fprintf(out, "</text>\n<text id=\"details\" x=\"%d\" y=\"%zu\"></text>\n<g id=\"frames\">\n",
            MARGIN, height - 9);
}

void export_flamegraph(const struct export *export) {
    struct calltree tree = mergedtree_open(export, export->cost);
    struct drawing drawing = {.export = export,
                              .out = export->out,
                              .tree = tree,
                              .depths = job_array(tree.count, sizeof *drawing.depths),
                              .next_x = job_array(tree.count, sizeof *drawing.next_x)};
    for (size_t at = 1; at < tree.count; at++) {
        drawing.depths[at] = drawing.depths[tree.calls[at].parent] + 1;
    }
    flamegraph_choose_least(&drawing);
    flamegraph_put_head(&drawing);
    flamegraph_put_frames(&drawing);
    fputs("</g>\n<script><![CDATA[\n", export->out);
    fputs(asset_flamegraph_js, export->out);
    fputs("]]></script>\n</svg>\n", export->out);
}
