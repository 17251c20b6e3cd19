//! `examples/ordinary-day.sh` on small files that are written like the published ones.

use std::{fmt::Write as _, fs, io::BufWriter, path::Path, process::Command};

use crate::command::folder;

/// Adult without a header, with a space after each comma, and with `?` for missing cells.
fn adult(path: &Path, rows: usize, stop: &str) {
    let mut text = String::new();
    for i in 0..rows {
        let (education, number) = [("Bachelors", 13), ("HS-grad", 9), ("Masters", 14)][i % 3];
        let work = ["Private", "?", "State-gov"][i % 7 % 3];
        let (sex, income) =
            (["Male", "Female"][i % 2], if number > 9 && i % 5 > 0 { ">50K" } else { "<=50K" });
        writeln!(
            text,
            "{}, {work}, 77516, {education}, {number}, Never-married, Sales, Husband, White, {sex}, 0, 0, 40, United-States, {income}{stop}",
            20 + i % 50
        )
        .unwrap();
    }
    fs::write(path, text).unwrap();
}

/// Bank marketing: semicolons, and quotes around names.
fn bank(path: &Path, rows: usize) {
    let mut text = String::from(
        "\"age\";\"job\";\"marital\";\"education\";\"default\";\"balance\";\"housing\";\"loan\";\"contact\";\"day\";\"month\";\"duration\";\"campaign\";\"pdays\";\"previous\";\"poutcome\";\"y\"\n",
    );
    for i in 0..rows {
        let (duration, answer) = if i % 4 == 0 { (900, "yes") } else { (100, "no") };
        let job = ["management", "technician", "services"][i % 3];
        writeln!(
            text,
            "{};\"{job}\";\"married\";\"tertiary\";\"no\";{};\"yes\";\"no\";\"unknown\";5;\"may\";{duration};1;-1;0;\"unknown\";\"{answer}\"",
            30 + i % 40,
            i % 3000
        )
        .unwrap();
    }
    fs::write(path, text).unwrap();
}

/// California housing: numbers without a header.
fn california(path: &Path, rows: usize) {
    let mut text = String::new();
    for i in 0..rows {
        let income = 1.0 + (i % 90) as f64 / 10.0;
        writeln!(text, "-122.23,37.88,41.0,880.0,129.0,322.0,126.0,{income},{}", 40_000.0 * income).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// Pictures of 16 × 16 pixels: bright above, or bright below.
fn pictures(folder: &Path, each: usize) {
    for (class, name) in ["above", "below"].into_iter().enumerate() {
        fs::create_dir_all(folder.join(name)).unwrap();
        for number in 0..each {
            let file = fs::File::create(folder.join(name).join(format!("{number}.png"))).unwrap();
            let mut encoder = png::Encoder::new(BufWriter::new(file), 16, 16);
            encoder.set_color(png::ColorType::Grayscale);
            let bright = |pixel: usize| {
                if (pixel / 128 == 0) == (class == 0) { 200 + (number % 50) as u8 } else { 10 }
            };
            let pixels: Vec<u8> = (0..256).map(bright).collect();
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        }
    }
}

fn ratings(folder: &Path) {
    let (mut ratings, mut movies) =
        (String::from("userId,movieId,rating,timestamp\n"), String::from("movieId,title,genres\n"));
    for user in 0..60 {
        for item in 0..10 {
            let rating = if (user + item) % 2 == 0 { 4.5 } else { 2.0 };
            writeln!(ratings, "{user},{item},{rating},964982703").unwrap();
        }
    }
    (0..10).for_each(|item| writeln!(movies, "{item},Movie {item},Comedy").unwrap());
    fs::write(folder.join("ratings.csv"), ratings).unwrap();
    fs::write(folder.join("movies.csv"), movies).unwrap();
}

#[test]
fn an_ordinary_day_goes_from_raw_files_to_reports_and_answers() {
    let here = folder("ordinary day");
    let data = here.join("data");
    fs::create_dir_all(&data).unwrap();
    adult(&data.join("adult.data"), 3000, "");
    adult(&data.join("adult.test"), 300, ".");
    bank(&data.join("bank-full.csv"), 3000);
    california(&data.join("cal_housing.data"), 3000);
    pictures(&data.join("pictures"), 60);
    pictures(&data.join("pictures-test"), 10);
    ratings(&data);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ordinary-day.sh");
    // As a user runs it: the program is found by its name.
    let programs = Path::new(env!("CARGO_BIN_EXE_quell")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&others))).unwrap();
    let ran = Command::new("sh")
        .arg(script)
        .arg(&data)
        .env("PATH", all)
        .env_remove("QUELL")
        .current_dir(&here)
        .output()
        .unwrap();
    let [stdout, stderr] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ran.status.success(), "{stdout}\n{stderr}");
    for run in ["adult", "bank", "california", "pictures", "ratings"] {
        let report = fs::read_to_string(here.join("ordinary-day").join(run).join("report.html"));
        assert!(report.is_ok_and(|page| page.contains("</html>")), "{run}: {stdout}\n{stderr}");
    }
    // Labels of the test file end in a full stop, and all of them are read.
    let accuracy = stdout.lines().find(|line| line.starts_with("accuracy: ")).unwrap_or_default();
    assert!(accuracy.contains("of 300 public test records"), "{stdout}");
    assert!(stdout.contains("Female") && stdout.contains("technician"), "{stdout}");
}
