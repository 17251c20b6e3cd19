//! Messages for unusable input: exit code 2 (1 if a target cannot be reached) and one sentence.
//!
//! Nothing is printed to standard output, and the command does not panic.

use crate::command::{Ran, folder, quell, quell_with};

/// Whether the output shows no panic, neither Rust's message nor that of the panic hook.
fn sound(ran: &Ran) -> bool {
    !ran.stderr.contains("panicked") && !ran.stderr.contains("internal error")
}

fn refused(ran: &Ran, what: &str) {
    // A target that cannot be reached is a refusal. Everything else is an error.
    let (code, start) =
        if ran.stderr.contains("reaches the target") { (1, "refused: ") } else { (2, "error: ") };
    assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{what}: {}", ran.stderr);
    assert!(sound(ran), "{what}: {}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        lines.first().is_some_and(|line| line.len() > 20 && line.starts_with(start)),
        "{what}: {}",
        ran.stderr
    );
    assert!(
        lines.len() <= 2 && lines.get(1).is_none_or(|line| line.starts_with("hint: ")),
        "{what}: {}",
        ran.stderr
    );
}

#[test]
fn numbers_out_of_range_are_named_with_their_range() {
    for (flags, says) in [
        (
            "account --noise-multiplier NaN --delta 1e-5",
            "noise_multiplier is NaN, expected a number in [1e-6, 1e12]",
        ),
        ("account --noise-multiplier inf --delta 1e-5", "noise_multiplier is inf"),
        ("account --noise-multiplier -1 --delta 1e-5", "noise_multiplier is -1"),
        ("account --noise-multiplier 0 --delta 1e-5", "noise_multiplier is 0"),
        ("account --noise-multiplier 1e308 --delta 1e-5", "noise_multiplier is 1"),
        ("account --noise-multiplier 1 --delta 0", "delta is 0, expected a number in (0, 1)"),
        ("account --noise-multiplier 1 --delta 1", "delta is 1"),
        ("account --noise-multiplier 1 --delta=-1e-5", "delta is -0.00001"),
        ("account --noise-multiplier 1 --delta -0.1", "delta is -0.1"),
        ("account --noise-multiplier 1 --delta NaN", "delta is NaN"),
        ("account --noise-multiplier=-inf --delta 1e-5", "noise_multiplier is -inf"),
        ("account --noise-multiplier --delta 1e-5", "a value is required for '--noise-multiplier <Z>'"),
        ("account --noise-multiplier 1 --delta 1e-5 --sampling-rate 1.5", "sampling_rate is 1.5"),
        ("account --noise-multiplier 1 --delta 1e-5 --sampling-rate NaN", "sampling_rate is NaN"),
        ("account --noise-multiplier 1 --delta 1e-5 --steps 0", "expected a positive whole number"),
        ("account --noise-multiplier 1 --delta 1e-5 --steps -5", "expected a positive whole number"),
        ("account --noise-multiplier 1 --delta 1e-5 --steps 1.5", "expected a positive whole number"),
        ("account --noise-multiplier 1 --delta 1e-5 --steps 18446744073709551615", "2^53"),
        (
            "account --noise-multiplier 1 --delta 1e-5 --steps 18446744073709551616",
            "expected a positive whole number",
        ),
        ("account --noise-multiplier 1 --delta 1e-5 --group 0", "--group"),
        ("account --noise-multiplier 1 --delta 1e-5 --group -3", "--group"),
        (
            "account --noise-multiplier 1 --delta 1e-5 --batch-size 20 --records 10",
            "batch-size is 20, expected a number from 1 to",
        ),
        ("account --noise-multiplier 1 --delta 1e-5 --batch-size 0 --records 0", "batch-size is 0"),
        ("calibrate --epsilon -1 --delta 1e-5", "epsilon is -1"),
        ("calibrate --epsilon inf --delta 1e-5", "epsilon is inf"),
        ("calibrate --mu -1", "mu is -1, expected a number in (0, inf)"),
        ("calibrate --mu NaN", "mu is NaN"),
        ("calibrate --mu 1 --slack 2", "delta is 2"),
        (
            "calibrate --true-positive-rate 0.01 --false-positive-rate 0.05",
            "expected more than the false-positive rate",
        ),
        ("calibrate --true-positive-rate 2 --false-positive-rate 0.05", "probability is 2"),
        ("curve epsilon-steps --delta 0", "delta is 0"),
        ("curve delta-epsilon --smallest-delta 1.5", "delta is 1.5"),
        ("curve laplace-gaussian --epsilon 0", "epsilon is 0"),
        ("curve moments-advanced --sampling-rate 0", "sampling_rate is 0"),
    ] {
        let ran = quell(flags);
        refused(&ran, flags);
        assert!(ran.stderr.contains(says), "{flags}: {}", ran.stderr);
    }
}

