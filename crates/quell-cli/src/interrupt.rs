//! Ctrl-C: the first asks to stop at the next good moment, the second does not wait.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Becomes true when somebody asks to stop.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    // Where no handler can be set, Ctrl-C kills, which costs no more than the block that was leased.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}
