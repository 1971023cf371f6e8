//! What deadlines are for.

/// Whose deadline it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// The end of a wait for a reply.
    Query(u32),
    /// The end of a UDP port's life.
    Socket(u32),
    /// A look at a connection that may idle.
    Link(u32),
}
