//! The documents say only what is true: their commands are run, and what the commands print is compared.
//!
//! The pages are README.md and every Markdown file in `docs`, `docs/guide` and `docs/theory`. The commands of a page run one after the
//! other in a folder of their own, which holds a copy of `examples`. Blocks mean:
//!
//! - `console`: commands after `$ ` and what they print, standard output first. A backslash at the end of a line
//!   or an open quote continues a command. A line `…` stands for any number of lines.
//! - `console random`: the same, but numbers, hashes and the width of columns may differ.
//! - `toml file=NAME` (or `csv`, `json`): the block is written to that file before the next command runs.
//!
//! A command fails exactly if the page shows that it does: with `refused:` or `claim: nothing` it exits with 1, with
//! `error:` it exits with 2. `QUELL_UPDATE_DOCUMENTS=1` writes what was printed into the pages where it differs.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::command::{folder, words};

/// A block between two fences.
struct Block<'a> {
    /// What stands behind the opening fence.
    info: &'a str,
    /// The lines between the fences.
    lines: Vec<&'a str>,
    /// The number of the line after the opening fence, counted from 0.
    start: usize,
}

/// A command of a page, and what the page says that it prints.
struct Shown {
    command: String,
    expected: Vec<String>,
    /// Where the output starts in the page, counted in lines from 0.
    start: usize,
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// Markdown files in a folder of the workspace, in the order of their names.
fn markdown(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        entries.filter(|name| is_markdown(name)).map(|name| format!("{folder}/{name}")).collect();
    names.sort();
    names
}

/// All pages whose commands run.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    pages.extend(markdown("docs"));
    pages.extend(markdown("docs/guide"));
    pages.extend(markdown("docs/theory"));
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// The fenced blocks of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), is_open) {
            (Some(info), false) => {
                found.push(Block { info: info.trim(), lines: Vec::new(), start: number + 1 });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => found.last_mut().unwrap().lines.push(line),
            (None, false) => {}
        }
    }
    assert!(!is_open, "a block has no end");
    found
}

/// The commands of a console block.
fn shown(block: &Block<'_>) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut lines = block.lines.iter().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if let Some(first) = line.strip_prefix("$ ") {
            let (mut command, mut end) = (first.to_owned(), number);
            while command.ends_with('\\') || is_quote_open(&command) {
                let (number, next) = lines.next().expect("a command goes on after a backslash or in quotes");
                command = match command.strip_suffix('\\') {
                    Some(open) => format!("{open}{}", next.trim_start()),
                    None => format!("{command}\n{next}"),
                };
                end = number;
            }
            all.push(Shown { command, expected: Vec::new(), start: block.start + end + 1 });
        } else {
            all.last_mut().expect("a console block starts with a command").expected.push((*line).to_owned());
        }
    }
    all
}

/// Whether a quote has no end yet.
fn is_quote_open(text: &str) -> bool {
    let mut quote = None;
    for c in text.chars().filter(|c| ['"', '\''].contains(c)) {
        quote = match quote {
            None => Some(c),
            Some(open) if open == c => None,
            open => open,
        };
    }
    quote.is_some()
}

/// Hexadecimal digits from which on they are a hash.
const HASH: usize = 16;

/// A line with `#` for each number and hash, and one space for several.
fn without_numbers(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let is_digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let mut masked = String::new();
    let mut at = 0;
    while at < letters.len() {
        let starts_word =
            masked.chars().next_back().is_none_or(|last| last.is_whitespace() || "([".contains(last));
        let hash =
            letters[at..].iter().take_while(|c| c.is_ascii_digit() || ('a'..='f').contains(*c)).count();
        if hash >= HASH {
            at += hash;
            masked.push('#');
        } else if is_digit(at) || (letters[at] == '-' && starts_word && is_digit(at + 1)) {
            at += 1;
            while is_digit(at)
                || (letters.get(at) == Some(&'.') && is_digit(at + 1))
                || (letters.get(at) == Some(&'e')
                    && (is_digit(at + 1) || (letters.get(at + 1) == Some(&'-') && is_digit(at + 2))))
                || (letters.get(at) == Some(&'-') && letters[at - 1] == 'e' && is_digit(at + 1))
            {
                at += 1;
            }
            masked.push('#');
        } else {
            if letters[at] != ' ' || !masked.ends_with(' ') {
                masked.push(letters[at]);
            }
            at += 1;
        }
    }
    masked
}

