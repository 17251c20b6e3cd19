//! Programs that the compiler must reject.
//!
//! Each one breaks one rule that this valid program obeys:
//!
//! ```
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let paid = ledger.charge(count)?;
//!     paid.run(data)
//! }
//! ```
//!
//! Running without a payment: only a paid mechanism has `run`.
//!
//! ```compile_fail,E0599
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     count.run(data)
//! }
//! ```
//!
//! Forging a payment, with a struct literal …
//!
//! ```compile_fail,E0451
//! use quell_privacy::{Error, Neighbors, ledger::{Paid, Receipt, Unit}, mechanism::{Count, Release, Sensitive}};
//! fn release(count: Count, receipt: Receipt, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let (unit, neighbors) = (Unit::Example, Neighbors::AddRemove);
//!     Paid { mechanism: count, unit, neighbors, receipt, randomness: todo!() }.run(data)
//! }
//! ```
//!
//! … or with the private constructor of the ledger:
//!
//! ```compile_fail,E0624
//! use quell_privacy::{Error, Neighbors, ledger::{Paid, Receipt, Unit}, mechanism::{Count, Release, Sensitive}};
//! fn release(count: Count, receipt: Receipt, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     Paid::new(count, (Unit::Example, Neighbors::AddRemove), todo!(), receipt).run(data)
//! }
//! ```
//!
//! Running twice on one payment …
//!
//! ```compile_fail,E0382
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let paid = ledger.charge(count)?;
//!     paid.run(data)?;
//!     paid.run(data)
//! }
//! ```
//!
//! … or copying the payment:
//!
//! ```compile_fail,E0599
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let paid = ledger.charge(count)?;
//!     paid.clone().run(data)
//! }
//! ```
//!
//! Implementing a new mechanism outside this crate:
//!
//! ```compile_fail,E0277
//! use quell_privacy::{Event, Neighbors, mechanism::Mechanism};
//! #[derive(Clone)]
//! struct Cheap;
//! impl std::fmt::Display for Cheap {
//!     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
//!         f.write_str("nothing to see")
//!     }
//! }
//! impl Mechanism for Cheap {
//!     fn event(&self, _: Neighbors) -> Event {
//!         Event::Composed(vec![])
//!     }
//! }
//! ```
//!
//! Reading private inputs …
//!
//! ```compile_fail,E0616
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<u64, Error> {
//!     Ok(data.0)
//! }
//! ```
//!
//! … or printing them …
//!
//! ```compile_fail,E0277
//! use quell_privacy::mechanism::Sensitive;
//! fn show(data: &Sensitive<u64>) {
//!     println!("{data:?}");
//! }
//! ```
//!
//! … or reading the votes …
//!
//! ```compile_fail,E0616
//! use quell_privacy::mechanism::Votes;
//! fn show(votes: &Votes) -> i64 {
//!     votes.counts[0]
//! }
//! ```
//!
//! … or reading the cost of the votes:
//!
//! ```compile_fail,E0616
//! use quell_privacy::mechanism::VoteCost;
//! fn show(cost: &VoteCost) -> usize {
//!     cost.places.len()
//! }
//! ```
//!
//! Passing raw numbers where checked types are required:
//!
//! ```compile_fail,E0308
//! use quell_privacy::mechanism::{Bounds, Noise, Sum};
//! fn sum(bounds: Bounds) -> Sum {
//!     Sum { bounds, noise: Noise::Laplace, noise_multiplier: -1.0 }
//! }
//! ```
//!
//! Forging the scales that a learner asks for …
//!
//! ```compile_fail,E0451
//! use quell_privacy::mechanism::Clipper;
//! fn clipper() -> Clipper {
//!     Clipper { parts: vec![1], rule: todo!(), seen: None }
//! }
//! ```
//!
//! … or calling the constructor that `laws` uses:
//!
//! ```compile_fail,E0624
//! use quell_privacy::mechanism::Clipper;
//! fn clipper() -> Clipper {
//!     Clipper::fixed(vec![1], 1.0)
//! }
//! ```
//!
//! Reading what was reported to `Clipper`:
//!
//! ```compile_fail,E0624
//! use quell_privacy::mechanism::Clipper;
//! fn lengths(clipper: Clipper) -> Vec<Vec<f64>> {
//!     clipper.seen()
//! }
//! ```
//!
//! Starting the batches of one payment twice …
//!
//! ```compile_fail,E0382
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Batches, Descent}};
//! fn start<B: Book>(ledger: &mut Ledger<B>, descent: Descent) -> Result<[Batches; 2], Error> {
//!     let paid = ledger.charge(descent)?;
//!     Ok([paid.start(10)?, paid.start(10)?])
//! }
//! ```
//!
//! … or copying running batches, which would run them twice:
//!
//! ```compile_fail,E0308
//! use quell_privacy::mechanism::Batches;
//! fn twice(batches: &Batches) -> Batches {
//!     batches.clone()
//! }
//! ```
//!
//! Changing the noise of a step that has been paid for:
//!
//! ```compile_fail,E0616
//! use quell_privacy::{ledger::Paid, mechanism::Descent, units::NoiseMultiplier};
//! fn cheaper(mut paid: Paid<Descent>, noise_multiplier: NoiseMultiplier) -> Paid<Descent> {
//!     paid.mechanism.noise_multiplier = noise_multiplier;
//!     paid
//! }
//! ```
//!
//! Forging a permit to write a line, with a struct literal …
//!
//! ```compile_fail,E0451
//! use quell_privacy::ledger::{Line, Permit};
//! fn forge(line: &Line) -> Permit<'_> {
//!     Permit { before: None, line, spent: 0.0, cap: 1.0 }
//! }
//! ```
//!
//! … or with the private constructor of the ledger …
//!
//! ```compile_fail,E0624
//! use quell_privacy::ledger::{Line, Permit};
//! fn forge(line: &Line) -> Permit<'_> {
//!     Permit::new(None, line, 0.0, 1.0)
//! }
//! ```
//!
//! … or by copying a permit …
//!
//! ```compile_fail,E0277
//! use quell_privacy::ledger::Permit;
//! fn copy<'a>(permit: &Permit<'a>) -> Permit<'a> {
//!     let copy: Permit<'a> = Permit::clone(permit);
//!     copy
//! }
//! ```
//!
//! … or by changing its content …
//!
//! ```compile_fail,E0616
//! use quell_privacy::ledger::Permit;
//! fn cheapen(permit: &mut Permit<'_>) {
//!     permit.spent = 0.0;
//! }
//! ```
//!
//! … or by keeping it for later:
//!
//! ```compile_fail,E0521
//! use std::cell::RefCell;
//! use quell_privacy::ledger::{Book, Line, Permit, Receipt};
//! struct Keeper(RefCell<Vec<&'static Permit<'static>>>);
//! impl Book for Keeper {
//!     type Error = String;
//!     fn read(&mut self, _: u64) -> Result<Vec<Line>, String> {
//!         Ok(Vec::new())
//!     }
//!     fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
//!         self.0.borrow_mut().push(permit);
//!         Ok(None)
//!     }
//!     fn receipt(&mut self, _: u64) -> Result<Receipt, String> {
//!         Err(String::new())
//!     }
//! }
//! ```
//!
//! Writing into the book of a ledger without the ledger …
//!
//! ```compile_fail,E0616
//! use quell_privacy::ledger::{Book, Ledger};
//! fn past<B: Book>(ledger: &mut Ledger<B>) -> &mut B {
//!     &mut ledger.book
//! }
//! ```
//!
//! … or replacing the book:
//!
//! ```compile_fail,E0599
//! use quell_privacy::ledger::{Book, Ledger};
//! fn exchange<B: Book>(ledger: &mut Ledger<B>, other: B) -> B {
//!     std::mem::replace(ledger.book(), other)
//! }
//! ```
//!
//! Changing what a ledger has recorded as spent:
//!
//! ```compile_fail,E0616
//! use quell_privacy::ledger::State;
//! fn forget(state: &mut State) {
//!     state.charges.clear();
//! }
//! ```
//!
//! Taking more steps from a lease than were leased:
//!
//! ```compile_fail,E0616
//! use quell_privacy::{ledger::{Book, Lease}, mechanism::Count};
//! fn more<B: Book>(lease: &mut Lease<'_, Count, B>) {
//!     lease.end += 1;
//! }
//! ```
//!
//! Reading a payment from a file …
//!
//! ```compile_fail,E0277
//! use quell_privacy::{ledger::Paid, mechanism::Count};
//! fn read(text: &str) -> Paid<Count> {
//!     serde_json::from_str(text).unwrap()
//! }
//! ```
//!
//! … or writing private inputs into a file:
//!
//! ```compile_fail,E0277
//! use quell_privacy::mechanism::Sensitive;
//! fn write(data: &Sensitive<u64>) -> String {
//!     serde_json::to_string(data).unwrap()
//! }
//! ```
//!
//! Copying private inputs out …
//!
//! ```compile_fail,E0599
//! use quell_privacy::mechanism::Sensitive;
//! fn copy(data: &Sensitive<u64>) -> u64 {
//!     data.clone().into_inner()
//! }
//! ```
//!
//! … or comparing them with a guess:
//!
//! ```compile_fail,E0369
//! use quell_privacy::mechanism::Sensitive;
//! fn guess(data: &Sensitive<u64>) -> bool {
//!     *data == Sensitive::new(3)
//! }
//! ```
