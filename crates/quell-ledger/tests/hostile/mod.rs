//! A hostile program, which uses only the public API of the ledger.
//!
//! It tries to release without paying, to pay less, to exceed a cap, to use a payment twice, and to get a
//! statement that promises too little. Every attempt is refused. Programs that the compiler refuses are in
//! `refused.rs` of both crates.

mod books;
mod files;
mod payments;
mod promises;

/// An attempt panics if it succeeds.
type Attempt = (&'static str, fn());

/// Panics unless the attempt is refused for the expected reason. Another reason would mean that it was not tried.
#[track_caller]
fn refused<T, E: std::fmt::Display>(attempt: Result<T, E>, because: &str) {
    match attempt {
        Ok(_) => panic!("granted, expected: {because}"),
        Err(error) => assert!(error.to_string().contains(because), "{error}, expected: {because}"),
    }
}

#[test]
fn every_attempt_is_refused() {
    let attempts: Vec<Attempt> =
        [books::ATTEMPTS, payments::ATTEMPTS, promises::ATTEMPTS, files::ATTEMPTS].concat();
    let succeeded: Vec<&str> = attempts
        .iter()
        .filter(|(_, attempt)| std::panic::catch_unwind(attempt).is_err())
        .map(|(name, _)| *name)
        .collect();
    println!("{} attempts of a hostile program, {} succeeded", attempts.len(), succeeded.len());
    assert_eq!(succeeded, Vec::<&str>::new());
    assert!(attempts.len() >= 54, "attempts were lost: {}", attempts.len());
}

#[test]
fn the_compiler_refuses_the_rest() {
    let programs =
        [include_str!("../../../quell-privacy/src/refused.rs"), include_str!("../../src/refused.rs")];
    let count: usize = programs.iter().map(|text| text.matches("```compile_fail,E").count()).sum();
    println!("{count} programs that do not compile");
    assert!(count >= 35, "programs were lost: {count}");
}
