/* SPDX-License-Identifier: MIT */
/* finish.c: from region to profile. See finish.h. */
#include "collect/finish.h"

#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/model/uncounted.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes in use; what was damaged or never grown is cut at the end of the file. */
static uint64_t used_bytes(const struct claim *claim) {
    uint64_t end = claim_load_u64(&claim->header->end);
    struct stat status;
    if (fstat(claim->fd, &status) == 0 && end > (uint64_t)status.st_size) {
        end = (uint64_t)status.st_size;
    }
    return end < MEMTRACE_HEADER_SIZE ? MEMTRACE_HEADER_SIZE : end;
}

/* Where a profile goes that its own folder does not take. */
static int copy_elsewhere(const struct claim *claim, const char *output,
                          struct finished *finished) {
    const char *name = pathname_base(output);
    char target[sizeof finished->path];
    struct error ignored;
    if ((size_t)snprintf(target, sizeof target, "%s/%s", pathname_temporary(),
                         name[0] != '\0' ? name : "memtrace.mtp") >= sizeof target) {
        return -1;
    }
    return copy_region(claim->fd, used_bytes(claim), target, COPY_KEEP, claim->header->pid,
                       finished->path, sizeof finished->path, &ignored);
}

void finish_region(const struct claim *claim, enum copy_mode mode, struct finished *finished) {
    char output[sizeof claim->header->output];
    snprintf(output, sizeof output, "%.*s", (int)sizeof output - 1,
             claim->is_outside ? claim->output : claim->header->output);
    if (mode == COPY_KEEP && copy_is_folder_of(output, claim->header->run.id)) {
        char folder[sizeof output];
        memcpy(folder, output, sizeof folder);
        copy_path_beside(folder, claim->header, ".mtp", output, sizeof output);
    }
    *finished = (struct finished){.place = FINISH_MOVED};
    if (copy_region(claim->fd, used_bytes(claim), output, mode, claim->header->pid, finished->path,
                    sizeof finished->path, &finished->trouble) == 0) {
        claim_unlink(claim);
    } else if (copy_elsewhere(claim, output, finished) == 0) {
        finished->place = FINISH_ELSEWHERE;
        claim_unlink(claim);
    } else {
        finished->place = FINISH_KEPT;
        snprintf(finished->path, sizeof finished->path, "%s", claim->region.path);
    }
    if (claim->is_outside && finished->place != FINISH_KEPT &&
        chown(finished->path, geteuid(), getegid()) != 0) { /* whoever the header names */
        error_set(&finished->trouble, "%s: %s", finished->path, strerror(errno));
    }
}

