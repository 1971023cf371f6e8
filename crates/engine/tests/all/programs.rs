//! Which steps are a program: every way through them ends, and the longest is known.

use engine::program::{Matcher, Op, Program, ProgramError};

fn check(ops: Vec<Op>, expected: Result<u32, ProgramError>) {
    assert_eq!(Program::new(ops).map(|program| program.longest()), expected);
}

fn marked() -> Matcher {
    Matcher::Mark(0)
}

#[test]
fn the_longest_way_is_known_when_the_program_is_loaded() {
    check(vec![], Ok(0));
    check(vec![Op::Mark(1), Op::Accept], Ok(2));
    check(vec![Op::SkipUnless(marked(), 1), Op::Mark(1), Op::Accept], Ok(3));
    check(vec![Op::Skip(1), Op::Mark(1), Op::Accept], Ok(2));
    // Two calls of a routine of two steps.
    check(vec![Op::Call(3), Op::Call(3), Op::Accept, Op::Mark(1), Op::Return], Ok(7));
}

#[test]
fn programs_that_could_go_astray_are_refused() {
    check(vec![Op::Skip(1)], Err(ProgramError::Target { at: 0 }));
    check(vec![Op::Call(1)], Err(ProgramError::Target { at: 0 }));
    check(vec![Op::Call(0)], Err(ProgramError::Cycle { at: 0 }));
    check(
        vec![Op::Call(2), Op::Accept, Op::Call(4), Op::Return, Op::Call(2), Op::Return],
        Err(ProgramError::Cycle { at: 0 }),
    );
}

#[test]
fn what_a_jump_leads_to_counts_but_not_what_stands_after_it() {
    // Mark, jump, mark, accept; the steps right after the jump are never taken.
    check(vec![Op::Goto(3), Op::Mark(1), Op::Mark(1), Op::Mark(1), Op::Accept], Ok(3));
    check(vec![Op::Goto(1)], Err(ProgramError::Target { at: 0 }));
    check(vec![Op::Goto(0)], Err(ProgramError::Cycle { at: 0 }));
    check(vec![Op::Goto(2), Op::Accept, Op::Goto(0)], Err(ProgramError::Cycle { at: 0 }));
}

#[test]
fn calls_nest_only_so_deep() {
    let chain = |routines: u16| {
        let mut ops = vec![];
        for i in 0..routines {
            ops.push(Op::Call((i + 1) * 2));
            ops.push(Op::Return);
        }
        ops.push(Op::Return);
        Program::new(ops).map(|program| program.longest())
    };
    assert!(chain(16).is_ok());
    assert!(matches!(chain(17), Err(ProgramError::Depth { .. })));
}

#[test]
fn programs_that_double_at_every_call_are_refused() {
    let mut ops = vec![];
    for i in 0..16_u16 {
        let next = (i + 1) * 4;
        ops.extend([Op::Call(next), Op::Call(next), Op::Call(next), Op::Return]);
    }
    ops.push(Op::Return);
    check(ops, Err(ProgramError::Steps));
}
