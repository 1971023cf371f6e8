//! What policies in a configuration come to.

mod flow;
mod graph;
mod steps;
