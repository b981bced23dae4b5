/* SPDX-License-Identifier: MIT */
/* compiler.h: attributes and the few atomic idioms, named. Used by the whole runtime. */
#ifndef RUNTIME_BASE_COMPILER_H
#define RUNTIME_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COLD        __attribute__((cold, noinline))
#define INLINE      static inline __attribute__((always_inline))
/* Of a function that a header declares: inlined where its own file calls it. */
#define INLINE_HERE inline __attribute__((always_inline))
#define PUBLIC      __attribute__((visibility("default")))
#define HIDDEN      __attribute__((visibility("hidden"))) /* not looked up in the GOT */
/* Small statics that a forked child writes: beside each other, since each page is copied then. */
#define WRITTEN_BY_CHILDREN __attribute__((section(".data.near")))
#define THREAD_LOCAL        __thread __attribute__((tls_model("initial-exec")))

/* GCC keeps a function apart from those that are alike; Clang merges none. */
#if __has_attribute(no_icf)
#define UNMERGED __attribute__((no_icf))
#else
#define UNMERGED
#endif

/* Of a struct of bit fields, and of a union with the word that it is: they begin at the lowest bit.
 */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FROM_LOWEST_BIT __attribute__((scalar_storage_order("little-endian")))
#else
#define FROM_LOWEST_BIT
#endif

/* Keeps the compiler from moving memory accesses across: for data shared with a signal handler on
 * the same thread, where no CPU fence is needed. */
#define SIGNAL_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Data that another thread or process reads while we write it: one store, no torn halves. */
#define STORE_RELAXED(pointer, value) __atomic_store_n((pointer), (value), __ATOMIC_RELAXED)
#define LOAD_RELAXED(pointer)         __atomic_load_n((pointer), __ATOMIC_RELAXED)
#define STORE_RELEASE(pointer, value) __atomic_store_n((pointer), (value), __ATOMIC_RELEASE)
#define LOAD_ACQUIRE(pointer)         __atomic_load_n((pointer), __ATOMIC_ACQUIRE)

/* A lock that nobody waits for: who does not get it does without. */
struct trylock {
    uint32_t held;
};

INLINE int trylock_take(struct trylock *lock) {
    return __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) == 0;
}

INLINE void trylock_release(struct trylock *lock) {
    STORE_RELEASE(&lock->held, 0);
}

/* In a forked child, where nobody holds it. One that was free is not written, so that its page need
 * not be copied. */
INLINE void trylock_fork(struct trylock *lock) {
    if (lock->held) {
        trylock_release(lock);
    }
}

#endif
