//! Books that lie: to a ledger about lines, or to a store about what was judged.

use std::{cell::RefCell, rc::Rc};

use quell_ledger::{Store, Volume};
use quell_privacy::{
    Neighbors, Statement,
    ledger::{Book, Budget, Ledger, Line, Permit, Receipt, Terms},
    units::Delta,
};

use super::{Attempt, refused};
use crate::fixture::{DATASET, budget, charge, count, create, open, room_for, terms};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("a book that keeps nothing", keeps_nothing),
    ("a book that forgets what it was shown", forgets),
    ("a book that says that every number is taken", always_taken),
    ("a book that breaks after the charge was judged", breaks),
    ("a book that raises the cap by itself, as seen by a statement", raises_the_cap),
    ("a book that hands out steps twice", leases_again),
    ("a book that shows a charge beyond the cap, to go on with", charges_by_itself),
    ("a book that shows cheap lines and writes into a dear ledger", || shows(cheap_lines, OTHER_LINES)),
    ("a book that shows a larger cap", || shows(larger_cap, OTHER_LINES)),
    ("a book that shows no cap", || shows(no_cap, OTHER_LINES)),
    ("a book that shows another relation of neighbours", || shows(other_relation, OTHER_LINES)),
    ("a book that shows a larger delta", || shows(larger_delta, OTHER_LINES)),
    ("a book that hides the last lines", || {
        shows(hidden_end, "a line number is taken but returns no such line");
    }),
    ("a book that shows lines of the future", || {
        shows(future, "5 lines were written, of which the ledger has 4");
    }),
    ("a permit that is used for two ledgers", two_ledgers),
    ("a permit that is used twice", twice),
    ("a book that keeps its receipts from another ledger", foreign_receipts),
];

/// Why a permit is refused that was made for other lines than those of the ledger.
const OTHER_LINES: &str = "was checked against other lines than this ledger has";

/// A book in memory that does what it is told to.
#[derive(Clone, Default)]
struct Liar {
    lines: Rc<RefCell<Vec<Line>>>,
    /// What is told of the lines; all of them if none.
    shown: Rc<RefCell<Option<Vec<Line>>>>,
    keeps_nothing: bool,
    taken: bool,
    broken: Rc<RefCell<bool>>,
}

impl Book for Liar {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        let shown = self.shown.borrow();
        let lines = self.lines.borrow();
        Ok(shown.as_ref().unwrap_or(&lines).iter().skip(from as usize).cloned().collect())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        if *self.broken.borrow() {
            return Err("broken".into());
        }
        if self.taken && permit.number() > 0 {
            return Ok(None);
        }
        if !self.keeps_nothing || permit.number() == 0 {
            self.lines.borrow_mut().push(permit.line().clone());
        }
        self.receipt(permit.number()).map(Some)
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        Ok(Receipt::new(DATASET.into(), number, "made up".into()))
    }
}

fn ledger(book: &Liar, cap: f64) -> Ledger<Liar> {
    Ledger::create(book.clone(), terms(DATASET, Some(cap))).unwrap()
}

/// How often ε = 1 is granted before the budget is used up.
fn granted(ledger: &mut Ledger<impl Book>) -> usize {
    let granted = (0..20).take_while(|_| ledger.charge(count(1.0)).is_ok()).count();
    refused(ledger.charge(count(1.0)), "the budget is");
    granted
}

fn keeps_nothing() {
    let book = Liar { keeps_nothing: true, ..Liar::default() };
    assert_eq!(granted(&mut ledger(&book, room_for(3))), 3);
}

fn forgets() {
    let book = Liar::default();
    let mut ledger = ledger(&book, room_for(3));
    assert!(ledger.charge(count(1.0)).is_ok());
    let first = book.lines.borrow()[0].clone();
    *book.shown.borrow_mut() = Some(vec![first]);
    assert_eq!(granted(&mut ledger), 2, "what it granted itself it counts");
}

fn always_taken() {
    let book = Liar { taken: true, ..Liar::default() };
    refused(ledger(&book, 3.0).charge(count(1.0)), "a line number is taken but returns no such line");
}

fn breaks() {
    let book = Liar::default();
    let mut ledger = ledger(&book, 3.0);
    *book.broken.borrow_mut() = true;
    refused(ledger.charge(count(1.0)), "the ledger cannot be used: broken");
}

fn raises_the_cap() {
    let book = Liar::default();
    let mut ledger = ledger(&book, room_for(2));
    assert_eq!(granted(&mut ledger), 2);
    book.lines
        .borrow_mut()
        .push(Line::Raised { budget: budget(Some(room_for(5))), reason: "because".into() });
    assert_eq!(granted(&mut ledger), 3);
    let statement = Statement::new(ledger.state().unwrap()).unwrap();
    assert!(
        statement.epsilon.is_none_or(|epsilon| epsilon.upper >= 5.0) && statement.delta > 1e-6,
        "{statement}"
    );
    // A cap beyond all caps is none.
    book.lines.borrow_mut().push(Line::Raised { budget: budget(Some(1e6)), reason: "because".into() });
    refused(ledger.charge(count(1.0)), "epsilon of a budget is 1000000, expected");
}

fn leases_again() {
    let book = Liar::default();
    let mut ledger = ledger(&book, room_for(4));
    let mut steps = ledger
        .reserve(count(1.0), 4)
        .unwrap()
        .in_blocks_of(2)
        .map(Result::unwrap)
        .map(drop)
        .take(2)
        .collect::<Vec<_>>()
        .len();
    // The line that leased them is gone, as far as the book says.
    let two = book.lines.borrow()[..2].to_vec();
    *book.shown.borrow_mut() = Some(two);
    steps += ledger.resume(count(1.0), 1).unwrap().flatten().map(drop).collect::<Vec<_>>().len();
    assert_eq!(steps, 4);
}

