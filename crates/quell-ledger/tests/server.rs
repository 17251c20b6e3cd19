//! Ledgers on a PostgreSQL server: rules, roles and connections.

use quell_ledger::{Error, Problem, Store, verify};

use super::fixture::{DATASET, charge, count, create, open, server::Server};

/// Runs a test on a server, if there is one.
fn with(server: Result<Server, String>, test: impl FnOnce(&Server)) {
    match server {
        Ok(server) => test(&server),
        Err(why) => eprintln!("NOT RUN: a test on PostgreSQL, because {why}"),
    }
}

fn sql(url: &str, sql: &str) -> Result<(), String> {
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.batch_execute(sql).map_err(|error| format!("{error:?}"))
}

/// Whether a rule of the ledger was found to be missing or altered, at opening and by verification.
fn is_strange(url: &str, key: &std::path::Path) -> bool {
    let opened = Store::open_with_key(url, key).err();
    let refused =
        matches!(&opened, Some(Error::Damaged(finding)) if matches!(finding.problem, Problem::Schema { .. }));
    let found = verify(url, &[], &[]).unwrap().findings;
    let seen = found.iter().any(|finding| matches!(finding.problem, Problem::Schema { .. }));
    assert_eq!(refused, seen, "{opened:?} {found:?}");
    refused
}

#[test]
fn rules_that_were_altered_are_found_at_opening() {
    let alterations = [
        "CREATE OR REPLACE FUNCTION quell_never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$",
        "CREATE OR REPLACE FUNCTION quell_entries_follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "ALTER FUNCTION quell_datasets_grow() SET search_path = pg_temp, public",
        "ALTER FUNCTION quell_never() SECURITY DEFINER",
        "ALTER TABLE quell_entries DISABLE TRIGGER quell_entries_stay",
        "ALTER TABLE quell_entries ENABLE REPLICA TRIGGER quell_entries_stay",
        "DROP TRIGGER quell_meta_stay ON quell_meta",
        "DROP TRIGGER quell_entries_stay ON quell_entries;
         CREATE TRIGGER quell_entries_stay BEFORE UPDATE ON quell_entries FOR EACH ROW EXECUTE FUNCTION quell_never()",
        "DROP TRIGGER quell_entries_stay ON quell_entries;
         CREATE TRIGGER quell_entries_stay BEFORE UPDATE OR DELETE ON quell_entries FOR EACH ROW WHEN (false) EXECUTE FUNCTION quell_never()",
        "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.spent = 0; RETURN NEW; END $$;
         CREATE TRIGGER zz BEFORE UPDATE ON quell_datasets FOR EACH ROW EXECUTE FUNCTION other()",
        "CREATE RULE nothing AS ON INSERT TO quell_entries DO INSTEAD NOTHING",
        "ALTER TABLE quell_datasets ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE quell_datasets DROP CONSTRAINT quell_datasets_last; ALTER TABLE quell_entries SET UNLOGGED",
        "ALTER TABLE quell_datasets DROP CONSTRAINT quell_datasets_last",
        "ALTER TABLE quell_datasets DROP CONSTRAINT quell_datasets_check1",
    ];
    with(Server::start(), |server| {
        let directory = tempfile::tempdir().unwrap();
        for (number, alteration) in alterations.iter().enumerate() {
            let (url, key) = (
                server.database(&format!("altered{number}")),
                directory.path().join(format!("{number}.key")),
            );
            charge(&mut create(&Store::create_with_key(url.as_str(), &key).unwrap(), DATASET, Some(10.0)), 1);
            assert!(!is_strange(&url, &key), "before: {alteration}");
            sql(&url, alteration).unwrap();
            assert!(is_strange(&url, &key), "{alteration}");
            let store = Store::create_with_key(url.as_str(), &key);
            assert!(store.is_err(), "and nothing is made good in silence: {alteration}");
        }
    });
}

#[test]
fn functions_of_the_first_version_are_renewed() {
    with(Server::start(), |server| {
        let directory = tempfile::tempdir().unwrap();
        let (url, key) = (server.database("renewed"), directory.path().join("signing.key"));
        charge(&mut create(&Store::create_with_key(url.as_str(), &key).unwrap(), DATASET, Some(10.0)), 1);
        for function in ["quell_never", "quell_entries_follow", "quell_datasets_grow"] {
            sql(&url, &format!("ALTER FUNCTION {function}() RESET search_path")).unwrap();
        }
        let old =
            |store: &mut Store| store.verify(&[], &[]).notes.iter().any(|note| note.contains("search path"));
        let mut store = Store::open_with_key(url.as_str(), &key).unwrap();
        assert!(old(&mut store));
        charge(&mut open(&store, DATASET), 1);
        assert!(!old(&mut Store::create_with_key(url.as_str(), &key).unwrap()));
        assert!(store.verify(&[], &[]).is_good());
    });
}