/// Whether lines are as they are expected; `…` stands for any number of them.
fn agree(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=actual.len()).any(|skipped| agree(rest, &actual[skipped..]))
        }
        Some((line, rest)) => actual.first() == Some(line) && agree(rest, &actual[1..]),
    }
}

/// The lines that replace expected lines in a page: what was printed, with the ellipses of the page.
///
/// A line of text that differs only in its numbers stays as it is; prose may refer to it.
fn updated(expected: &[String], actual: &[String]) -> Vec<String> {
    let is_same = |old: &String, new: &String| {
        without_numbers(old) == without_numbers(new) && !new.contains("  ") && !new.starts_with('|')
    };
    let merged = |old: &[String], new: &[String]| -> Vec<String> {
        let kept = new
            .iter()
            .enumerate()
            .map(|(at, new)| old.get(at).filter(|old| is_same(old, new)).unwrap_or(new));
        kept.cloned().collect()
    };
    let parts: Vec<&[String]> = expected.split(|line| line == "…").collect();
    let [first, between @ .., last] = parts.as_slice() else { return merged(expected, actual) };
    if first.len() + last.len() > actual.len() {
        return actual.to_vec();
    }
    let mut lines = merged(first, &actual[..first.len()]);
    for part in between {
        lines.push("…".into());
        lines.extend_from_slice(part);
    }
    lines.push("…".into());
    lines.extend(merged(last, &actual[actual.len() - last.len()..]));
    lines
}

/// The exit code that belongs to what a page shows.
fn code(lines: &[String]) -> i32 {
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    if has("error: ") { 2 } else { i32::from(has("refused: ") || has("claim: nothing")) }
}

/// Runs the commands of a page: how many there are, what is wrong, and the page as it would be true.
fn check(page: &str) -> (usize, String, String) {
    let text = read(page);
    let here = folder(&page.replace(['/', '.'], "-"));
    fs::create_dir(here.join("examples")).unwrap();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, here.join("examples").join(path.file_name().unwrap())).unwrap();
        }
    }
    let (mut run, mut faults) = (0, String::new());
    let mut changes: Vec<(usize, usize, Vec<String>)> = Vec::new();
    for block in blocks(&text) {
        let (language, mark) = block.info.split_once(' ').unwrap_or((block.info, ""));
        if let Some(name) = mark.strip_prefix("file=") {
            fs::write(here.join(name), block.lines.join("\n") + "\n").unwrap();
        }
        if language != "console" {
            continue;
        }
        assert!(
            ["", "random"].contains(&mark),
            "{page}: a console block is {mark:?}, expected random or nothing"
        );
        for Shown { command, expected, start } in shown(&block) {
            if command == "make test" {
                assert!(expected.is_empty(), "the test command is this test's own");
                continue;
            }
            let arguments =
                command.strip_prefix("quell ").or(command.strip_prefix("cargo run --release -- "));
            let arguments = arguments.unwrap_or_else(|| panic!("{page}: cannot run `{command}`"));
            let output = Command::new(env!("CARGO_BIN_EXE_quell"))
                .args(words(arguments))
                .current_dir(&here)
                .env_remove("QUELL_LEDGER")
                .env("QUELL_USER", "ada")
                .output()
                .unwrap();
            let printed =
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            let actual: Vec<String> = printed.lines().map(str::to_owned).collect();
            let masked = |lines: &[String]| -> Vec<String> {
                if mark == "random" {
                    lines
                        .iter()
                        .filter(|line| !depends_on_noise(line))
                        .map(|line| without_numbers(line))
                        .collect()
                } else {
                    lines.to_vec()
                }
            };
            run += 1;
            if !agree(&masked(&expected), &masked(&actual)) {
                writeln!(
                    faults,
                    "{page}:{start}: `{command}` prints\n{printed}expected\n{}\n",
                    expected.join("\n")
                )
                .unwrap();
                changes.push((start, expected.len(), updated(&expected, &actual)));
            }
            if output.status.code() != Some(code(&actual)) {
                writeln!(
                    faults,
                    "{page}:{start}: `{command}` ends with {}, and prints\n{printed}",
                    output.status
                )
                .unwrap();
            }
        }
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (start, length, actual) in changes.into_iter().rev() {
        lines.splice(start..start + length, actual);
    }
    (run, faults, lines.join("\n") + "\n")
}