fn charges_by_itself() {
    let book = Liar::default();
    let mut ledger = ledger(&book, 1.0);
    let (charge, _) = ledger.quote(&count(1.0), 5).unwrap();
    book.lines.borrow_mut().push(Line::Charged(charge));
    refused(ledger.resume(count(1.0), 1), "its charges add up to epsilon 4.99");
    refused(ledger.charge(count(100.0)), "epsilon would be 5.0");
}

/// A book that shows the lines that `lie` makes of the true ones, and writes into the true ledger.
struct Mask {
    inner: Volume,
    lie: fn(Vec<Line>) -> Vec<Line>,
    /// What it has shown.
    told: Vec<Line>,
}

impl Book for Mask {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        if from == 0 {
            let lines = self.inner.read(0).map_err(|error| error.to_string())?;
            self.told = (self.lie)(lines);
        }
        Ok(self.told.iter().skip(from as usize).cloned().collect())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        self.inner.append(permit).map_err(|error| error.to_string())
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        self.inner.receipt(number).map_err(|error| error.to_string())
    }
}

/// Three of three are spent; whoever gets a fourth has succeeded.
fn shows(lie: fn(Vec<Line>) -> Vec<Line>, because: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::create(directory.path()).unwrap();
    charge(&mut create(&store, DATASET, Some(room_for(3))), 3);
    let mask = Mask { inner: store.book(DATASET).unwrap(), lie, told: Vec::new() };
    let mut ledger = Ledger::open(mask).unwrap();
    refused(ledger.charge(count(1.0)), because);
    refused(ledger.reserve(count(1.0), 2), because);
    assert!(
        store.entries(DATASET).unwrap().iter().filter(|entry| matches!(entry.line, Line::Charged(_))).count()
            == 3
    );
}

fn with_terms(mut lines: Vec<Line>, change: impl Fn(&mut Terms)) -> Vec<Line> {
    if let Some(Line::Opened(terms)) = lines.first_mut() {
        change(terms);
    }
    lines
}

fn cheap_lines(mut lines: Vec<Line>) -> Vec<Line> {
    for line in &mut lines {
        if let Line::Charged(charge) = line {
            charge.cost.pure = Some(0.0);
        }
    }
    lines
}

fn larger_cap(lines: Vec<Line>) -> Vec<Line> {
    with_terms(lines, |terms| terms.budget = budget(Some(20.0)))
}

fn no_cap(lines: Vec<Line>) -> Vec<Line> {
    with_terms(lines, |terms| terms.budget = budget(None))
}

fn other_relation(lines: Vec<Line>) -> Vec<Line> {
    let mut lines = with_terms(cheap_lines(lines), |terms| terms.neighbors = Neighbors::Replace);
    lines.truncate(4);
    lines
}

fn larger_delta(lines: Vec<Line>) -> Vec<Line> {
    with_terms(cheap_lines(lines), |terms| {
        terms.budget = Budget { delta: Delta::new(0.5).unwrap(), ..terms.budget }
    })
}

fn hidden_end(mut lines: Vec<Line>) -> Vec<Line> {
    lines.truncate(2);
    lines
}

fn future(mut lines: Vec<Line>) -> Vec<Line> {
    lines.push(Line::Raised { budget: budget(Some(20.0)), reason: "not yet".into() });
    lines
}

/// A book that writes every line into two ledgers, of which it shows the first.
struct Both(Volume, Volume);

impl Book for Both {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        self.0.read(from).map_err(|error| error.to_string())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        let other = self.1.append(permit);
        refused(other, OTHER_LINES);
        self.0.append(permit).map_err(|error| error.to_string())
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        self.0.receipt(number).map_err(|error| error.to_string())
    }
}

fn two_ledgers() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    charge(&mut create(&store, DATASET, Some(room_for(3))), 1);
    let mut rich = create(&store, "rich", Some(room_for(3)));
    let _cheap = rich.charge(count(100.0)).unwrap();
    let both = Both(store.book("rich").unwrap(), store.book(DATASET).unwrap());
    assert!(Ledger::open(both).unwrap().charge(count(1.0)).is_ok());
    assert_eq!(open(&store, DATASET).state().unwrap().charges().len(), 1);
}

/// A book that uses every permit twice.
struct Again(Volume);

impl Book for Again {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        self.0.read(from).map_err(|error| error.to_string())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        let receipt = self.0.append(permit).map_err(|error| error.to_string())?;
        assert!(matches!(self.0.append(permit), Ok(None)), "written twice");
        Ok(receipt)
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        self.0.receipt(number).map_err(|error| error.to_string())
    }
}

fn twice() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    drop(create(&store, DATASET, Some(room_for(3))));
    let mut ledger = Ledger::open(Again(store.book(DATASET).unwrap())).unwrap();
    assert_eq!(granted(&mut ledger), 3);
    assert_eq!(open(&store, DATASET).state().unwrap().charges().len(), 3);
}

fn foreign_receipts() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, mut other) = (Store::create(one.path()).unwrap(), Store::create(two.path()).unwrap());
    let receipt = charge(&mut create(&store, DATASET, Some(10.0)), 1);
    charge(&mut create(&other, DATASET, Some(10.0)), 1);
    assert!(!other.verify(&receipt, &[]).is_good(), "a receipt of another ledger passes");
}
