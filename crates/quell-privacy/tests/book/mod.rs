//! A book in memory, for tests.
//!
//! All holders share it, and it ends with the last of them.
#![allow(dead_code, unreachable_pub, reason = "not every test uses all of it")]

use std::{cell::RefCell, rc::Rc};

use quell_privacy::{
    Neighbors,
    ledger::{Book, Budget, Composition, Ledger, Line, Permit, Receipt, Terms, Unit},
    units::{Delta, Epsilon},
};

#[derive(Clone, Default)]
pub struct Memory {
    pub lines: Rc<RefCell<Vec<Line>>>,
    /// Lines that somebody else writes just before the next append.
    pub intruders: Rc<RefCell<Vec<Line>>>,
    /// The storage fails from now on.
    pub broken: Rc<RefCell<bool>>,
}

impl Book for Memory {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        Ok(self.lines.borrow()[from as usize..].to_vec())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        if *self.broken.borrow() {
            return Err("the disk is full".into());
        }
        self.lines.borrow_mut().append(&mut self.intruders.borrow_mut());
        if self.lines.borrow().len() as u64 != permit.number() {
            return Ok(None);
        }
        assert!(permit.spent() <= permit.cap(), "{permit:?}");
        // What is written down is text.
        let text = serde_json::to_string(permit.line()).unwrap();
        self.lines.borrow_mut().push(serde_json::from_str(&text).unwrap());
        self.receipt(permit.number()).map(Some)
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        Ok(Receipt::new("people".into(), number, format!("head of {number}")))
    }
}

pub fn terms(epsilon: Option<f64>, delta: f64, neighbors: Neighbors, composition: Composition) -> Terms {
    let budget =
        Budget { epsilon: epsilon.map(|e| Epsilon::new(e).unwrap()), delta: Delta::new(delta).unwrap() };
    Terms { dataset: "people".into(), unit: Unit::Example, neighbors, budget, composition }
}

/// A ledger of a capped budget at δ = 1e-5.
pub fn ledger(epsilon: f64) -> (Ledger<Memory>, Memory) {
    let book = Memory::default();
    let terms = terms(Some(epsilon), 1e-5, Neighbors::AddRemove, Composition::Combined);
    (Ledger::create(book.clone(), terms).unwrap(), book)
}

/// A ledger that promises nothing, for tests of what comes out.
pub fn without_cap(neighbors: Neighbors) -> Ledger<Memory> {
    Ledger::create(Memory::default(), terms(None, 1e-5, neighbors, Composition::Combined)).unwrap()
}
