//! What cepa is tested with, and what its users can test their own agents and stores with: a scripted model, faults,
//! judges of request bodies, generated histories and conformance suites.

pub mod arbitrary;
pub mod conformance;
pub mod fault;
pub mod rows;
pub mod scripted;
pub mod validate;
pub mod watched;
