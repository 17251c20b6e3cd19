//! Reports and plots, drawn by a browser where there is one.
//!
//! `make screenshots` writes the pictures into `docs`. Without Chromium the structure of the page is checked, and
//! no picture is taken.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use crate::command::{folder, run, start};

/// The width of a picture.
const WIDTH: u32 = 1100;

/// The first browser of the Chromium family in the search path, or the one that a variable names.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("QUELL_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// A picture of a page, if there is a browser.
fn screenshot(page: &Path, height: u32) -> Option<Picture> {
    let Some(browser) = browser() else {
        eprintln!("no Chromium was found, so no picture of {} was taken", page.display());
        return None;
    };
    let (file, profile) = (page.with_extension("png"), page.with_extension("profile"));
    let status = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--blink-settings=preferredColorScheme=1"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={WIDTH},{height}"))
        .arg(format!("--screenshot={}", file.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the browser starts");
    assert!(status.success(), "{status}");
    let _ = fs::remove_dir_all(profile);
    Some(Picture::read(&file))
}

/// Red, green and blue pixels, row after row.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn read(file: &Path) -> Self {
        let mut decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap()));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels = bytes.chunks_exact(info.color_type.samples()).map(|p| [p[0], p[1], p[2]]).collect();
        Self { width: info.width as usize, height: info.height as usize, pixels }
    }

    /// The picture without the empty rows at its end.
    fn cropped(mut self) -> Self {
        let used = self.pixels.iter().rposition(|pixel| *pixel != [255; 3]).unwrap_or(0) / self.width;
        self.height = (used + 24).min(self.height);
        self.pixels.truncate(self.height * self.width);
        self
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &[u8; 3]> {
        self.pixels.iter().skip(column).step_by(self.width)
    }

    fn write(&self, file: &Path) {
        let mut encoder = png::Encoder::new(
            std::io::BufWriter::new(fs::File::create(file).unwrap()),
            self.width as u32,
            self.height as u32,
        );
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        encoder.write_header().unwrap().write_image_data(&self.pixels.concat()).unwrap();
    }
}

/// Writes the picture of a document anew, if this was asked for.
fn renew(picture: &Picture, name: &str) {
    if std::env::var_os("QUELL_UPDATE_SCREENSHOTS").is_some() {
        picture.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name));
    }
}

/// A folder with two runs on the census, with public test records: `income` and `hours`.
fn runs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let here = folder("screenshots");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let table = fs::read_to_string(examples.join("census.csv")).unwrap();
        let (header, records) = table.split_once('\n').unwrap();
        let lines: Vec<&str> = records.lines().collect();
        for (name, part) in [("census.csv", &lines[..3500]), ("test.csv", &lines[3500..])] {
            fs::write(here.join(name), format!("{header}\n{}\n", part.join("\n"))).unwrap();
        }
        for (name, schema) in [("income.toml", "census.toml"), ("hours.toml", "hours.toml")] {
            let mut schema = fs::read_to_string(examples.join(schema)).unwrap();
            write!(schema, "\n[test]\nfile = \"test.csv\"\npublic = true\n").unwrap();
            fs::write(here.join(name), schema).unwrap();
        }
        for (name, model) in [("income", "logistic"), ("hours", "linear")] {
            let ran = run(
                &here,
                &format!(
                    "train census.csv --schema {name}.toml --model {model} --epsilon 1 --delta 1e-6 \
                     --records 3500 --budget 3 --output {name}"
                ),
            );
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        here
    })
}

/// Figures are as wide as the text: the frames of figures are the last inked column, over most of the page.
fn check_width(picture: &Picture) {
    let is_inked = |column: usize| picture.column(column).filter(|pixel| **pixel != [255; 3]).count();
    let last = (0..picture.width).rev().find(|column| is_inked(*column) > 0).unwrap();
    let first = (0..picture.width).find(|column| is_inked(*column) > 0).unwrap();
    assert!(is_inked(last) > picture.height / 4, "{} of {}", is_inked(last), picture.height);
    assert!((first + last).abs_diff(picture.width - 1) <= 2, "{first} {last}: the page is in the middle");
    assert!(last - first > 950, "{first} {last}");
}

