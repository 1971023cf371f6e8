//! The benchmark tool.
fn main() {}