static int finish_compare_nodes(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

struct noting {
    const struct profile *profile;
    const struct model *records; /* no call paths */
};

/* Of the modules those that called mmap and the like: first the nodes that did, then whose they
 * are. */
static void finish_find_mappers(const void *context, bool *is_mapper) {
    const struct noting *noting = context;
    const struct profile *profile = noting->profile;
    uint32_t *callers = NULL; /* sorted for the second walk */
    size_t count = 0;
    for (int walk = 0; walk < 2 && (walk == 0 || count != 0); walk++) {
        for (size_t i = 0; i < profile->segment_count; i++) {
            const struct profile_segment *segment = &profile->segments[i];
            struct memtrace_node node;
            for (uint32_t place = 0; profile_is_tree(segment) && place < segment->item_count;
                 place++) {
                uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
                uint32_t wanted = (uint32_t)id;
                if (!profile_node(profile, segment, place, &node)) {
                    continue;
                }
                if (walk == 0 && node.frame == MEMTRACE_FRAME_MAPPING &&
                    array_grow_by_count(&callers, count, sizeof *callers) == 0) {
                    callers[count++] = node.parent;
                } else if (walk == 1 && wanted == id &&
                           bsearch(&wanted, callers, count, sizeof wanted, finish_compare_nodes) !=
                               NULL) {
                    is_mapper[model_place(noting->records, node.frame).module] = true;
                }
            }
        }
        array_sort(callers, count, sizeof *callers, finish_compare_nodes);
    }
    free(callers);
}

void finish_note_malloc(const struct claim *claim, const struct profile *region) {
    struct model *records = region != NULL ? model_load_records(region, NULL) : NULL;
    struct noting noting = {region, records};
    struct uncounted_objects objects = {.header = claim->header};
    struct memtrace_malloc found;
    if (records != NULL) {
        objects = (struct uncounted_objects){.header = &records->header,
                                             .modules = records->modules,
                                             .module_count = records->module_count,
                                             .find_mappers = finish_find_mappers,
                                             .context = &noting};
    }
    uncounted_find(&objects, &found);
    claim_set_malloc(claim, &found);
    model_free(records);
}

bool finish_recording(const struct claim *claim, struct record *record,
                      struct record_result *result) {
    struct error error;
    if (record == NULL && record_wanted(claim)) {
        record = record_open(claim, &error);
    }
    if (record == NULL) {
        return false;
    }
    record_finish(record, result);
    return true;
}

bool finish_wants_profile(const struct claim *claim) {
    return (claim_recording(claim)->flags & MEMTRACE_RECORDING_PROFILE) != 0;
}

static void finish_print_recording(FILE *out, const struct record_result *recording) {
    struct number n[3];
    print_safe(out, "memtrace: recording          %s (%s in %s", recording->path,
               number_items(&n[0], recording->events, "event"),
               number_bytes(&n[1], recording->bytes));
    if (recording->parts > 1) {
        fprintf(out, " and %u parts", recording->parts);
    }
    fprintf(out, ", lost %s%s%s%s)\n",
            number_count(&n[2], recording->lost_allocs + recording->lost_frees),
            recording->is_thinned ? ", thinned at times" : "",
            recording->stopped ? ", and all since it stopped" : "",
            recording->is_queue ? "; what is sent is freed" : "");
}

void finish_print_hint(FILE *out, const char *path) {
    fputs("memtrace: read it with       memtrace report ", out);
    shellword_put(out, path);
    fputc('\n', out);
}

static void print_totals(FILE *out, const struct model *model, const struct leftout *left_out,
                         const char *uncounted) {
    const struct model_totals *totals = &model->totals;
    uint64_t leaked_bytes = totals->live_bytes - left_out->bytes;
    uint64_t leaked_blocks = totals->live_blocks - left_out->blocks;
    struct number n[10];
    char lost[64];
    const char *seen = number_count(&n[9], totals->lost);
    snprintf(lost, sizeof lost, uncounted[0] == '\0' ? "%s" : "not known (%s seen)", seen);
    fprintf(out,
            "memtrace: peak               %s (%s)\n"
            "memtrace: %-18s %s (%s in %s%s)\n"
            "memtrace: allocations        %s (%s in total), frees %s\n",
            number_bytes(&n[0], totals->maximum_bytes),
            number_items(&n[1], totals->maximum_bytes, "byte"),
            left_out->is_known ? "leaked" : "not freed", number_bytes(&n[2], leaked_bytes),
            number_items(&n[3], leaked_bytes, "byte"), number_items(&n[4], leaked_blocks, "block"),
            left_out->note, number_count(&n[5], totals->allocations),
            number_bytes(&n[6], totals->total_bytes), number_count(&n[7], totals->frees));
    if (model->recording.sampled) {
        fprintf(out,
                "memtrace: sampled            one allocation in %s on average: these are "
                "estimates\n",
                number_bytes(&n[8], model->recording.sample_bytes));
    }
    fprintf(out, "memtrace: call paths         %s, lost %s\n",
            number_count(&n[8], totals->context_count), lost);
    if (uncounted[0] != '\0') {
        print_safe(out, "memtrace: not counted        %s\n", uncounted);
    }
}

void finish_print_summary(FILE *out, const struct model *model, const struct leftout *left_out,
                          const char *profile, const struct record_result *recording) {
    char uncounted[UNCOUNTED_SIZE];
    print_totals(out, model, left_out, uncounted_explain(model, uncounted));
    if (profile != NULL) {
        print_safe(out, "memtrace: profile            %s\n", profile);
    }
    if (recording != NULL) {
        finish_print_recording(out, recording);
    }
    if (recording != NULL && !recording->is_queue) {
        finish_print_hint(out, recording->path);
    } else if (profile != NULL) {
        finish_print_hint(out, profile);
    }
}
