//! Locks that are never poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic ends the process, so a poisoned lock is never seen.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
