//! Parsing of a server address, and encryption of the connection.

use std::{path::PathBuf, str::FromStr, sync::Arc};

use postgres::{
    Client, Config, NoTls,
    config::{Host, SslMode},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

/// How the connection to a server is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Protection {
    /// No encryption: a Unix socket, this machine, or `sslmode=disable`.
    Plain,
    /// TLS; one of these roots must have signed the certificate, which must name the host.
    Verified {
        /// A file of certificates; the roots of the operating system if none.
        roots: Option<PathBuf>,
    },
}

/// A parsed server URL.
pub(super) struct Address {
    config: Config,
    protection: Protection,
}

impl Address {
    /// Parses a URL. Refuses unknown settings, and repeats no part of the URL in errors.
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let malformed = |because: String| Error::Address { because };
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value))),
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config = Config::from_str(&plain).map_err(|error| malformed(error.to_string()))?;
        let protection = match mode.as_deref() {
            None if is_local(&config) && roots.is_none() => Protection::Plain,
            None | Some("require" | "verify-ca" | "verify-full") => Protection::Verified { roots },
            Some("disable") => Protection::Plain,
            Some(_) => {
                let because = "sslmode is unknown or allows plain text; expected verify-full, verify-ca, require or disable";
                return Err(malformed(because.into()));
            }
        };
        config.ssl_mode(if protection == Protection::Plain { SslMode::Disable } else { SslMode::Require });
        Ok(Self { config, protection })
    }

    pub(super) fn connect(&self) -> Result<Client, Error> {
        let failed = |cause| Error::Postgres { doing: "connecting to the server", cause };
        match &self.protection {
            Protection::Plain => self.config.connect(NoTls).map_err(failed),
            Protection::Verified { roots } => {
                self.config.connect(MakeRustlsConnect::new(tls(roots.as_ref())?)).map_err(failed)
            }
        }
    }
}

/// A TLS configuration that trusts these root certificates.
fn tls(roots: Option<&PathBuf>) -> Result<ClientConfig, Error> {
    let mut store = RootCertStore::empty();
    if let Some(path) = roots {
        let unusable = |error: &dyn std::fmt::Display| Error::Address {
            because: format!("the root certificates {} cannot be used: {error}", path.display()),
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))? {
            store.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
        }
    } else {
        // Unreadable certificates of the operating system are skipped, so they are not trusted.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if store.is_empty() {
        let because =
            "there are no root certificates to check the server by; name a file with ?sslrootcert=FILE"
                .into();
        return Err(Error::Address { because });
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions();
    let builder =
        builder.map_err(|error| Error::Address { because: format!("TLS is not available: {error}") })?;
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

/// Whether all hosts of the server are this machine.
fn is_local(config: &Config) -> bool {
    let loopback = |name: &str| {
        name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    };
    let local = |host: &Host| match host {
        Host::Tcp(name) => loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(local) && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits: Vec<u8> = if byte == b'%' { rest.clone().take(2).collect() } else { Vec::new() };
        match std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.len() == 2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(decoded) => {
                bytes.push(decoded);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(url: &str) -> Result<Protection, String> {
        Address::new(url).map(|address| address.protection).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_text_goes_to_this_machine_or_where_it_is_asked_for() {
        let verified = || Ok(Protection::Verified { roots: None });
        for (url, expected) in [
            ("postgres://u@%2Fvar%2Frun/db", Ok(Protection::Plain)),
            ("postgres://u@localhost/db", Ok(Protection::Plain)),
            ("postgres://u@127.0.0.1:5433/db", Ok(Protection::Plain)),
            ("postgres://u@[::1]/db", Ok(Protection::Plain)),
            ("postgres://u@example.org/db", verified()),
            ("postgres://u@localhost,example.org/db", verified()),
            ("postgres://u@localhost/db?hostaddr=192.0.2.1", verified()),
            ("postgres://u@example.org/db?sslmode=require", verified()),
            ("postgres://u@localhost/db?sslmode=verify-full", verified()),
            ("postgres://u@example.org/db?sslmode=disable", Ok(Protection::Plain)),
        ] {
            assert_eq!(protection(url), expected, "{url}");
        }
        let roots = protection("postgres://u@localhost/db?sslrootcert=%2Fetc%2Froots.pem&connect_timeout=3");
        assert_eq!(roots, Ok(Protection::Verified { roots: Some("/etc/roots.pem".into()) }));
        for mode in ["prefer", "allow", "", "no"] {
            let refused =
                protection(&format!("postgres://u:secret@example.org/db?sslmode={mode}")).unwrap_err();
            assert!(refused.contains("plain text") && !refused.contains("secret"), "{refused}");
        }
        let refused = protection("postgres://u:secret@example.org/db?password=hidden&port=x").unwrap_err();
        assert!(!refused.contains("secret") && !refused.contains("hidden"), "{refused}");
    }
}
