//! Mechanisms on votes: noisy winners, polls, surveys, stable winners, and the data-dependent cost of votes.

mod noisy_max;
mod poll;
mod stable_max;
mod survey;
mod vote_cost;

pub use noisy_max::{NoisyMax, Rule, Votes};
pub use poll::{Answer, Electorate, Poll, Polling, Screening, Voters};
pub use stable_max::{Stability, StableMax};
pub use survey::{Ballot, Finding, Form, Survey, Surveying};
pub use vote_cost::{Asked, ReleasedCost, SmoothCost, VoteCost};
