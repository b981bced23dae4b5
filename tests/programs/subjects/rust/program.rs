// SPDX-License-Identifier: MIT
// program.rs: a Rust program with marked allocations, some on a thread, and one leak.
use std::collections::HashMap;

mod shapes {
    pub trait Shape {
        fn draw(&self) -> Vec<u8>;
    }
    pub struct Circle<T>(pub T);
    impl<T: Into<u64> + Copy> Shape for Circle<T> {
        #[inline(never)]
        fn draw(&self) -> Vec<u8> {
            Vec::with_capacity(self.0.into() as usize)
        }
    }
}
use shapes::Shape;

/// A block that nobody reads need not be allocated, as some versions of the compiler find.
fn keep(block: Vec<u8>) {
    unsafe { std::ptr::read_volatile(&block.as_ptr()) };
    std::mem::forget(block);
}

#[inline(never)]
fn leak_some() {
    keep(Vec::with_capacity(91001));
}

fn main() {
    leak_some();
    let drawn = shapes::Circle(91003u32).draw();
    keep(drawn);
    let handle = std::thread::spawn(|| keep(Vec::with_capacity(91005)));
    handle.join().unwrap();
    let caught = std::panic::catch_unwind(|| {
        let boxed = vec![1u8; 91007];
        if unsafe { std::ptr::read_volatile(&boxed[91006]) } == 1 {
            std::panic::resume_unwind(Box::new(7));
        }
    });
    assert!(caught.is_err());
    let mut map = HashMap::new();
    for i in 0..1000 {
        map.insert(i, i.to_string());
    }
    println!("{} entries", map.len());
    std::process::exit(3);
}
