//! The rules without a database: examples of each, and random sequences against a model of a back end.

mod history;
mod memories;
mod model;
mod sequences;
mod stores;
