//! Ethernet frames: their headers, and the whole way between two network namespaces.

mod headers;
mod namespaces;
