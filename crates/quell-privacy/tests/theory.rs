//! Theory links: citations in the code and the pages of the theory must agree.
//!
//! The index is THEORY.md. The derivations are the pages in `docs/theory`, and their sections are the
//! headings of level two.

// The lints against reading files are those of the library; its tests read the documents.
#![allow(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file and its text.
struct Source {
    path: PathBuf,
    text: String,
}

/// All files below a folder whose names end like this.
fn files(folder: &Path, extension: &str, into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, into);
        } else if path.extension().is_some_and(|e| e == extension) {
            let text = fs::read_to_string(&path).unwrap();
            into.push(Source { path, text });
        }
    }
}

/// The Rust files below a folder of the workspace.
fn code(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    files(&root().join(folder), "rs", &mut found);
    found
}

/// The index of the theory.
fn index() -> String {
    fs::read_to_string(root().join("THEORY.md")).unwrap()
}

/// The pages of `docs/theory`, by name.
fn pages() -> BTreeMap<String, String> {
    let mut found = Vec::new();
    files(&root().join("docs/theory"), "md", &mut found);
    let named = |page: Source| (page.path.file_name().unwrap().to_str().unwrap().to_owned(), page.text);
    found.into_iter().map(named).collect()
}

/// The index and all pages, by name.
fn theory() -> BTreeMap<String, String> {
    let mut all = pages();
    all.insert("THEORY.md".to_owned(), index());
    all
}

/// The headings of level two of a page.
fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

/// Letters, then two digits: `MTZ19`.
fn is_key(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() == letters.len() + 2
        && !letters.is_empty()
        && letters.chars().all(char::is_alphabetic)
        && word.starts_with(|c: char| c.is_uppercase())
}

/// Keys inside square brackets, in comments and strings: a slice of numbers is no citation.
fn cited_keys(code: &[Source]) -> BTreeSet<String> {
    let lines = code.iter().flat_map(|file| file.text.lines());
    let text: String = lines
        .filter(|line| line.contains("//") || line.contains('"'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let brackets =
        text.split('[').skip(1).filter_map(|rest| rest.split(']').next()).filter(|inside| inside.len() < 80);
    let words = brackets.flat_map(|inside| inside.split([',', ';', ' ']).map(str::trim));
    words.filter(|word| is_key(word)).map(str::to_owned).collect()
}

#[test]
fn every_citation_has_a_row_and_every_row_is_cited() {
    let theory = index();
    let rows: BTreeSet<String> = theory
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|row| row.split(' ').next())
        .filter(|key| is_key(key))
        .map(str::to_owned)
        .collect();
    let code = cited_keys(&code("crates/quell-privacy/src"));
    assert!(rows.len() > 20, "{rows:?}");
    assert_eq!(
        code.difference(&rows).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "cited without a row in THEORY.md"
    );
    assert_eq!(rows.difference(&code).collect::<Vec<_>>(), Vec::<&String>::new(), "rows that no code cites");
}

/// The text of a file in one line, without the marks of comments.
fn in_one_line(text: &str) -> String {
    let words = text.lines().map(|line| line.trim().trim_start_matches(['/', '!']).trim_start());
    words.flat_map(|line| [line, " "]).collect()
}

/// What the code calls the sections that it cites: what follows "THEORY" and a comma.
///
/// Each is the beginning of a text, since only the names of the sections tell where a name ends.
fn cited_sections(text: &str) -> Vec<String> {
    let text = in_one_line(text);
    let after = text.match_indices("THEORY").map(|(place, word)| &text[place + word.len()..]);
    let named = after.filter_map(|rest| rest.strip_prefix(".md").unwrap_or(rest).strip_prefix(", "));
    let capital = named.filter(|rest| rest.starts_with(char::is_uppercase));
    capital.map(|rest| rest.chars().take(80).collect()).collect()
}

/// The section with which a text begins, and the rest of the text.
fn leading_section<'s, 't>(text: &'t str, sections: &[&'s str]) -> Option<(&'s str, &'t str)> {
    let fits = |name: &&'s str| {
        let rest = text.strip_prefix(*name)?;
        (!rest.starts_with(char::is_alphanumeric)).then_some((*name, rest))
    };
    sections.iter().filter_map(fits).max_by_key(|(name, _)| name.len())
}

