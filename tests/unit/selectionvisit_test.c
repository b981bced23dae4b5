/* SPDX-License-Identifier: MIT */
/*
 * selectionvisit_test.c: selection_visit() of analyze/filter: of random recordings those lives are
 * handed out that plain comparison chooses, as the view shows them.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "tests/unit/samelife.h"
#include "tests/unit/selection_fixture.h"

enum { MOST_LIVES = 8000 };

struct told {
    struct life begun[MOST_LIVES];
    struct life ended[MOST_LIVES];
    size_t begun_count;
    size_t ended_count;
    size_t others;
};

static int note_begin(void *context, const struct life *life) {
    struct told *told = context;
    assert_true(told->begun_count < MOST_LIVES);
    told->begun[told->begun_count++] = *life;
    return 0;
}

static int note_end(void *context, const struct life *life) {
    struct told *told = context;
    assert_true(told->ended_count < MOST_LIVES);
    told->ended[told->ended_count++] = *life;
    return 0;
}

static int note_other(void *context, const struct timeorder_event *event) {
    struct told *told = context;
    (void)event;
    told->others++;
    return 0;
}

static void listen(struct told *told, const struct selection_subject *subject,
                   const struct selection *selection) {
    const struct lives_visitor visitor = {
        .begin = note_begin, .end = note_end, .other = note_other, .context = told};
    memset(told, 0, sizeof *told);
    assert_int_equal(
        selection_visit(selection, subject->whole, subject->parts, NULL, &visitor, NULL, NULL), 0);
}

static bool is_seen(const struct selection *selection, const struct life *life) {
    return life->birth_ns < selection->view.to_ns && life->death_ns >= selection->view.from_ns &&
           life->size >= selection->size.least;
}

/* What a view shows of it. */
static struct life seen(const struct selection *selection, const struct life *life) {
    struct life shown = *life;
    if (life->death_ns >= selection->view.to_ns) {
        shown.death_ns = shown.death_order = LIFE_ALIVE;
        shown.death_thread = 0;
        shown.death_context = (struct context_id){0};
        shown.is_temporary = shown.is_reallocated = false;
    }
    return shown;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

static void sort_lives(struct life *lives, size_t count) {
    qsort(lives, count, sizeof *lives, by_birth);
}

static void lives_of_view(const struct selection_subject *subject,
                          const struct selection *selection) {
    static struct told all;
    static struct told told;
    struct selection everything = selection_all();
    struct selection large = *selection;
    size_t at = 0;
    listen(&all, subject, &everything);
    assert_int_equal(all.begun_count, all.ended_count);
    large.size.least = 300;
    listen(&told, subject, &large);
    sort_lives(all.ended, all.ended_count);
    sort_lives(told.ended, told.ended_count);
    for (size_t i = 0; i < all.ended_count; i++) {
        if (is_seen(&large, &all.ended[i])) {
            struct life want = seen(&large, &all.ended[i]);
            assert_true(at < told.ended_count);
            assert_same_life(&told.ended[at++], &want);
        }
    }
    assert_int_equal(at, told.ended_count);
    if (large.view.from_ns != 0) {
        assert_int_equal(told.begun_count, 0); /* who knows whether they reach the view */
    } else {
        assert_int_equal(told.begun_count, told.ended_count);
    }
    assert_true(told.others <= all.others);
}

static void single_lives(void **state) {
    (void)state;
    selection_each_view(lives_of_view);
}

static bool same_block(struct event_block left, struct event_block right) {
    return left.number == right.number && left.thread == right.thread;
}

/* The last block of a life's chain. */
static const struct life *last_of(const struct told *all, const struct life *life) {
    const struct life *last = life;
    for (size_t i = 0; i < all->ended_count; i++) {
        if (same_block(all->ended[i].chain, life->chain) &&
            all->ended[i].chain_length > last->chain_length) {
            last = &all->ended[i];
        }
    }
    return last;
}

static void chains_of_view(const struct selection_subject *subject,
                           const struct selection *selection) {
    static struct told all;
    static struct told told;
    struct selection everything = selection_all();
    struct selection chains = *selection;
    size_t at = 0;
    if (selection_has_view(selection)) {
        return; /* as above, and slow */
    }
    listen(&all, subject, &everything);
    chains.chain_length = (struct selection_range){2, 3};
    chains.last_size.least = 200;
    listen(&told, subject, &chains);
    assert_int_equal(told.begun_count, 0);
    sort_lives(all.ended, all.ended_count);
    sort_lives(told.ended, told.ended_count);
    for (size_t i = 0; i < all.ended_count; i++) {
        const struct life *last = last_of(&all, &all.ended[i]);
        if (last->chain_length >= 2 && last->chain_length <= 3 && last->size >= 200) {
            assert_true(at < told.ended_count);
            assert_memory_equal(&told.ended[at++], &all.ended[i], sizeof all.ended[i]);
        }
    }
    assert_true(at != 0);
    assert_int_equal(at, told.ended_count);
}

static void chains_wait_for_their_end(void **state) {
    (void)state;
    selection_each_view(chains_of_view);
}

static int stop_soon(void *context, const struct life *life) {
    unsigned *left = context;
    (void)life;
    return --*left == 0 ? 77 : 0;
}

/* A visitor's value ends the pass, whatever is still kept of chains. */
static void a_visitor_ends_it(void **state) {
    struct selection_subject subject;
    struct selection selection = selection_all();
    (void)state;
    selection_open(&subject, &(struct recording_random){.seed = 5, .threads = 3});
    selection.chain_length.least = 2;
    for (unsigned count = 1; count < 200; count += 40) {
        unsigned left = count;
        const struct lives_visitor visitor = {.end = stop_soon, .context = &left};
        assert_int_equal(
            selection_visit(&selection, subject.whole, subject.parts, NULL, &visitor, NULL, NULL),
            77);
        assert_int_equal(left, 0);
    }
    selection_close(&subject);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_lives),
        cmocka_unit_test(chains_wait_for_their_end),
        cmocka_unit_test(a_visitor_ends_it),
    };
    return cmocka_run_group_tests(tests, selection_make_file, selection_remove_file);
}
