// SPDX-License-Identifier: MIT
//! mimalloc_rust.rs: a Rust program whose allocator is mimalloc, as the crate of that name makes it. Prints what mimalloc
//! says of itself before and after work(), as JSON, a line each. mimalloc was built with MI_STAT=2.
use std::collections::BTreeMap;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

extern "C" {
    fn mi_stats_get_json(size: usize, buffer: *mut u8) -> *mut u8;
    fn write(fd: i32, bytes: *const u8, size: usize) -> isize;
}

static mut TEXT: [u8; 1 << 16] = [0; 1 << 16];

/// For ever, and the compiler cannot know that it is not needed.
fn keep<T>(value: T) {
    unsafe { std::ptr::read_volatile(&&value) };
    std::mem::forget(value);
}

/// Without a block of Rust's.
fn report() {
    unsafe {
        let text = std::ptr::addr_of_mut!(TEXT) as *mut u8;
        mi_stats_get_json(1 << 16, text);
        let mut size = 0;
        while *text.add(size) != 0 {
            if *text.add(size) == b'\n' {
                *text.add(size) = b' ';
            }
            size += 1;
        }
        *text.add(size) = b'\n';
        write(1, text, size + 1);
    }
}

fn in_thread(number: usize) -> Vec<String> {
    (0..500 + number).map(|i| format!("{number} thread, {i}")).collect()
}

#[no_mangle]
#[inline(never)]
extern "C" fn work() -> usize {
    let mut map = BTreeMap::new();
    for i in 0..2000usize {
        map.insert(i, vec![i as u8; 1 + i % 300]);
        if i % 3 == 0 {
            map.remove(&(i / 2));
        }
    }
    let threads: Vec<_> = (0..3).map(|number| std::thread::spawn(move || in_thread(number))).collect();
    let names: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let zeros = vec![0u64; 5000];
    let sum = map.len() + names.len() + zeros.len();
    keep((map, names));
    sum
}

fn main() {
    keep(Box::new(1));
    report();
    let sum = work();
    report();
    std::process::exit(if sum > 3 { 3 } else { 0 });
}
