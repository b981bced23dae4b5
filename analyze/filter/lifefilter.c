/* SPDX-License-Identifier: MIT */
/* lifefilter.c: size, lifetime, thread, address ...: what holds for one block. See lifefilter.h. */
#include "analyze/filter/lifefilter.h"

static bool is_within(uint64_t value, struct selection_range range) {
    return range.least <= value && value <= range.most;
}

static bool is_during(uint64_t time_ns, struct selection_times times) {
    return times.from_ns <= time_ns && time_ns < times.to_ns;
}

static bool is_any(struct selection_range range) {
    return range.least == 0 && range.most == UINT64_MAX;
}

static bool is_one_of(uint32_t id, const uint32_t *ids, size_t count) {
    bool found = count == 0;
    for (size_t i = 0; !found && i < count; i++) {
        found = ids[i] == id;
    }
    return found;
}

/* Where the recording has no addresses nobody knows, so it does not hold. */
static bool is_at(const struct life *life, struct selection_range range) {
    uint64_t last = life->address + (life->size != 0 ? life->size - 1 : 0);
    return is_any(range) ||
           (life->address != 0 && life->address <= range.most && range.least <= last);
}

static uint64_t duration(uint64_t from_ns, uint64_t to_ns, uint64_t run_ns) {
    uint64_t end = to_ns == LIFE_ALIVE ? run_ns : to_ns;
    return end > from_ns ? end - from_ns : 0;
}

/* As in a view that ends then: what happens at that very time is still to come. */
static bool lived_at(const struct life *life, uint64_t time_ns) {
    return life->birth_ns < time_ns && life->death_ns >= time_ns;
}

static bool birth_holds(const struct selection *selection, const struct scopes *scopes,
                        const struct life *life) {
    return is_within(life->size, selection->size) &&
           is_within(life->chain_first_size, selection->first_size) &&
           is_during(life->birth_ns, selection->born) && is_at(life, selection->address) &&
           is_one_of(life->block.thread, selection->threads, selection->thread_count) &&
           (selection->scope == NULL || scopes_has(scopes, life->scope, selection->scope));
}

/* `died` from 0 to the end of time asks nothing, else it asks for an end. */
static bool died_during(const struct life *life, struct selection_times times) {
    return (times.from_ns == 0 && times.to_ns == UINT64_MAX) ||
           (life->death_ns != LIFE_ALIVE && is_during(life->death_ns, times));
}

static bool freed_by(const struct life *life, const uint32_t *threads, size_t count) {
    return count == 0 ||
           (life->death_ns != LIFE_ALIVE && is_one_of(life->death_thread, threads, count));
}

static bool death_holds(const struct selection *selection, uint64_t run_ns,
                        const struct life *life) {
    bool is_dead = life->death_ns != LIFE_ALIVE;
    for (size_t i = 0; i < selection->live_at_count; i++) {
        if (!lived_at(life, selection->live_at_ns[i])) {
            return false;
        }
    }
    return is_within(duration(life->birth_ns, life->death_ns, run_ns), selection->lifetime) &&
           died_during(life, selection->died) &&
           freed_by(life, selection->death_threads, selection->death_thread_count) &&
           (!selection->only_leaked || !is_dead) &&
           (!selection->only_temporary || life->is_temporary) &&
           (!selection->only_foreign_freed ||
            (is_dead && life->death_thread != life->block.thread));
}

bool lifefilter_holds(const struct selection *selection, const struct scopes *scopes,
                      uint64_t run_ns, const struct life *life) {
    return birth_holds(selection, scopes, life) && death_holds(selection, run_ns, life);
}

bool lifefilter_chain_holds(const struct selection *selection, uint64_t run_ns,
                            const struct life *last) {
    return is_within(last->size, selection->last_size) &&
           is_within(last->chain_length, selection->chain_length) &&
           is_within(duration(last->chain_birth_ns, last->death_ns, run_ns),
                     selection->chain_lifetime);
}