#[test]
fn wrong_flags_are_explained() {
    for (flags, says) in [
        ("acount", "unrecognized subcommand"),
        ("account", "--delta"),
        ("account --delta 1e-5", "no event is described"),
        ("account --delta one --noise-multiplier 1", "invalid value 'one'"),
        ("account --noise-multiplier 1 --delat 1e-5", "--delat"),
        ("account --noise-multiplier 1 --delta 1e-5 --accountant pdl", "invalid value 'pdl'"),
        ("account --noise-multiplier 1 --delta 1e-5 --format yaml", "invalid value 'yaml'"),
        ("account --noise-multiplier 1 --delta 1e-5 --neighbors both", "invalid value 'both'"),
        ("account --noise-multiplier 1 --delta 1e-5 --event {}", "cannot be used with"),
        ("account --noise-multiplier 1 --delta 1e-5 --batch-size 5", "--records"),
        (
            "account --noise-multiplier 1 --delta 1e-5 --batch-size 5 --records 10 --sampling-rate 0.5",
            "cannot be used with",
        ),
        ("account --noise-multiplier 1 --delta 1e-5 --sampling without-replacement", "--batch-size"),
        (
            "account --noise-multiplier 1 --delta 1e-5 --sampling with-replacement --batch-size 5 --records 10",
            "expected --neighbors replace",
        ),
        ("calibrate", "no privacy target"),
        ("calibrate --epsilon 1", "--delta"),
        ("calibrate --epsilon 1 --delta 1e-5 --mu 1", "cannot be used with"),
        ("calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 1", "expected one unknown"),
        (
            "calibrate --epsilon 1e-9 --delta 1e-9 --noise-multiplier 1 --sampling-rate 0.5",
            "reaches the target",
        ),
        ("calibrate --epsilon 1 --delta 1e-5 --event {}", "the event has no unknown number"),
        ("curve unknown", "unrecognized subcommand"),
        ("curve laplace-gaussian --steps 5", "--steps"),
        ("curve tradeoff --output plot.pdf", "expected a name that ends in .svg or .png"),
        (
            "curve laplace-gaussian --output /nonexistent/folder/plot.svg",
            "cannot write /nonexistent/folder/plot.svg",
        ),
    ] {
        let ran = quell(flags);
        refused(&ran, flags);
        assert!(ran.stderr.contains(says), "{flags}: {}", ran.stderr);
    }
}

#[test]
fn unreadable_events_are_explained() {
    let deep =
        |open: &str, close: &str, depth: usize| open.repeat(depth) + "\"non_private\"" + &close.repeat(depth);
    let nested = deep(r#"{"composed":["#, "]}", 10_000);
    let repeated = deep(r#"{"repeated":{"count":1,"event":"#, "}}", 10_000);
    for (event, says) in [
        ("", "EOF"),
        ("{}", "the event cannot be read"),
        ("[]", "the event cannot be read"),
        ("null", "the event cannot be read"),
        ("1e999", "the event cannot be read"),
        ("\"gaussian\"", "the event cannot be read"),
        ("{\"gaussian\":", "EOF"),
        (r#"{"gauss":{"noise_multiplier":1}}"#, "unknown variant"),
        (r#"{"gaussian":{"noise_multiplier":-1}}"#, "noise_multiplier is -1"),
        (r#"{"gaussian":{"noise_multiplier":1,"clip":2}}"#, "unknown field"),
        (r#"{"gaussian":{"noise_multiplier":1e999}}"#, "out of range"),
        (r#"{"version":2,"event":"non_private"}"#, "event version is 2, expected 1"),
        (r#"{"version":1,"event":"non_private","more":1}"#, "unknown field"),
        (r#"{"repeated":{"count":-1,"event":"non_private"}}"#, "the event cannot be read"),
        (&nested, "recursion limit"),
        (&repeated, "recursion limit"),
    ] {
        let what: String = event.chars().take(60).collect();
        let ran = quell_with(&["account", "--event", "-", "--delta", "1e-5"], event);
        refused(&ran, &what);
        assert!(ran.stderr.contains(says), "{what}: {}", ran.stderr);
    }
    for argument in ["@/nonexistent/event.json", "@", "event.json", "@/"] {
        refused(&quell_with(&["account", "--event", argument, "--delta", "1e-5"], ""), argument);
    }
    assert!(
        quell_with(&["account", "--event", "event.json", "--delta", "1e-5"], "")
            .stderr
            .contains("hint: to read a file, put an @")
    );
    let file = folder("binary").join("event");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    refused(
        &quell_with(&["account", "--event", &format!("@{}", file.display()), "--delta", "1e-5"], ""),
        "binary",
    );
}

#[test]
fn extreme_but_valid_numbers_are_answered_or_refused() {
    for flags in [
        "account --noise-multiplier 1e-6 --sampling-rate 0.5 --steps 9007199254740992 --delta 1e-300",
        "account --noise-multiplier 1e12 --sampling-rate 1e-15 --steps 9007199254740992 --delta 0.999999",
        "account --noise-multiplier 1e-6 --delta 1e-300 --accountant pld --accountant rdp --accountant optimal",
        "account --noise-multiplier 1e12 --delta 0.5 --attack --group 4294967295",
        "account --noise laplace --noise-multiplier 1e-6 --sampling-rate 1e-15 --steps 100 --delta 1e-12",
        "account --noise-multiplier 1 --batch-size 18446744073709551615 --records 18446744073709551615 --delta 1e-5",
        "calibrate --epsilon 1e-300 --delta 1e-300 --steps 1000",
        "calibrate --true-positive-rate 1 --false-positive-rate 0",
        "curve laplace-gaussian --epsilon 1e-300",
        "curve laplace-gaussian --epsilon 1e300 --delta 1e-300",
        "curve epsilon-steps --steps 1",
        "curve epsilon-steps --steps 9007199254740992",
        "curve tradeoff --noise-multiplier 1e-6 --sampling-rate 1",
    ] {
        let ran = quell(flags);
        assert!(sound(&ran), "{flags}: {}", ran.stderr);
        assert!(!ran.stdout.contains("NaN"), "{flags}: {}", ran.stdout);
        match ran.code {
            0 => assert!(!ran.stdout.is_empty(), "{flags}"),
            _ => refused(&ran, flags),
        }
    }
}