#[test]
fn a_role_that_may_append_may_do_nothing_else() {
    with(Server::start(), |server| {
        let directory = tempfile::tempdir().unwrap();
        let (url, key) = (server.database("granted"), directory.path().join("signing.key"));
        let mut store = Store::create_with_key(url.as_str(), &key).unwrap();
        charge(&mut create(&store, DATASET, Some(10.0)), 1);
        sql(&url, "CREATE ROLE analyst LOGIN; CREATE ROLE stranger LOGIN").unwrap();
        let (analyst, stranger) = (url.replace("quell@", "analyst@"), url.replace("quell@", "stranger@"));
        assert!(
            Store::open_with_key(analyst.as_str(), &key)
                .and_then(|store| store.book(DATASET))
                .map(drop)
                .is_err()
                || Store::open_with_key(analyst.as_str(), &key)
                    .is_ok_and(|mut store| store.datasets().is_err())
        );
        store.grant("analyst").unwrap();
        let mut theirs = Store::open_with_key(analyst.as_str(), &key).unwrap();
        charge(&mut open(&theirs, DATASET), 1);
        drop(create(&theirs, "another", Some(1.0)));
        for forbidden in [
            "DELETE FROM quell_entries",
            "TRUNCATE quell_entries CASCADE",
            "UPDATE quell_entries SET body = 'x'",
            "UPDATE quell_datasets SET name = 'x'",
            "INSERT INTO quell_meta VALUES ('x', 'x')",
            "UPDATE quell_meta SET value = 'x'",
            "DROP TRIGGER quell_entries_stay ON quell_entries",
            "ALTER TABLE quell_entries DISABLE TRIGGER ALL",
            "DROP TABLE quell_entries CASCADE",
            "CREATE OR REPLACE FUNCTION quell_never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$",
            "SET session_replication_role = replica",
            "GRANT DELETE ON quell_entries TO analyst",
            "CREATE TRIGGER zz BEFORE UPDATE ON quell_datasets FOR EACH ROW EXECUTE FUNCTION quell_never()",
        ] {
            let said = sql(&analyst, forbidden);
            // Granting what one may not grant is a warning, and grants nothing.
            assert!(said.is_err() || forbidden.starts_with("GRANT"), "{forbidden}");
        }
        assert!(
            sql(&analyst, "DELETE FROM quell_entries").unwrap_err().contains("42501"),
            "for lack of a right, not by a rule"
        );
        assert!(sql(&stranger, "SELECT * FROM quell_entries").is_err());
        assert!(!theirs.verify(&[], &[]).notes.iter().any(|note| note.contains("superuser")));
        let report = store.verify(&[], &[]);
        assert!(report.is_good() && report.lines == 4, "{report:?}");
        assert!(report.notes.iter().any(|note| note.contains("superuser")), "{report:?}");
        assert!(store.grant("nobody in particular").is_err());
    });
}

#[test]
fn a_connection_over_the_network_is_encrypted_and_its_certificate_is_checked() {
    with(Server::start_encrypted(), |server| {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("signing.key");
        server.database("encrypted");
        let roots = |name: &str| server.file(name).to_str().unwrap().replace('/', "%2F");
        let checked = |host: &str, root: &str| {
            format!("{}?sslrootcert={}", server.network(host, "encrypted"), roots(root))
        };
        let good = checked("localhost", "root.pem");
        charge(&mut create(&Store::create_with_key(good.as_str(), &key).unwrap(), DATASET, Some(10.0)), 1);
        assert!(Store::open_with_key(checked("127.0.0.1", "root.pem").as_str(), &key).is_ok());
        for (bad, why) in [
            (checked("localhost", "other.pem"), "signed by somebody else"),
            (checked("localhost", "missing.pem"), "no such roots"),
            (checked("localhost", "hba"), "no certificates"),
            (
                format!("{}?sslmode=verify-full", server.network("localhost", "encrypted")),
                "not signed by a root of the system",
            ),
            (
                format!("{}?sslmode=disable", server.network("localhost", "encrypted")),
                "the server takes no plain text",
            ),
            (server.network("localhost", "encrypted"), "nor by default"),
            (checked("127.0.0.2", "root.pem"), "a name that is not in the certificate"),
        ] {
            assert!(Store::open_with_key(bad.as_str(), &key).is_err(), "{why}");
        }
    });
    // A server that speaks plain text only is not spoken to, unless the URL says so.
    with(Server::start(), |server| {
        let url = server.database("plain");
        assert!(matches!(
            Store::open(format!("{url}?sslmode=require").as_str()).err(),
            Some(Error::Postgres { .. })
        ));
        assert!(matches!(
            Store::open(format!("{url}?sslmode=prefer").as_str()).err(),
            Some(Error::Address { .. })
        ));
    });
}

#[test]
fn a_file_has_no_roles() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::create(directory.path()).unwrap();
    assert!(matches!(store.grant("analyst"), Err(Error::NotAServer { .. })));
    let mut ledger = create(&store, DATASET, None);
    let _paid = ledger.charge(count(1.0)).unwrap();
}
