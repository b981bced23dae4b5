// SPDX-License-Identifier: MIT
// cdylib.rs: a Rust library that plugins.c loads like any other plug-in.
mod inner {
    #[inline(never)]
    pub fn give() -> Box<[u8]> {
        vec![1u8; 91101].into_boxed_slice()
    }
}

#[no_mangle]
pub extern "C" fn plugin_run() -> *mut u8 {
    Box::into_raw(inner::give()) as *mut u8
}
