//! The resolver in a simulated internet: what it asks whom, and what it says in the end.

mod agreement;
mod aliases;
mod attacks;
mod attacks_replies;
mod attacks_signed;
mod failures;
mod forwards;
mod keywords;
mod minimisation;
mod nat64;
mod odd_servers;
mod other_validator;
mod own;
mod preferences;
mod ranges;
mod rates;
mod referrals;
mod reports;
mod routes;
mod second_level;
mod servers;
mod signed;
mod subnets;
mod validation;
mod workers;
mod world;
