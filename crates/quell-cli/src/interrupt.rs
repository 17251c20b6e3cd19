//! Ctrl-C: the first stops the job at a safe point, the second exits at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag that becomes true on the first Ctrl-C.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&stop);
    // Without a handler, Ctrl-C kills the process, which loses at most the leased block.
    let _ = ctrlc::set_handler(move || {
        if requested.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}
