//! Protects the memory of the process from core dumps and other processes of the user.

/// Disables core dumps and, on Linux, debuggers.
///
/// If the system refuses, the command continues, as SECURITY.md states.
pub(crate) fn protect() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, setrlimit};
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    }
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn no_core_is_dumped_and_no_debugger_attaches() {
        super::protect();
        assert_eq!(nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE), Ok((0, 0)));
        assert_eq!(nix::sys::prctl::get_dumpable(), Ok(false));
    }
}
