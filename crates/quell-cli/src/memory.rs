//! The memory of a process that reads private records: no copy of it is left on disk, and no other process of the user looks into it.

/// Asks the system for no core dumps and, on Linux, for no debugger either. Where the system refuses, the command goes on, as SECURITY says.
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
