//! Lists of keys, as a user writes them on the command line.

/// Keys of a histogram or of groups, from one occurrence of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys(Vec<String>);

/// All keys of a flag that may occur several times.
pub(super) fn list(keys: Option<&[Keys]>) -> Option<Vec<String>> {
    keys.map(|keys| keys.iter().flat_map(|keys| keys.0.clone()).collect())
}

/// The keys of each occurrence of a flag.
pub(super) fn lists(keys: Option<&[Keys]>) -> Option<Vec<Vec<String>>> {
    keys.map(|keys| keys.iter().map(|keys| keys.0.clone()).collect())
}

/// Parses keys that are separated by commas, with the rules of a line of CSV.
///
/// A key that begins with a double quote ends with the next one that is not doubled.
pub(super) fn parse(text: &str) -> Result<Keys, String> {
    let (mut keys, mut rest) = (Vec::new(), text);
    loop {
        let (key, after) = if let Some(quoted) = rest.strip_prefix('"') {
            unquote(quoted)?
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        };
        keys.push(key);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(Keys(keys)),
            None => return Err("expected a comma after a key in double quotes".into()),
        }
    }
}

/// The text up to the closing quote, and what follows the quote.
fn unquote(text: &str) -> Result<(String, &str), String> {
    let (mut key, mut rest) = (String::new(), text);
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err("expected a double quote at the end of the key".into());
        };
        key.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => (rest, key) = (next, key + "\""),
            None => return Ok((key, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_a_line_of_csv() {
        for (text, expected) in [
            ("a,b,c", &["a", "b", "c"][..]),
            ("a b, c", &["a b", " c"]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("c,\"say \"\"a\"\"\"", &["c", "say \"a\""]),
            ("5\" pipe,>50K", &["5\" pipe", ">50K"]),
            ("", &[""]),
            ("a,,\"\"", &["a", "", ""]),
        ] {
            assert_eq!(parse(text).unwrap().0, expected, "{text}");
        }
        for wrong in ["\"a", "\"a\"b,c", "a,\""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