/// Whether a line is there or not by chance: how far a few records stand out from the noise.
fn depends_on_noise(line: &str) -> bool {
    line.starts_with("warning: what this run released cannot be told from noise")
}

#[test]
fn commands_of_the_documents_print_the_shown_output() {
    let updates = std::env::var_os("QUELL_UPDATE_DOCUMENTS").is_some();
    let (mut all, mut run) = (String::new(), 0);
    for page in pages() {
        let (commands, faults, text) = check(&page);
        run += commands;
        if updates && text != read(&page) {
            fs::write(root().join(&page), text).unwrap();
        }
        all.push_str(&faults);
    }
    assert!(
        all.is_empty(),
        "{all}hint: QUELL_UPDATE_DOCUMENTS=1 writes what is printed into the pages; read what it wrote"
    );
    assert!(run >= 100, "only {run} commands found");
}

/// The dataset, the line of the ledger and the budget in `charged to "census" in line 3: ε 0.3000 of 8 is spent`.
fn charged(line: &str) -> Option<(&str, u64, &str)> {
    let (dataset, rest) = line.strip_prefix("charged to \"")?.split_once("\" in line ")?;
    let (number, rest) = rest.split_once([':', ','])?;
    let budget = rest.split_once(" of ")?.1.strip_suffix(" is spent")?;
    Some((dataset, number.parse().ok()?, budget))
}

#[test]
fn charges_of_a_page_are_in_the_order_of_their_lines_and_have_one_budget() {
    let found = charged("charged to \"census\" in line 3: ε 0.3000 of 8 is spent");
    assert_eq!(found, Some(("census", 3, "8")));
    for page in pages() {
        let text = read(&page);
        let mut last: Vec<(&str, u64, &str)> = Vec::new();
        for line in text.lines() {
            if line.starts_with("$ quell ledger create") || line.starts_with("$ quell ledger raise") {
                last.retain(|(dataset, ..)| !line.contains(dataset));
            }
            let Some((dataset, number, budget)) = charged(line) else { continue };
            if let Some(before) = last.iter_mut().find(|(known, ..)| *known == dataset) {
                assert!(before.1 <= number && before.2 == budget, "{page}: {line:?} follows {before:?}");
                before.1 = number;
            } else {
                last.push((dataset, number, budget));
            }
        }
    }
}

/// The targets of the links of a page that lead to files, without their anchors.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let pieces = line.split("](").skip(1).filter(|_| !is_code);
        let ends = pieces.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        let files = ends.filter(|target| !target.contains("://") && !target.starts_with('#'));
        targets.extend(files.map(|target| target.split('#').next().unwrap_or_default().to_owned()));
    }
    targets
}

#[test]
fn links_lead_to_files_and_links_of_the_guide_stay_in_the_guide() {
    for page in pages() {
        let beside = root().join(&page).parent().unwrap().to_owned();
        for target in links(&read(&page)) {
            assert!(beside.join(&target).exists(), "{page} links to {target}, which is not there");
            let is_page = !target.contains('/') && is_markdown(&target);
            // Pictures are in the folder above, and in the book.
            let is_picture = Path::new(&target).extension().is_some_and(|extension| extension == "png")
                && target.matches('/').count() == 1
                && target.starts_with("../");
            assert!(
                is_page || is_picture || !page.starts_with("docs/guide/"),
                "{page} links to {target}, which is not in the book"
            );
        }
    }
}

