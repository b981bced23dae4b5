// SPDX-License-Identifier: MIT
// clang_program.rs: one function that allocates and one that does not, for clang_pass.py.
#[inline(never)]
fn grow(n: usize) -> Vec<usize> { let mut v = Vec::new(); for i in 0..n { v.push(i * 3); } v }
#[inline(never)]
fn pure(n: u64) -> u64 { if n < 2 { n } else { pure(n - 1) + pure(n - 2) } }
fn main() { println!("{} {}", grow(100).iter().sum::<usize>(), pure(15)); }