#[test]
fn a_report_of_classes_has_a_title_in_words_measures_and_figures() {
    let page = runs().join("income/report.html");
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "<h1>Logistic regression on census, predicts income</h1>",
        "always &lt;=50K",
        "Measures of each class",
        "Calibration of the probabilities",
        "Accuracy over the run",
        "most frequent class",
        "Shares are those of a row.",
        "quell train census.csv --schema income.toml --model logistic --epsilon 1",
        "@font-face",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for other in ["<script", "<a ", "<link"] {
        assert!(!html.contains(other), "{other}");
    }
    if let Some(picture) = screenshot(&page, 8000) {
        let picture = picture.cropped();
        assert!(picture.height > 2000 && picture.height < 8000, "{}", picture.height);
        check_width(&picture);
        let blue = picture.pixels.iter().filter(|pixel| **pixel == [0x00, 0x72, 0xb2]).count();
        assert!(blue > 3000, "{blue}: curves and headlines are blue");
        renew(&picture, "report.png");
    }
}

#[test]
fn a_report_of_numbers_shows_predictions_against_targets_and_the_error_over_the_run() {
    let page = runs().join("hours/report.html");
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "<h1>Linear regression on census, predicts hours_per_week</h1>",
        "Predicted against actual",
        "Error over the run",
        "always the mean",
        "mean absolute error",
        "R²",
    ] {
        assert!(html.contains(part), "{part}");
    }
    if let Some(picture) = screenshot(&page, 8000) {
        let picture = picture.cropped();
        assert!(picture.height > 2000 && picture.height < 8000, "{}", picture.height);
        check_width(&picture);
        renew(&picture, "report-of-numbers.png");
    }
}

#[test]
fn the_plot_of_the_documents_is_drawn_with_the_letters_of_the_report() {
    let here = folder("screenshot-of-a-plot");
    for file in ["curve.png", "curve.svg"] {
        let ran = run(&here, &format!("curve moments-advanced --output {file}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let drawn = Picture::read(&here.join("curve.png"));
    renew(&drawn, "moments-advanced.png");
    // The page that a browser draws has the letters of the report, and is compared with Quell's own drawing.
    let report = fs::read_to_string(runs().join("income/report.html")).unwrap();
    let faces: String =
        report.lines().filter(|line| line.contains("@font-face")).collect::<Vec<_>>().join("\n");
    let faces = &faces[faces.find("@font-face").unwrap()..];
    let svg = fs::read_to_string(here.join("curve.svg")).unwrap();
    let page = here.join("curve.html");
    fs::write(&page, format!("<style>{faces}</style><body style=\"margin:0\">{svg}")).unwrap();
    if let Some(found) = screenshot(&page, 520) {
        // Quell draws two pixels a unit. Dark shares of the rows of the title agree if the letters are the same.
        let dark = |picture: &Picture, [from, to]: [usize; 2], scale: usize| {
            let rows = &picture.pixels[scale * from * picture.width..scale * to * picture.width];
            rows.iter().map(|p| 255.0 - f64::from(p[0])).sum::<f64>() / (255 * scale * scale) as f64
        };
        for rows in [[10, 36], [38, 60], [485, 512]] {
            let (own, theirs) = (dark(&drawn, rows, 2), dark(&found, rows, 1));
            assert!(theirs > 20.0 && (own / theirs - 1.0).abs() < 0.12, "{rows:?}: {own} {theirs}");
        }
    }
}

#[test]
fn a_report_is_printed_as_pdf_by_a_browser() {
    let here = runs();
    if browser().is_some() {
        let ran = run(here, "report income --output income.pdf");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, "wrote income.pdf\n"));
        let pdf = fs::read(here.join("income.pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF-"));
        let pages = pdf.windows(11).filter(|bytes| *bytes == b"/Type /Page").count();
        assert!(pages >= 3, "{pages}");
    } else {
        eprintln!("no Chromium was found, so no PDF was printed");
    }
    let ran = run(here, "report income --format pdf");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("--output"), "{}", ran.stderr);
}

#[test]
fn without_a_browser_the_pdf_is_refused_with_what_to_do() {
    let here = runs();
    let refused = |change: &dyn Fn(&mut Command)| {
        let mut command = start(here, "report income --output none.pdf");
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(!here.join("none.pdf").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let message = refused(&|command| {
        command.env("PATH", "").env_remove("QUELL_BROWSER");
    });
    assert!(message.starts_with("error: no browser was found that prints PDF"), "{message}");
    assert!(message.contains("hint: install Chromium"), "{message}");
    let message = refused(&|command| {
        command.env("QUELL_BROWSER", "/nowhere/chromium");
    });
    assert!(message.starts_with("error: QUELL_BROWSER is /nowhere/chromium"), "{message}");
    let message = refused(&|command| {
        command.env("QUELL_BROWSER", "/bin/true");
    });
    assert!(message.contains("wrote no PDF") && message.contains("hint: "), "{message}");
}
