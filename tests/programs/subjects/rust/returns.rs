// SPDX-License-Identifier: MIT
// returns.rs: functions that allocate, deep in the stack, and return what needs more than one register,
// or another kind of register. It aborts when a value has changed on its way.
use std::hint::black_box;

extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn free(block: *mut u8);
}

const WIDE: u128 = 0x0123_4567_89ab_cdef_1122_3344_5566_7788;
const REAL: f64 = -6.25e-101;
const ROUNDS: u32 = 50;

fn take(size: usize) -> *mut u8 {
    black_box(unsafe { malloc(size) })
}

/// Allocates so many frames further in: the return address of who calls this may be replaced by then.
#[inline(never)]
fn dig(frames: u32) {
    if frames == 0 {
        unsafe { free(take(24)) };
    } else {
        dig(frames - 1);
    }
    black_box(frames);
}

#[inline(never)]
fn give_wide(frames: u32) -> Option<u128> {
    take(70001);
    dig(frames);
    Some(black_box(WIDE))
}

#[inline(never)]
fn give_real(frames: u32) -> f64 {
    take(70002);
    dig(frames);
    black_box(REAL)
}

#[inline(never)]
fn compare() {
    for frames in 0..ROUNDS {
        if give_wide(frames) != Some(WIDE) || give_real(frames) != REAL {
            std::process::abort();
        }
    }
}

#[inline(never)]
fn sink(frames: u32) {
    if frames == 0 {
        compare();
    } else {
        sink(frames - 1);
    }
    black_box(frames);
}

fn main() {
    sink(60);
    std::process::exit(3);
}
