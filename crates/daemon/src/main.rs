//! The `gannet` binary. fn main wires everything.
fn main() {}
