// SPDX-License-Identifier: MIT
// returns.rs: functions that allocate and return what needs more than one register, or another kind
// of register. It aborts when a value has changed on its way.
use std::hint::black_box;

extern "C" {
    fn malloc(size: usize) -> *mut u8;
}

const WIDE: u128 = 0x0123_4567_89ab_cdef_1122_3344_5566_7788;
const REAL: f64 = -6.25e-101;

fn take(size: usize) {
    black_box(unsafe { malloc(size) });
}

#[inline(never)]
fn give_wide() -> Option<u128> {
    take(70001);
    Some(black_box(WIDE))
}

#[inline(never)]
fn give_real() -> f64 {
    take(70002);
    black_box(REAL)
}

#[inline(never)]
fn compare() {
    for _ in 0..50 {
        if give_wide() != Some(WIDE) || give_real() != REAL {
            std::process::abort();
        }
    }
}

fn main() {
    compare();
    std::process::exit(3);
}
