//! Holds the guard tests under `tests/`.