#[test]
fn every_section_cited_in_the_code_is_on_a_page() {
    let pages = pages();
    let all: Vec<&str> = pages.values().flat_map(|page| sections(page)).collect();
    let mut seen = 0;
    for file in code("crates") {
        for citation in cited_sections(&file.text) {
            let mut rest = citation.as_str();
            loop {
                let Some((_, after)) = leading_section(rest, &all) else {
                    let cited: String = rest.chars().take(24).collect();
                    panic!("{} cites the section {cited:?}, which no page has", file.path.display())
                };
                seen += 1;
                // Further names follow a comma or a semicolon and begin with a capital letter.
                let next = after.strip_prefix(", ").or_else(|| after.strip_prefix("; "));
                let Some(next) = next.filter(|next| next.starts_with(char::is_uppercase)) else { break };
                if is_key(next.split([',', ';', ']', ')']).next().unwrap_or_default()) {
                    break;
                }
                rest = next;
            }
        }
    }
    assert!(seen > 40, "only {seen} citations found");
}

#[test]
fn the_index_says_which_page_has_which_section() {
    let index = index();
    let mut names = BTreeSet::new();
    for (file, page) in pages() {
        for section in sections(&page) {
            assert!(names.insert(section.to_owned()), "two sections are called {section:?}");
            let anchor = section.to_lowercase().replace(' ', "-");
            let link = format!("[{section}](docs/theory/{file}#{anchor})");
            assert!(index.contains(&link), "THEORY.md lacks {link}");
        }
    }
    let links = index.matches("](docs/theory/").count() - index.matches(".md](docs/theory/").count();
    assert_eq!(links, names.len(), "THEORY.md has a link to a section that no page has");
}

/// The cells of a column, in all tables of a page that have it.
fn column<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let mut found = Vec::new();
    let mut place = None;
    let mut is_head = true;
    for line in page.lines() {
        let Some(row) = line.strip_prefix('|') else {
            is_head = true;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if is_head {
            place = cells.iter().position(|cell| *cell == name);
            is_head = false;
        } else if let Some(cell) = place.and_then(|place| cells.get(place)) {
            found.push(*cell);
        }
    }
    found
}

/// The pieces between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a file whose path ends like this has a test of this name.
fn has_test(code: &[Source], path: &str, test: Option<&str>) -> bool {
    let mut files = code.iter().filter(|file| file.path.ends_with(path));
    files.any(|file| test.is_none_or(|test| file.text.contains(&format!("fn {test}("))))
}

#[test]
fn every_test_named_in_the_theory_exists() {
    let code = code("crates");
    let mut seen = 0;
    for (name, page) in theory() {
        for cell in column(&page, "test") {
            let mut file = "";
            for test in quoted(cell) {
                // A test without a file is in the file that was named before it.
                let (path, test) = match test.split_once("::") {
                    Some((path, test)) => (path, Some(test)),
                    None if Path::new(test).extension().is_some() => (test, None),
                    None => (file, Some(test)),
                };
                assert!(has_test(&code, path, test), "{name} names {path} {test:?}, which does not exist");
                file = path;
                seen += 1;
            }
        }
        // Tests that the text names, beside those of the tables.
        for (path, test) in quoted(&page).filter_map(|quote| quote.split_once(".rs::")) {
            let path = format!("{path}.rs");
            assert!(has_test(&code, &path, Some(test)), "{name} names {path}::{test}, which does not exist");
        }
    }
    assert!(seen > 100, "only {seen} tests found");
}

/// Whether a file defines an item or a variant of this name.
fn defines(text: &str, name: &str) -> bool {
    let is_item = ["fn", "struct", "enum", "trait", "mod", "const", "type"].iter().any(|word| {
        text.match_indices(&format!("{word} {name}")).any(|(place, found)| {
            !text[place + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    });
    let is_variant = || {
        text.lines().any(|line| {
            let rest = line.trim_start().strip_prefix(name);
            line.starts_with(' ')
                && rest.is_some_and(|rest| rest.starts_with([',', '(']) || rest.starts_with(" {"))
        })
    };
    is_item || is_variant()
}

#[test]
fn every_place_named_in_the_table_of_theorems_exists() {
    let code = code("crates/quell-privacy/src");
    let index = index();
    let cells = column(&index, "where in `quell-privacy`");
    let places: BTreeSet<&str> = cells.into_iter().flat_map(quoted).collect();
    assert!(places.len() > 40, "{places:?}");
    for place in places {
        let exists = code.iter().any(|file| {
            let module = file.path.with_extension("");
            let is_module = |name: &str| module.components().any(|part| part.as_os_str() == name);
            place.split("::").all(|name| is_module(name) || defines(&file.text, name))
        });
        assert!(exists, "THEORY.md names {place}, which does not exist");
    }
}