#[test]
fn the_summary_of_the_book_lists_every_page_once() {
    let mut listed: Vec<String> =
        links(&read("docs/SUMMARY.md")).iter().map(|page| format!("docs/{page}")).collect();
    listed.sort();
    let mut there = [markdown("docs"), markdown("docs/guide"), markdown("docs/theory")].concat();
    there.retain(|page| page != "docs/SUMMARY.md");
    there.sort();
    assert_eq!(listed, there);
}

/// rustdoc takes a block without a language for Rust, and compiles only pages that a crate includes.
#[test]
fn programs_of_the_guide_are_compiled_by_a_crate() {
    let crates: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("src/lib.rs")).ok())
        .collect();
    for page in markdown("docs/guide") {
        let text = read(&page);
        let infos: Vec<&str> = blocks(&text).iter().map(|block| block.info).collect();
        assert!(!infos.contains(&""), "{page} has a block without a language");
        let is_included =
            crates.iter().any(|library| library.contains(&format!("include_str!(\"../../../{page}\")")));
        assert_eq!(
            is_included,
            infos.contains(&"rust"),
            "{page}: Rust in it and include_str! in a crate do not agree"
        );
    }
}

#[test]
fn only_numbers_are_masked() {
    assert_eq!(without_numbers("mean: 38.58 ± 0.12, line 3 of 10."), "mean: # ± #, line # of #.");
    assert_eq!(
        without_numbers("δ = 1e-5, from -3, census-1, 1.5e300 (-2)"),
        "δ = #, from #, census-#, # (#)"
    );
    assert_eq!(without_numbers("Female    1663 ± 7"), "Female # ± #");
    assert_eq!(without_numbers("head ea0fbf0959ac00fc, face"), "head #, face");
    assert_ne!(without_numbers("ε ≤ 3 at δ"), without_numbers("ε < 3 at δ"));
}

#[test]
fn words_are_split_as_in_a_shell() {
    assert_eq!(
        words(r#"query a.csv count --where "age >= 65""#),
        ["query", "a.csv", "count", "--where", "age >= 65"]
    );
    assert_eq!(
        words(r#"account --event '{"pure": 1}' "" x"#),
        ["account", "--event", r#"{"pure": 1}"#, "", "x"]
    );
}

#[test]
fn only_an_ellipsis_stands_for_any_lines() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(agree(&lines("a\n…\nd"), &lines("a\nb\nc\nd")));
    assert!(agree(&lines("a\n…"), &lines("a")));
    assert!(!agree(&lines("a\n…\nd"), &lines("a\nb\nc")));
    assert!(!agree(&lines("a"), &lines("a\nb")));
}

#[test]
fn an_update_keeps_ellipses_and_lines_that_differ_only_in_numbers() {
    let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    let page = lines("count: 185 ± 31|…|middle|…|paid in line 1");
    let printed = lines("count: 197 ± 31|a|middle|b|charged in line 1");
    assert_eq!(updated(&page, &printed), lines("count: 185 ± 31|…|middle|…|charged in line 1"));
    assert_eq!(updated(&lines("name  1|old"), &lines("name  22|new|more")), lines("name  22|new|more"));
}

#[test]
fn a_command_may_take_several_lines() {
    let text = "```console random\n$ quell a \\\n    --b\nout\n$ quell '{\n  1}' \"'\"\n```\n";
    let found = shown(&blocks(text)[0]);
    assert_eq!((found[0].command.as_str(), found[0].start), ("quell a --b", 3));
    assert_eq!(found[0].expected, ["out"]);
    assert_eq!(found[1].command, "quell '{\n  1}' \"'\"");
    assert_eq!(words(&found[1].command), ["quell", "{\n  1}", "'"]);
}
