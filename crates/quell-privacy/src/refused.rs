//! Programs that the compiler must refuse. Each breaks one rule of this one, which it accepts:
//!
//! ```
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let paid = ledger.charge(count)?;
//!     paid.run(data)
//! }
//! ```
//!
//! To run without paying: only a paid mechanism has a `run`.
//!
//! ```compile_fail,E0599
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     count.run(data)
//! }
//! ```
//!
//! To forge a payment, by writing one down …
//!
//! ```compile_fail,E0451
//! use quell_privacy::{Error, Neighbors, ledger::{Paid, Receipt}, mechanism::{Count, Release, Sensitive}};
//! fn release(count: Count, receipt: Receipt, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     Paid { mechanism: count, neighbors: Neighbors::AddRemove, receipt, randomness: todo!() }.run(data)
//! }
//! ```
//!
//! … or by calling the cashier's own constructor:
//!
//! ```compile_fail,E0624
//! use quell_privacy::{Error, Neighbors, ledger::{Paid, Receipt}, mechanism::{Count, Release, Sensitive}};
//! fn release(count: Count, receipt: Receipt, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     Paid::new(count, Neighbors::AddRemove, todo!(), receipt).run(data)
//! }
//! ```
//!
//! To pay once and run twice …
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
//! … or to copy the payment:
//!
//! ```compile_fail,E0599
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<Release, Error> {
//!     let paid = ledger.charge(count)?;
//!     paid.clone().run(data)
//! }
//! ```
//!
//! To bring an own mechanism:
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
//! To read private inputs …
//!
//! ```compile_fail,E0616
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Count, Release, Sensitive}};
//! fn release<B: Book>(ledger: &mut Ledger<B>, count: Count, data: &Sensitive<u64>) -> Result<u64, Error> {
//!     Ok(data.0)
//! }
//! ```
//!
//! … or to print them …
//!
//! ```compile_fail,E0277
//! use quell_privacy::mechanism::Sensitive;
//! fn show(data: &Sensitive<u64>) {
//!     println!("{data:?}");
//! }
//! ```
//!
//! … or the votes:
//!
//! ```compile_fail,E0616
//! use quell_privacy::mechanism::Votes;
//! fn show(votes: &Votes) -> i64 {
//!     votes.counts[0]
//! }
//! ```
//!
//! … or what they cost:
//!
//! ```compile_fail,E0616
//! use quell_privacy::mechanism::VoteCost;
//! fn show(cost: &VoteCost) -> usize {
//!     cost.places.len()
//! }
//! ```
//!
//! To pass raw numbers for checked ones:
//!
//! ```compile_fail,E0308
//! use quell_privacy::mechanism::{Bounds, Noise, Sum};
//! fn sum(bounds: Bounds) -> Sum {
//!     Sum { bounds, noise: Noise::Laplace, noise_multiplier: -1.0 }
//! }
//! ```
//!
//! To make up the scales that a learner asks for …
//!
//! ```compile_fail,E0451
//! use quell_privacy::mechanism::Clip;
//! fn clip() -> Clip {
//!     Clip { parts: vec![1], rule: todo!(), seen: None }
//! }
//! ```
//!
//! … or to call the constructor of the laws:
//!
//! ```compile_fail,E0624
//! use quell_privacy::mechanism::Clip;
//! fn clip() -> Clip {
//!     Clip::fixed(vec![1], 1.0)
//! }
//! ```
//!
//! To see what was reported to them:
//!
//! ```compile_fail,E0624
//! use quell_privacy::mechanism::Clip;
//! fn lengths(clip: Clip) -> Vec<Vec<f64>> {
//!     clip.seen()
//! }
//! ```
//!
//! To start an epoch twice …
//!
//! ```compile_fail,E0382
//! use quell_privacy::{Error, ledger::{Book, Ledger}, mechanism::{Epoch, Running}};
//! fn start<B: Book>(ledger: &mut Ledger<B>, epoch: Epoch) -> Result<[Running; 2], Error> {
//!     let paid = ledger.charge(epoch)?;
//!     Ok([paid.start(10)?, paid.start(10)?])
//! }
//! ```
//!
//! … or to copy it while it is under way, which would run its batches twice:
//!
//! ```compile_fail,E0308
//! use quell_privacy::mechanism::Running;
//! fn twice(running: &Running) -> Running {
//!     running.clone()
//! }
//! ```
//!
//! To change the noise of a step that has been paid for:
//!
//! ```compile_fail,E0616
//! use quell_privacy::{ledger::Paid, mechanism::ClippedSum, units::NoiseMultiplier};
//! fn cheaper(mut paid: Paid<ClippedSum>, noise_multiplier: NoiseMultiplier) -> Paid<ClippedSum> {
//!     paid.mechanism.noise_multiplier = noise_multiplier;
//!     paid
//! }
//! ```
//!
//! To forge a permit to write a line, by writing one down …
//!
//! ```compile_fail,E0451
//! use quell_privacy::ledger::{Line, Permit};
//! fn forge(line: &Line) -> Permit<'_> {
//!     Permit { before: None, line, spent: 0.0, cap: 1.0 }
//! }
//! ```
//!
//! … or by calling the constructor of the ledger …
//!
//! ```compile_fail,E0624
//! use quell_privacy::ledger::{Line, Permit};
//! fn forge(line: &Line) -> Permit<'_> {
//!     Permit::new(None, line, 0.0, 1.0)
//! }
//! ```
//!
//! … or by copying one …
//!
//! ```compile_fail,E0277
//! use quell_privacy::ledger::Permit;
//! fn copy<'a>(permit: &Permit<'a>) -> Permit<'a> {
//!     let copy: Permit<'a> = Permit::clone(permit);
//!     copy
//! }
//! ```
//!
//! … or by changing what it says …
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
//! To write into the book of a ledger past the ledger …
//!
//! ```compile_fail,E0616
//! use quell_privacy::ledger::{Book, Ledger};
//! fn past<B: Book>(ledger: &mut Ledger<B>) -> &mut B {
//!     &mut ledger.book
//! }
//! ```
//!
//! … or to exchange the book:
//!
//! ```compile_fail,E0599
//! use quell_privacy::ledger::{Book, Ledger};
//! fn exchange<B: Book>(ledger: &mut Ledger<B>, other: B) -> B {
//!     std::mem::replace(ledger.book(), other)
//! }
//! ```
//!
//! To tell a ledger what was spent:
//!
//! ```compile_fail,E0616
//! use quell_privacy::ledger::State;
//! fn forget(state: &mut State) {
//!     state.charges.clear();
//! }
//! ```
//!
//! To take more steps from a lease than were leased:
//!
//! ```compile_fail,E0616
//! use quell_privacy::{ledger::{Book, Lease}, mechanism::Count};
//! fn more<B: Book>(lease: &mut Lease<'_, Count, B>) {
//!     lease.end += 1;
//! }
//! ```
//!
//! To read a payment from a file …
//!
//! ```compile_fail,E0277
//! use quell_privacy::{ledger::Paid, mechanism::Count};
//! fn read(text: &str) -> Paid<Count> {
//!     serde_json::from_str(text).unwrap()
//! }
//! ```
//!
//! … or to write private inputs into one:
//!
//! ```compile_fail,E0277
//! use quell_privacy::mechanism::Sensitive;
//! fn write(data: &Sensitive<u64>) -> String {
//!     serde_json::to_string(data).unwrap()
//! }
//! ```
//!
//! To copy private inputs out …
//!
//! ```compile_fail,E0599
//! use quell_privacy::mechanism::Sensitive;
//! fn copy(data: &Sensitive<u64>) -> u64 {
//!     data.clone().into_inner()
//! }
//! ```
//!
//! … or to compare them with a guess:
//!
//! ```compile_fail,E0369
//! use quell_privacy::mechanism::Sensitive;
//! fn guess(data: &Sensitive<u64>) -> bool {
//!     *data == Sensitive::new(3)
//! }
//! ```
