//! The built program as clients and operators meet it: transports, conformance, metrics, operation.

mod api;
mod certificates;
mod clients;
mod conformance;
mod dnstap;
mod encrypted;
mod metrics;
mod operation;
mod restart;
mod transport_parity;
