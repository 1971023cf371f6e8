//! Signs zones: keys in files and tokens, the work on as many threads as there are to spare, and
//! zones that the server signs by itself.

mod parent;
mod service;
mod store;
mod token;
mod zone;

use std::sync::atomic::{AtomicUsize, Ordering};

use dnssec::tree::Tree;
use dnssec::{Signed, Signer, Unsignable};

pub use service::{DsPusher, Prepared, Signing, SigningError, SigningState};
pub(crate) use store::remove_leftovers_of;
pub use store::{KeyStore, Overwrites, StoredKey, read_pair, read_text, write};
pub use token::Tokens;
pub use zone::{KeyState, Push, PushOutcome, Turned};

/// Names below which a zone is signed by one thread: starting others would take longer.
const NAMES_PER_THREAD_MIN: usize = 200;

/// Signs a zone on up to `threads` threads of its own. `told` hears, from any of them, how many
/// names are done.
///
/// Each thread runs `begin` first; it may make itself less important.
pub fn sign(
    signer: &Signer<'_>,
    tree: &mut Tree,
    former: &[Vec<u8>],
    threads: usize,
    begin: impl Fn() + Sync,
    told: impl Fn(usize) + Sync,
) -> Result<Signed, Unsignable> {
    signer.prepare(tree, former)?;
    let threads = threads.clamp(1, 1 + tree.len() / NAMES_PER_THREAD_MIN);
    let done = AtomicUsize::new(0);
    let mut signed = Signed::default();
    let parts = signer.parts(tree, threads);
    let outcomes: Vec<Result<Signed, Unsignable>> = std::thread::scope(|scope| {
        let workers: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let (begin, told, done) = (&begin, &told, &done);
                scope.spawn(move || {
                    begin();
                    signer.sign_part(part, || {
                        told(done.fetch_add(1, Ordering::Relaxed) + 1);
                        true
                    })
                })
            })
            .collect();
        // A panic ends the process, so every thread comes to its end.
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    for outcome in outcomes {
        signed.add(outcome?);
    }
    signed.add(signer.finish(tree)?);
    Ok(signed)
}
