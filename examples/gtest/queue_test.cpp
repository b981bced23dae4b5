/* SPDX-License-Identifier: MIT */
/* queue_test.cpp: a queue that is not to allocate once it is warm, and one that does. */
#include <memtrace/expect_gtest.h>

#include <deque>
#include <gtest/gtest.h>
#include <vector>

namespace {
/* A ring in a vector. */
class ring {
  public:
    explicit ring(std::size_t size) : items_(size) {
    }
    void push(int item) {
        items_[back_++ % items_.size()] = item;
    }
    int pop() {
        return items_[front_++ % items_.size()];
    }

  private:
    std::vector<int> items_;
    std::size_t front_ = 0;
    std::size_t back_ = 0;
};

TEST(Queue, RingDoesNotAllocateOnceItIsMade) {
    ring queue(16);
    int sum = 0;
    MEMTRACE_EXPECT_NO_ALLOC {
        for (int i = 0; i < 1000; i++) {
            queue.push(i);
            sum += queue.pop();
        }
    }
    EXPECT_EQ(sum, 499500);
}

TEST(Queue, RingTakesTwoAllocationsAtMost) {
    MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(2) {
        ring queue(16);
        queue.push(1);
    }
}

/* The flaw: a deque takes new blocks as it moves on. */
TEST(Queue, DequeDoesNotAllocateOnceItIsMade) {
    std::deque<int> queue(16);
    MEMTRACE_EXPECT_NO_ALLOC {
        for (int i = 0; i < 1000; i++) {
            queue.push_back(i);
            queue.pop_front();
        }
    }
    EXPECT_EQ(queue.size(), 16u); /* the test goes on */
}
} // namespace
