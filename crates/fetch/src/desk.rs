//! Brings clients' queries, upstreams' replies and the engine together, on one worker.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::desk::{Outlet, ReplyTo, Worker};
use engine::engine_module_placeholder as _;
