//! The program `stead`. All of it is the library beside it, which is compiled while those that it needs are still made into code: the
//! compiler waits for them only where it links (docs/decisions/0083).

use std::process::ExitCode;

/// A run makes and drops many small values; this allocator halves what that costs (docs/decisions/0006).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    stead_program::main()
}

#[cfg(test)]
mod tests {
    /// This test is linked as the program is (docs/decisions/0026).
    #[test]
    fn a_panic_is_caught_by_the_unwinder_in_the_program() {
        let outcome = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(7)));
        assert_eq!(outcome.expect_err("a panic").downcast_ref::<i32>(), Some(&7));
    }
}
